"""Matrix products, convolutions and attention: ATen does them, on purpose.

Inductor: `kernel/mm.py`, `kernel/conv.py`; there templates compete with ATen, here ATen alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from inductor_lab.lower.builder import Builder
from inductor_lab.lower.extern import call
from inductor_lab.lower.registry import lowers

aten = torch.ops.aten


def _library(op: Any, build: Builder, *args: Any, **kwargs: Any) -> Any:
    """One extern call with the node's own arguments."""
    return call(build, op, args, kwargs)


LIBRARY = """
    mm addmm bmm baddbmm addmv linear
    convolution convolution_backward
    _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_flash_attention_for_cpu_backward
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
    _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
    _scaled_dot_product_fused_attention_overrideable
    _scaled_dot_product_fused_attention_overrideable_backward
    scaled_dot_product_attention
""".split()
"""Operators that a library does better than generated loops."""

for _name in LIBRARY:
    _op = getattr(aten, _name).default
    lowers(_op)(partial(_library, _op))
