"""Blame on a GPU: Triton's kernels of both compilers, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from tests.stock.faulty_stock import TRITON_FAULTS, chain, inputs

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


def mlp(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x @ weight, weight.shape[1:])).sum()


def root_mean_square(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype) * weight


def relu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ y) * 2 + 1


@pytest.mark.parametrize("compiler", ["inductor_lab", "stock"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function", [chain, mlp, root_mean_square, relu])
def test_a_right_training_step_is_not_blamed(
    function: Callable[..., Any], dtype: torch.dtype, compiler: str
) -> None:
    torch.manual_seed(0)
    args = [torch.randn(48, 48, device="cuda").to(dtype).requires_grad_() for _ in range(2)]
    found = lab.blame(function, *args, compiler=compiler)
    assert found.fault is None, str(found)
    judged = [row for row in found.stages if row.stage != "loop tree"]  # a CPU interprets those
    assert {row.verdict for row in judged} <= {"right", "rounding"}, str(found)


@pytest.mark.parametrize("name", TRITON_FAULTS)
def test_a_seeded_fault_of_stock_is_located(name: str) -> None:
    seeded = TRITON_FAULTS[name]
    with seeded.make():
        found = lab.blame(chain, *(x.cuda() for x in inputs()), compiler="stock")
    assert found.fault is not None, str(found)
    assert found.fault.stage == seeded.stage, str(found)
    if seeded.stage == "kernel":
        assert found.fault.kernel.startswith("triton_") and "tl.store" in found.fault.code
        assert found.fault.span is not None and "faulty_stock" in found.fault.span.file
