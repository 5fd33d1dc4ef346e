"""CPU tensors that operators of a GPU read; fake tensors replace those of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.lower.graph import lower_graph, lowered
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.torch_door.torch_api import make_fx


def calls(function: Callable[..., Any], *shapes: tuple[int, ...]) -> list[str]:
    """Library calls of a function of tensors on a GPU."""
    with FakeTensorMode():
        given = [torch.empty(shape, device="cuda") for shape in shapes]
        table = decomposition_table(lowered())
        module = make_fx(lambda *x: (function(*x),), decomposition_table=table)(*given)
    program = lower_graph(module, "test", Options())
    return [step.op for step in program.steps if isinstance(step, ExternCall)]


@pytest.mark.parametrize("function", [
    torch.vmap(lambda x: 20 * torch.tanh(x / 20) + 1),
    lambda x: x * torch.full((), 3.0).sin(),
    lambda x: torch.where(x > 0, x, torch.full((), 2.5)),
])  # fmt: skip
def test_tensors_of_numbers_are_computed_on_the_gpu(function: Callable[..., Any]) -> None:
    assert calls(function, (4, 8)) == []


def test_other_tensors_are_copied_to_the_gpu() -> None:
    assert calls(lambda x: x * torch.arange(3).sum(), (4, 8)) == ["aten._to_copy.default"]
