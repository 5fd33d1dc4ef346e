"""The threads of a combo: exactly one thread writes each element, once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.codegen.cpu.passes import cpu_tree
from inductor_lab.compiler.codegen.tree.loop_tree import Loop, Store
from inductor_lab.compiler.codegen.tree.visit import walk
from tests.fuzz.check import shared_among

Function = Callable[[torch.Tensor], tuple[torch.Tensor, ...]]


def but_the_first(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = (x.mT @ x).sigmoid()
    y.view(-1)[1:] = 0
    return x.rot90(), y


def but_both_ends(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = (x.mT @ x).tanh()
    y.view(-1)[1:-1] = 0.5
    return x.rot90(), y


def but_the_last(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = (x.mT @ x).exp()
    y.view(-1)[:-1] = 0.5
    return x.rot90(), y


FUNCTIONS: dict[str, Function] = {
    "but the first": but_the_first,
    "but the last": but_the_last,
    "but both ends": but_both_ends,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_element_is_written_by_one_thread(name: str) -> None:
    with shared_among(3):
        check(FUNCTIONS[name], torch.randn(20, 33) / 4)


def check(function: Function, x: torch.Tensor) -> None:
    compilation = lab.inspect(function, x)
    schedule = compilation.graphs[0].forward.schedule
    combos = [group for group in schedule.groups if group.combined]
    assert combos, "no kernel has several parts"
    for part in (part for group in combos for part in group.combined):
        made = cpu_tree(part, schedule.program.buffers, team=True)
        assert made.plan.threads
        writing = [s for s in made.tree if any(isinstance(x, Store) for x in walk((s,)))]
        assert writing and all(isinstance(s, Loop) and s.execution.team for s in writing)
    for _ in range(20):
        torch.testing.assert_close(compilation.compiled(x), function(x))


def test_sums_of_columns_in_many_rows_are_one_parallel_loop() -> None:
    """20 images of 17 rows with 19 columns: not 340 rows with a parallel region each."""
    x = torch.randn(20, 33, 17, 19)
    compilation = lab.inspect(lambda x: x.sum(1), x)
    (kernel,) = compilation.graphs[0].forward.kernels
    body = str(kernel)
    assert body.index("#pragma omp parallel for") < body.index("for (")
    assert "parts_acc" not in body
    torch.testing.assert_close(compilation.result, x.sum(1))
