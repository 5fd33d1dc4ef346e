"""Loop trees: legal after every pass, interpreted like the schedule, and printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.base.passes import optional, switched_off
from inductor_lab.compiler.codegen.cpu import passes, plan
from inductor_lab.compiler.codegen.cpu.passes import PASSES, cpu_tree
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    ElementAlias,
    Init,
    Let,
    Loop,
    LoopKind,
    Store,
    Tree,
)
from inductor_lab.compiler.codegen.tree.run import run_tree, run_trees
from inductor_lab.compiler.codegen.tree.verify import InvalidTree, verify_tree
from inductor_lab.compiler.ir.expr import Load, Temp
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.lower.graph import lower_graph
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.schedule import Group
from tests.codegen.cpp_cases import POINTWISE, REDUCTIONS
from tests.tracing import through_aot
from tests.tuning import tuned

ROWS = 600  # rows are interpreted one by one; with the GRAIN below, these are many
CASES = {
    name: (function, tuple(x[:ROWS] if len(getattr(x, "shape", ())) > 1 else x for x in given))
    for name, (function, given) in (POINTWISE | REDUCTIONS).items()
}
SMALL = {"GRAIN": 16, "SMALLEST_TRANSPOSED": 0, "STREAMED_BYTES": 0}
"""Constants with which passes also change small programs."""
SETTINGS: dict[str, tuple[frozenset[str], dict[str, int]]] = {
    "simple": (optional(PASSES), {}),
    "every pass": (frozenset(), SMALL),
}


@dataclass
class Interpreted:
    """A compiler that interprets loop trees, and verifies every tree."""

    setting: str
    groups: int = 0

    def compile_graph(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        schedule = schedule_program(lower_graph(module, "graph", Options()), Options().fusion)
        off, _ = SETTINGS[self.setting]

        def tree_of(group: Group) -> Tree:
            self.groups += 1
            made = cpu_tree(group, schedule.program.buffers, results=group.stored, off=off)
            for step in made.steps:
                verify_tree(step.tree)
            return made.tree

        def run(*given: Any) -> Any:
            inputs = given[0] if len(given) == 1 and isinstance(given[0], list) else given
            return list(run_trees(schedule, tree_of, inputs))

        return run

    def backend(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        return through_aot(module, inputs, lambda name: self.compile_graph)


def test_a_tuning_constant_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="GRAINS"), tuned(GRAINS=16):
        pass


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", CASES)
def test_a_tree_agrees_with_eager_mode(name: str, setting: str) -> None:
    function, args = CASES[name]
    compiler = Interpreted(setting)
    torch.compiler.reset()
    with tuned(**SETTINGS[setting][1]):
        got = torch.compile(function, backend=compiler.backend, fullgraph=True)(*args)
    assert compiler.groups, "nothing was run"
    torch.testing.assert_close(got, function(*args), equal_nan=True)


# ---- legal trees -------------------------------------------------------------------------------

I0, J0 = Axis("i0", 8), Axis("j0", 4)
T0 = Temp("t0", torch.float32)
X = Load("x", (Index.of(I0) * 4 + Index.of(J0),), torch.float32)
SUM: Tree = (
    Loop(
        I0,
        LoopKind.PARALLEL,
        (
            Init("acc0", "sum", torch.float32),
            Loop(J0, LoopKind.REDUCE, (Let(T0, X), Accumulate("acc0", "sum", T0))),
            Store("y", Index.of(I0), Temp("acc0", torch.float32)),
        ),
    ),
)


def changed(*body: Any) -> Tree:
    (loop,) = SUM
    assert isinstance(loop, Loop)
    return (replace(loop, body=body),)


INIT, INNER, STORE = SUM[0].body  # type: ignore[union-attr]
WRONG: dict[str, Tree] = {
    "accumulator acc0 is not initialized": changed(INNER, STORE),
    "accumulator acc0 is a max, not a sum": changed(replace(INIT, kind="max"), INNER, STORE),
    "t0 is read but not defined": changed(INIT, INNER, replace(STORE, value=T0)),
    "the loop variable j0 is used outside its loop": changed(replace(STORE, value=X)),
    "a loop over i0 inside another loop over i0": changed(SUM[0]),
    "a loop inside the vector loop over i0": (replace(SUM[0], kind=LoopKind.VECTOR),),
    "t0 aliases row0 with 1 indices": changed(ElementAlias("t0", "row0", (Index.of(I0),))),
}


def test_a_legal_tree_is_accepted_and_runs() -> None:
    verify_tree(SUM)
    x, y = torch.arange(32.0), torch.zeros(8)
    run_tree(SUM, {"x": x, "y": y}, {})
    torch.testing.assert_close(y, x.view(8, 4).sum(1))


@pytest.mark.parametrize("why", WRONG)
def test_an_illegal_tree_is_rejected(why: str) -> None:
    with pytest.raises(InvalidTree, match=re.escape(why)):
        verify_tree(WRONG[why])


def test_a_pass_without_effect_returns_the_same_tree() -> None:
    buffers: dict[str, Any] = {}
    plain = plan.plan_of(SUM)
    facts = passes.Facts(plain, buffers)
    for step in passes.OF_LOOPS[:-3]:
        assert step.apply(SUM, facts) is SUM, step.name


def test_passes_that_are_needed_stay_on() -> None:
    assert switched_off(PASSES, ("checks", "tiles")) == {"tiles"}
    assert switched_off(PASSES, ("all",)) == optional(PASSES)
