"""The checks of generated code: C++ and Triton kernels, host programs, and a whole backend.

Kernels run in a process without Python code of the student (`process.py`, `runner`).
"""

from __future__ import annotations

import importlib.util
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import torch

from inductor_lab import mini
from inductor_lab.course.capstone import process, triton_printer
from inductor_lab.course.capstone.judge import Judge, scheduled
from inductor_lab.course.capstone.kernel_text import unexpected
from inductor_lab.course.capstone.programs import (
    GATES,
    LARGE,
    POINTWISE,
    PRODUCTS,
    REDUCTIONS,
    VIEWS,
    Kinds,
    Program,
    Sizes,
    each_line,
)
from inductor_lab.course.capstone.values import difference, from_data, kernels, to_data, traffic
from inductor_lab.course.language import language, say
from inductor_lab.debug.untrusted.remote import Raised, Stopped
from inductor_lab.mini import cpp, fuse, loops, memory

Network = tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]
"""Weights, inputs, targets."""


class Kernels(Judge):
    """Generated kernels.  Reductions are also tried with only positive and only negative values,
    where a wrong first value shows."""

    before: ClassVar[str | None] = None
    counts: ClassVar[str] = "1 2 4 6 8"
    kinds: ClassVar[Kinds] = (POINTWISE, REDUCTIONS, VIEWS, GATES)

    def cases(self, draw: random.Random) -> Iterator[Program]:
        for before in ("torch.sigmoid({a})", "-torch.sigmoid({a})"):
            yield from each_line(draw, (REDUCTIONS,), before, self.sizes)
        yield from super().cases(draw)


class Printed(Kernels):
    """The C++ compiles without warnings, and computes the same in a process without Python of the
    student."""

    def judge(self, solution: Any, case: Program) -> str | None:
        plan = memory.plan(scheduled(case))
        made = solution("kernels", to_data(plan.schedule))
        with self.start() as runner:
            try:
                said, results = runner.begin()("cpp", to_data(plan), made, case.inputs())
            except (Raised, Stopped) as error:
                return say("{s}\nthe kernels cannot be compiled or called: {e}", s=plan.schedule,
                           e=error)  # fmt: skip
        if said:
            return say("{s}\nthe compiler says:\n{e}", s=plan.schedule, e=said)
        wrong = difference(results, case.results())
        return f"{plan.schedule}\n{from_data(made).functions}\n{wrong}" if wrong else None


class PrintedTriton(Kernels):
    """The Triton kernels compute the same in Triton's interpreter, stay inside of their buffers,
    have no races, and access as few elements as those of the reference."""

    sizes: ClassVar[Sizes] = LARGE

    def smaller(self, case: Program) -> Iterable[Program]:
        """Fewer lines of the same sizes: with few points, one program computes everything."""
        return (one for one in case.smaller() if one.rows == case.rows)

    def judge(self, solution: Any, case: Program) -> str | None:
        if importlib.util.find_spec("triton") is None:
            return say("this step needs Triton: pip install triton")
        schedule = scheduled(case)
        made = solution("triton_kernels", to_data(schedule))
        printed = from_data(made)
        said = unexpected(printed.functions)
        if not said:
            said, results, accesses = self._run(schedule, made, case)
        wrong = said or difference(results, case.results())
        if wrong:
            return f"{schedule}\n{printed.functions}\n{wrong}"
        reference = to_data(triton_printer.print_kernels(schedule))
        _, _, enough = process.run_triton(*_arguments(schedule, reference, case))
        self.count("loads and stores", accesses, enough)
        if accesses > 1.25 * enough:  # points in another order repeat other elements
            return say("{s}\n{a:,} elements are loaded and stored, {b:,} are enough",
                       s=printed.functions, a=accesses, b=enough)  # fmt: skip
        return None

    def _run(self, schedule: fuse.Schedule, made: Any, case: Program) -> tuple[str, Any, int]:
        """What is wrong with the accesses; the results; the number of loads and stores."""
        with self.start() as runner:
            try:
                found: tuple[str, Any, int] = \
                    runner.begin()("triton", *_arguments(schedule, made, case))
            except (Raised, Stopped) as error:
                return say("the kernels cannot be run: {e}", e=error), [], 0
        return found


def _arguments(schedule: fuse.Schedule, made: Any, case: Program) -> tuple[Any, ...]:
    """Those of `process.run_triton`; the size of a block differs from case to case."""
    return to_data(schedule), made, case.inputs(), 4 << case.seed % 3, language()


class Hosted(Judge):
    """Calls of the host program call the kernels, and keep earlier results."""

    kinds: ClassVar[Kinds] = (PRODUCTS, POINTWISE, REDUCTIONS)
    before: ClassVar[str | None] = None
    counts: ClassVar[str] = "1 2 4 6 8"

    def judge(self, solution: Any, case: Program) -> str | None:
        """The kernels are those of another program, so only a call of them is right."""
        plan = memory.plan(scheduled(case))
        other = altered(plan.schedule)
        calls = [case.inputs(shift) for shift in (0, 1, 2)]
        results, source = solution(
            "call_host", to_data(plan), to_data(cpp.print_kernels(other)), calls)  # fmt: skip
        for number, (found, inputs) in enumerate(zip(results, calls, strict=True), 1):
            wrong = difference(found, other.run(*inputs))
            if wrong:
                return say("{s}\ncall {n} of 3: {w} (what the kernels compute)", s=source,
                           n=number, w=wrong)  # fmt: skip
        return None


def altered(schedule: fuse.Schedule) -> fuse.Schedule:
    """The schedule with 0.25 added to each value that a nest without a reduction stores."""
    def nest(one: loops.Nest) -> loops.Nest:
        dtype = schedule.program.buffers[one.out].dtype
        if one.reduce or not dtype.is_floating_point:
            return one
        body = loops.Op("add", (one.body, loops.Const(0.25, dtype)), dtype)
        return replace(one, body=body)

    items = (replace(item, steps=tuple(map(nest, item.steps))) if isinstance(item, fuse.Group)
             else item for item in schedule.items)  # fmt: skip
    return replace(schedule, items=tuple(items))


class Trained(Judge):
    """A network trains with the student's backend as in eager mode."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        for rows, columns in ((4, 3), (16, 8)):
            yield rows, columns, draw.randrange(1 << 30)

    def smaller(self, case: Any) -> Iterable[Any]:
        return ()

    def described(self, case: Any) -> str:
        return say("a network with two layers: {a} rows of {b} numbers", a=case[0], b=case[1])

    def judge(self, solution: Any, case: Any) -> str | None:
        given = network(*case)
        losses, weights, found = solution("train", *given)
        eager, right = process.training(*given, lambda f: f)
        for number, (mine, theirs) in enumerate(zip(losses, eager, strict=True)):
            if not math.isclose(mine, theirs, rel_tol=1e-9):
                return say("the loss of step {n} is {a}; in eager mode it is {b}", n=number,
                           a=mine, b=theirs)  # fmt: skip
        wrong = difference(weights, right)
        if wrong:
            return say("the weights after training: {w}", w=wrong)
        return self._graphs(found, given)

    def _graphs(self, found: Any, given: Network) -> str | None:
        """Forward and backward were compiled, each to few kernels."""
        graphs: list[mini.Graph] = []

        def backend(module: Any, inputs: Any) -> Any:
            return mini.pipeline.compile_captured(module, inputs, graphs)

        process.training(*given, lambda f: torch.compile(f, backend=backend))
        reference = {p.kind: p.schedule for each in graphs for p in each.parts}
        mine = {kind: fuse.Schedule(from_data(program), from_data(items))
                for kind, program, items in found}  # fmt: skip
        if mine.keys() != reference.keys():
            return say("compiled: {a}; it should be {b}", a=", ".join(mine) or "-",
                       b=", ".join(reference))  # fmt: skip
        a, b = (sum(map(kernels, each.values())) for each in (mine, reference))
        self.count("kernels", a, b)
        moved = [sum(traffic(s.program, s.items) for s in each.values())
                 for each in (mine, reference)]  # fmt: skip
        self.count("bytes", *moved)
        if a > b:
            return say("{a} kernels, {b} are enough", a=a, b=b)
        return None


def network(rows: int, columns: int, seed: int) -> Network:
    """Weights, inputs and targets."""
    draw = torch.Generator().manual_seed(seed)
    shapes = ((columns, 12), (12,), (12, 5), (rows, columns), (rows, 5))
    *weights, x, target = (torch.randn(shape, generator=draw, dtype=torch.float64)
                           for shape in shapes)  # fmt: skip
    return weights, x, target.softmax(1)
