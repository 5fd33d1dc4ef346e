"""Eager's own functions, made ready before what they compute is compared with anything.

MKL chooses the code of a vector function in its first call.  If several threads make that call, one
may compute its part with few bits: `torch.sin` of 8,192 numbers was wrong by 1.5e-4 in one of 500
processes (PyTorch issue 188792; MKL 2024.2).  One element is computed by one thread.
"""

from __future__ import annotations

from functools import cache

import torch

FUNCTIONS = (
    torch.acos, torch.asin, torch.atan, torch.cos, torch.erf, torch.erfc, torch.erfinv, torch.exp,
    torch.expm1, torch.log, torch.log10, torch.log1p, torch.log2, torch.sin, torch.sqrt, torch.tan,
    torch.tanh, torch.floor, torch.ceil, torch.round, torch.trunc, torch.abs,
)  # fmt: skip
"""What ATen leaves to MKL for float32 and float64 on a CPU."""


@cache
def settle_vector_math() -> None:
    """Have MKL choose its code for each function, once in a process."""
    for dtype in (torch.float32, torch.float64):
        one = torch.full((1,), 0.5, dtype=dtype, device="cpu")
        for function in FUNCTIONS:
            function(one)
