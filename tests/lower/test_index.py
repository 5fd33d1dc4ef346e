"""A concatenation of few inputs is loops; one of many inputs is a library call."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.ir.program import ExternCall


def doubled(*parts: torch.Tensor) -> torch.Tensor:
    return torch.stack(parts) * 2


@pytest.mark.parametrize(("count", "calls"), [(8, []), (9, ["aten.cat.default"])])
def test_many_inputs_are_left_to_the_library(count: int, calls: list[str]) -> None:
    parts = torch.randn(count, 30).unbind()
    c = lab.inspect(doubled, *parts)
    steps = c.graphs[0].forward.schedule.steps
    assert [step.op for step in steps if isinstance(step, ExternCall)] == calls
    torch.testing.assert_close(c.result, doubled(*parts))


def test_a_thousand_inputs() -> None:
    parts = torch.randn(1000, 3).unbind()
    torch.testing.assert_close(lab.compile(doubled)(*parts), doubled(*parts))
