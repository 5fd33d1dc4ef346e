"""Flops of library calls equal those of torch's own counter."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

import inductor_lab as lab
from inductor_lab.compiler.ir.flops import call_flops

WEIGHT = torch.randn(6, 4, 3, 3)
CALLS = {
    "mm": lambda: torch.randn(4, 8) @ torch.randn(8, 16),
    "addmm": lambda: F.linear(torch.randn(4, 8), torch.randn(16, 8), torch.randn(16)),
    "bmm": lambda: torch.randn(3, 16, 8) @ torch.randn(3, 8, 5),
    "convolution": lambda: F.conv2d(torch.randn(2, 4, 9, 9), WEIGHT, stride=2),
    "transposed": lambda: F.conv_transpose2d(torch.randn(2, 6, 5, 5), WEIGHT, stride=2),
}


@pytest.mark.parametrize("name", CALLS)
def test_forward_flops_equal_torchs_counter(name: str) -> None:
    with FlopCounterMode(display=False) as counted:
        CALLS[name]()
    assert _library_flops(lab.inspect(CALLS[name])) == counted.get_total_flops() > 0


def test_backward_flops_equal_torchs_counter() -> None:
    image = torch.randn(2, 4, 9, 9, requires_grad=True)
    with FlopCounterMode(display=False) as counted:
        F.conv2d(image, WEIGHT).sum().backward()
    compiled = lab.inspect(F.conv2d, image, WEIGHT)
    assert _library_flops(compiled) == counted.get_total_flops() > 0


def _library_flops(compiled: lab.Compilation) -> int:
    """Flops of all library calls, without the loops."""
    total = compiled.after.flops
    return total - sum(g.cost.flops for part in compiled.parts for g in part.schedule.groups)


def test_attention_counts_its_products() -> None:
    shape = (2, 4, 64, 16)
    name = "aten._scaled_dot_product_flash_attention_for_cpu"
    forward = call_flops(f"{name}.default", [shape] * 3 + [0.0, True], shape)
    assert forward == 2 * 2 * 4 * 64 * 64 * (16 + 16)
    backward = call_flops(f"{name}_backward.default", [shape] * 5 + [(2, 4, 64), 0.0], shape)
    assert backward == forward * 5 // 2


def test_an_unknown_call_has_zero_flops() -> None:
    assert call_flops("aten.sort.default", [(8,)], (8,)) == 0
