"""Blame of programs that write to parameters, through `.data`, and through views."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.debug.blame.lost_writes import (
    behind_result,
    written_instead,
    written_reads,
)
from inductor_lab.debug.blame.stages import Difference
from inductor_lab.debug.compare.values import Before


class Scaled(torch.nn.Module):
    """Writes to its parameter through `.data`, and returns nothing with a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.w * x
        self.w.data.fill_(0.25)
        return y.detach() * 2


def test_an_unused_backward_does_not_crash_blame() -> None:
    module = Scaled()
    found = lab.blame(module, torch.ones(4, 4))
    assert found.fault is None and found.verdict == "right", str(found)
    (row,) = (row for row in found.stages if row.where == "g0.backward")
    assert row.verdict == "unknown" and row.says.startswith("not called")
    assert torch.equal(module.w, torch.ones(4, 4)), "state is put back"
    assert "w after the call" in " ".join(found.results)


def test_a_write_through_data_is_compared() -> None:
    given = [torch.ones(3), torch.ones(3), torch.tensor([float("nan")])]
    before = Before(given)
    given[0].data.fill_(2)
    assert [number for number, _ in before.written(given)] == [0]


def through_a_view(x: Any) -> Any:
    e = x.expand(4, -1)
    e.masked_fill_(torch.ones(4, 3) > 0, 2.0)
    return x + 1


def in_two_places(x: Any) -> Any:
    x[0].fill_(1)
    y = x.sin()
    return y * 2


def test_the_writing_node_is_blamed_and_not_its_consumer() -> None:
    module = torch.fx.symbolic_trace(in_two_places)
    captured = fx_graph(module, "captured")
    x = torch.zeros(2, dtype=torch.float64)
    reads = written_reads(module, [x])
    reader = next(node for node in captured.nodes if node.target == "sin")
    lost = {"x": torch.zeros(2, dtype=torch.float64)}
    kept = {**lost, "updated": torch.tensor([1.0, 0.0], dtype=torch.float64)}

    found = Difference(reader, "sin became sin_1")
    blamed = written_instead(captured, found, reads, lost)
    assert blamed is not None and blamed.node.target == "fill_"
    assert written_instead(captured, found, reads, kept) is found


@pytest.mark.parametrize("left", ["x after the call", "result 0"])
def test_a_wrong_write_has_a_source_line(left: str) -> None:
    module = torch.fx.symbolic_trace(through_a_view)
    captured = fx_graph(module, "captured")
    x = torch.zeros(1, 3, dtype=torch.float64)
    found = behind_result(module, captured, ["x"], left, written_reads(module, [x]))
    assert found is not None
    assert found.node.target == ("masked_fill_" if left.startswith("x") else "operator.add")
