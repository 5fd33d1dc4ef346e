"""Trace, lower and schedule functions; verify and interpret every schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from inductor_lab.compiler.base.options import FusionOptions, Options
from inductor_lab.compiler.ir.program import LoopProgram
from inductor_lab.compiler.lower.graph import lower_graph, lowered
from inductor_lab.compiler.lower.ops.matmul_nests import mark
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.schedule.verify import verify_schedule
from inductor_lab.compiler.torch_door import torch_api
from tests.tracing import through_aot


@dataclass
class Scheduled:
    """A compiler that stops after scheduling and interprets the schedule.

    `schedules` are its schedules by phase: "forward", "backward" or "inference".
    """

    fusion: FusionOptions = field(default_factory=FusionOptions)
    schedules: dict[str, Schedule] = field(default_factory=dict)

    def compiler(self, name: str) -> Callable[..., Any]:
        def compile_graph(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
            program = lower_graph(module, name, Options())
            schedule = schedule_program(program, self.fusion)
            verify_schedule(schedule)
            self.schedules[name] = schedule
            return torch_api.boxed(lambda *args: list(schedule.run(*args)))

        return compile_graph

    def backend(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        return through_aot(module, inputs, self.compiler)

    def __call__(self, function: Callable[..., Any], *args: Any, dynamic: bool = False) -> Any:
        torch.compiler.reset()
        compiled = torch.compile(function, backend=self.backend, fullgraph=True, dynamic=dynamic)
        return compiled(*args)


def traced(
    function: Callable[..., Any], *args: torch.Tensor, products: bool = False
) -> LoopProgram:
    """The loop program of a function without gradients; nothing runs.

    With `products`, matrix products may be loop nests.
    """
    table = dict(decomposition_table(lowered()))
    module = make_fx(function, decomposition_table=table, tracing_mode="fake")(*args)
    module.graph.eliminate_dead_code()
    mark(module, [node.name for node in module.graph.nodes] if products else [])
    return lower_graph(module, function.__name__, Options())


def planned(function: Callable[..., Any], *args: torch.Tensor, **fusion: Any) -> Schedule:
    """The verified schedule of a function; keyword arguments are passed to `FusionOptions`."""
    schedule = schedule_program(traced(function, *args), FusionOptions(**fusion))
    verify_schedule(schedule)
    return schedule


def checked(function: Callable[..., Any], *args: torch.Tensor, **fusion: Any) -> Schedule:
    """Like `planned`, and compares the interpreted schedule with eager mode."""
    schedule = planned(function, *args, **fusion)
    expected = function(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    results = schedule.run(*args)
    assert len(results) == len(expected)
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result, value)
    return schedule


def reasons(schedule: Schedule, producer: str, consumer: str) -> dict[str, str]:
    """The reasons against fusing a pair, by rule: those of the first attempt that was refused."""
    attempts = schedule.decisions.by_pair[producer, consumer]
    found: dict[str, str] = {}
    for attempt in reversed(attempts):
        found |= {v.rule: v.reason for v in attempt.verdicts if v.reason is not None}
    return found
