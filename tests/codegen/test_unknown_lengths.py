"""Optimizations for few rows apply only if the number of rows is known to be small."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.codegen.cpu.loops import point_loops
from inductor_lab.compiler.codegen.cpu.plan import plan_of
from inductor_lab.compiler.codegen.tree.build import build_tree

LENGTHS: dict[str, Callable[[int], int]] = {
    "a quotient": lambda n: n // 100,
    "a small quotient": lambda n: n // 2000,
    "a remainder": lambda n: n % 1000,
    "a difference": lambda n: n - 4000,
}
OPERATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "mean": lambda x: x.mean(1),
    "columns": lambda x: x.mT.contiguous().sum(1),
    "softmax": lambda x: x.softmax(1),
    "running sum": lambda x: x.cumsum(1),
    "argmax": lambda x: x.argmax(1),
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_threads_share_rows_and_not_the_loops_inside_a_row(length: str, operation: str) -> None:
    """Otherwise threads would synchronize once per row: a million times for `n // 100` rows."""

    def function(x: torch.Tensor) -> torch.Tensor:
        rows = x[: LENGTHS[length](x.shape[0])]
        return OPERATIONS[operation](rows[:, None] * torch.arange(100))

    torch.compiler.reset()
    c = lab.inspect(function, torch.randn(4321).double(), options={"dynamic": True})
    torch.testing.assert_close(c.result, function(c.graphs[0].inputs[-1]))
    schedule = c.graphs[0].forward.schedule
    trees = [build_tree(group, schedule.program.buffers) for group in schedule.groups]
    looked_at = [tree for tree in trees if point_loops(tree)]
    assert looked_at
    for tree in looked_at:
        rows_known = all(isinstance(loop.axis.size, int) for loop in point_loops(tree))
        assert rows_known or not plan_of(tree).inner_threads
