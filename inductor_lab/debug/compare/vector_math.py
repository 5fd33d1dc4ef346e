"""Initialize the vector functions of eager mode before their results are compared.

MKL selects the code of a vector function in the first call.  If several threads make that call, one
of them may compute with reduced precision: `torch.sin` of 8,192 numbers had an error of 1.5e-4 in
one of 500 processes (PyTorch issue 188792; MKL 2024.2).  A call with one element uses one thread.
"""

from __future__ import annotations

from functools import cache

import torch

FUNCTIONS = (
    torch.acos, torch.asin, torch.atan, torch.cos, torch.erf, torch.erfc, torch.erfinv, torch.exp,
    torch.expm1, torch.log, torch.log10, torch.log1p, torch.log2, torch.sin, torch.sqrt, torch.tan,
    torch.tanh, torch.floor, torch.ceil, torch.round, torch.trunc, torch.abs,
)  # fmt: skip
"""Functions that ATen computes with MKL for float32 and float64 on a CPU."""


@cache
def settle_vector_math() -> None:
    """Call each function once per process, so that MKL selects its code."""
    for dtype in (torch.float32, torch.float64):
        one = torch.full((1,), 0.5, dtype=dtype, device="cpu")
        for function in FUNCTIONS:
            function(one)
