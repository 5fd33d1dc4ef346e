"""The checks of the steps: properties of what a student's stage returns, on hidden programs.

Each judge draws programs, sends them to the student's process, and gets data back.  The data is
verified and run here, and compared with eager mode in float64.  Bytes, kernels and saved values are
counted here too, and compared with those of the small compiler.  `generated.py` has the judges of
generated code.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import torch

from inductor_lab.course.capstone import process
from inductor_lab.course.capstone.generated import Hosted, Printed, PrintedTriton, Trained
from inductor_lab.course.capstone.grouping import conflict
from inductor_lab.course.capstone.judge import Judge, fused, lowered, scheduled, wrong_program
from inductor_lab.course.capstone.programs import (
    GATES,
    LARGE,
    POINTWISE,
    PRODUCTS,
    REDUCTIONS,
    Kinds,
    Program,
    Sizes,
    trace,
)
from inductor_lab.course.capstone.repository import Step
from inductor_lab.course.capstone.values import (
    difference,
    from_data,
    illegal,
    kernels,
    operations,
    to_data,
    traffic,
)
from inductor_lab.course.language import say
from inductor_lab.debug.untrusted.remote import Process
from inductor_lab.mini import autograd, decompose, fuse, loops, lower, memory


class Interpreter(Judge):
    """Programs computed by the student's interpreter equal eager mode."""

    def cases(self, draw: random.Random) -> Iterator[Any]:
        for rank in (0, 1, 1, 2, 2, 3, 3):
            sizes = tuple(draw.randint(1, 5) for _ in range(rank))
            coefs = tuple(draw.randint(-6, 6) for _ in range(rank))
            yield loops.Affine(draw.randint(-3, 9), coefs), sizes
        yield from super().cases(draw)

    def smaller(self, case: Any) -> Iterable[Any]:
        return () if isinstance(case, tuple) else case.smaller()

    def described(self, case: Any) -> str:
        if isinstance(case, tuple):
            return f"({case[0]}).bounds({case[1]})"
        return super().described(case)

    def judge(self, solution: Any, case: Any) -> str | None:
        if isinstance(case, tuple):
            at, sizes = case
            found, right = solution("bounds", *at, sizes), at.bounds(sizes)
            return None if found == right else say(
                "bounds are {a}, your function gave {b}", a=right, b=found)  # fmt: skip
        program = lowered(case)
        wrong = difference(solution("interpret", to_data(program), case.inputs()), case.results())
        return f"{program}\n{wrong}" if wrong else None


class Lowered(Judge):
    """The program computes what eager mode computes, with nests for all that can be nests."""

    def judge(self, solution: Any, case: Program) -> str | None:
        program, reference = from_data(solution("lower", case)), lowered(case)
        wrong = wrong_program(program, case)
        if wrong:
            return f"{program}\n{wrong}"
        calls = [s for s in program.steps if isinstance(s, loops.Call)]
        allowed = sum(isinstance(s, loops.Call) for s in reference.steps)
        if len(calls) > allowed:
            return say("{a} calls of ATen, {b} are needed: {s}", a=len(calls), b=allowed,
                       s=calls[0])  # fmt: skip
        mine, theirs = (traffic(p, p.steps) for p in (program, reference))
        self.count("bytes", mine, theirs)
        if mine > theirs:
            return say("the program moves {a:,} bytes, {b:,} are enough", a=mine, b=theirs)
        return None


class Decomposed(Lowered):
    """With the student's formulas nothing but loops remains, and they compute the same."""

    kinds: ClassVar[Kinds] = (GATES,)
    counts: ClassVar[str] = "2 2 2 3"

    def judge(self, solution: Any, case: Program) -> str | None:
        large = case.inputs()
        program = from_data(solution("lower", case))
        wrong = wrong_program(program, case)
        if wrong is None:
            wrong = difference(program.run(*(1e3 * x for x in large)),
                               case.function()(*(1e3 * x for x in large)))  # fmt: skip
            wrong = say("with inputs 1000 times as large: {w}", w=wrong) if wrong else None
        calls = [str(s) for s in program.steps if isinstance(s, loops.Call)]
        if wrong or calls:
            return wrong or say("an operator is left: {s}", s=calls[0])
        reference = lowered(case)
        mine, theirs = (traffic(p, p.steps) for p in (program, reference))
        self.count("bytes", mine, theirs)
        if mine > 1.5 * theirs:
            return say("the program moves {a:,} bytes, {b:,} are enough", a=mine, b=theirs)
        return None


class Partitioned(Judge):
    """The two halves compute results and gradients; little is saved, no product is repeated."""

    counts: ClassVar[str] = "2 2 3 3 4 5"

    def judge(self, solution: Any, case: Program) -> str | None:
        results = len(case.results())
        draw = torch.Generator().manual_seed(case.seed + 1)
        tangents = [torch.randn(r.shape, generator=draw, dtype=r.dtype) for r in case.results()]
        halves = from_data(solution("partition", case, tangents))
        if not isinstance(halves, tuple) or len(halves) != 2:
            return say("it should be a forward and a backward")
        primals = process.leaves(case.inputs())
        right = case.function()(*primals)
        gradients = torch.autograd.grad(right, primals, tangents, materialize_grads=True)
        forward, backward = halves
        wrong = illegal(forward, primals)
        if wrong:
            return say("the forward: {w}", w=wrong)
        out = forward.run(*(x.detach() for x in primals))
        wrong = difference(out[:results], [r.detach() for r in right])
        if wrong:
            return say("the forward: {w}", w=wrong)
        given = [*out[results:], *tangents]
        wrong = illegal(backward, given) or difference(backward.run(*given), gradients)
        if wrong:
            return say("the backward: {w}", w=wrong)
        return self._costs(forward, backward, case, tangents)

    def _costs(self, forward: Any, backward: Any, case: Program, tangents: Any) -> str | None:
        results = len(tangents)
        joint = trace(process.joint_of(case.function(), results),
                      [*process.leaves(case.inputs()), *tangents], decompose.table())  # fmt: skip
        split = autograd.partition(joint, results)
        theirs = lower.Lowering(split.forward).program()
        mine, bound = saved_bytes(forward, results), saved_bytes(theirs, results)
        self.count("saved bytes", mine, bound)
        if mine > bound:
            return say("{a:,} bytes are saved, {b:,} are enough", a=mine, b=bound)
        needed = calls_in(theirs) + calls_in(lower.Lowering(split.backward).program())
        made = calls_in(forward) + calls_in(backward)
        if made > needed:
            return say("{a} products are computed, {b} are enough", a=made, b=needed)
        return None


def saved_bytes(forward: loops.Program, results: int) -> int:
    """The bytes of the buffers that are returned for the backward, without inputs and results."""
    names = {view.buffer for view in forward.outputs[results:]} - set(forward.inputs)
    names -= {view.buffer for view in forward.outputs[:results]}
    return sum(forward.buffers[name].bytes for name in names)


def calls_in(program: loops.Program) -> int:
    return sum(isinstance(step, loops.Call) for step in program.steps)


class Substituted(Judge):
    """The program computes the same, and moves as few bytes as that of the small compiler."""

    counts: ClassVar[str] = "2 2 3 3 4 4 5 6 7 8"
    before: ClassVar[str | None] = "2 * {a} + 1"

    def judge(self, solution: Any, case: Program) -> str | None:
        before = lowered(case)
        reference = fuse.substitute(before)[0]
        program = from_data(solution("substitute", to_data(before)))
        wrong = wrong_program(program, case)
        if wrong:
            return f"{program}\n{wrong}"
        mine, theirs = (traffic(p, p.steps) for p in (program, reference))
        self.count("bytes", mine, theirs)
        if mine > theirs:
            return say("before: {p}\nafter: {q}\nthe program moves {a:,} bytes, {b:,} are enough",
                       p=before, q=program, a=mine, b=theirs)  # fmt: skip
        most = max(2 * operations(before), operations(reference))
        if operations(program) > most:
            return say("the program computes {a:,} operations; before it were {b:,}",
                       a=operations(program), b=operations(before))  # fmt: skip
        return None


class Grouped(Judge):
    """Points of a kernel are independent, and there are as few kernels as in the small compiler."""

    counts: ClassVar[str] = "2 2 3 3 4 4 5 6 7 8"
    before: ClassVar[str | None] = "torch.tanh({a})"
    sizes: ClassVar[Sizes] = LARGE
    """With few points, a kernel without shared axes is allowed, and everything fits into it."""

    def judge(self, solution: Any, case: Program) -> str | None:
        program = fused(case)
        schedule = fuse.Schedule(program, from_data(solution("group", to_data(program))))
        steps = schedule.steps()
        if Counter(map(str, steps)) != Counter(map(str, program.steps)):
            return say("it has other steps than the program:\n{s}", s=schedule)
        wrong = wrong_program(replace(program, steps=tuple(steps)), case) or conflict(schedule)
        if wrong:
            return f"{schedule}\n{wrong}"
        reference = fuse.group(program)
        self.count("kernels", kernels(schedule), kernels(reference))
        mine, theirs = (traffic(program, s.items) for s in (schedule, reference))
        self.count("bytes", mine, theirs)
        if kernels(schedule) > kernels(reference):
            return say("{s}\n{a} kernels, {b} are enough", s=schedule, a=kernels(schedule),
                       b=kernels(reference))  # fmt: skip
        if mine > theirs:
            return say("{s}\nthe kernels move {a:,} bytes, {b:,} are enough", s=schedule, a=mine,
                       b=theirs)  # fmt: skip
        return None


class Planned(Judge):
    """Buffers that live at the same time do not overlap, and the block is small."""

    kinds: ClassVar[Kinds] = (PRODUCTS, PRODUCTS, REDUCTIONS, POINTWISE)
    before: ClassVar[str | None] = None
    counts: ClassVar[str] = "2 3 4 5 6 7 8 9 10 12 12"

    def judge(self, solution: Any, case: Program) -> str | None:
        schedule = scheduled(case)
        reference = memory.plan(schedule)
        found = from_data(solution("plan", to_data(schedule)))
        places, last_use = found
        if places.keys() != reference.places.keys():
            names = ", ".join(sorted(places.keys() ^ reference.places.keys()))
            return say("{s}\nthe plan has too many or too few buffers: {n}", s=schedule, n=names)
        wrong = overlap(places, reference)
        if wrong:
            return f"{schedule}\n{wrong}"
        late = [name for name, last in reference.last_use.items() if last_use.get(name) != last]
        if late:
            return say("{s}\n{n} is used last by item {a}, `last_use` is {b}", s=schedule,
                       n=late[0], a=reference.last_use[late[0]], b=last_use.get(late[0]))
        total = max((place.end for place in places.values()), default=0)
        self.count("bytes of memory", total, reference.total)
        if total > 1.25 * reference.total:
            return say("{s}\nthe block has {a:,} bytes, {b:,} are enough", s=schedule, a=total,
                       b=reference.total)  # fmt: skip
        return None


def overlap(places: dict[str, memory.Planned], reference: memory.MemoryPlan) -> str | None:
    """A sentence about a place that is too small, or two that share memory while both live."""
    for name, place in places.items():
        needed = reference.places[name].buffer.bytes
        if place.start < 0 or place.start % memory.ALIGNMENT or place.end - place.start < needed:
            return say("{n} needs {a} bytes from a multiple of {b}; it has {s} to {e}", n=name,
                       a=needed, b=memory.ALIGNMENT, s=place.start, e=place.end)  # fmt: skip
        for other, its in places.items():
            if other < name and place.start < its.end and its.start < place.end:
                a, b = reference.places[name], reference.places[other]
                if a.first <= b.last and b.first <= a.last:
                    return say("{n} and {o} share bytes from {s} on, and both are needed at item "
                               "{i}", n=name, o=other, s=max(place.start, its.start),
                               i=max(a.first, b.first))  # fmt: skip
    return None


JUDGES: dict[str, type[Judge]] = {
    "loops": Interpreter, "lower": Lowered, "decompose": Decomposed, "autograd": Partitioned,
    "substitute": Substituted, "group": Grouped, "memory": Planned, "cpp": Printed,
    "host": Hosted, "pipeline": Trained, "train": Trained,
    "triton": PrintedTriton,
}  # fmt: skip


def judge_of(step: Step, start: Callable[[], Process]) -> Judge:
    """The judge of a step, as an exercise of the course."""
    made = JUDGES[step.name](step, start)
    texts = {"name": f"{step.number}", "title": step.title, "points": step.points,
             "limit": step.limit}  # fmt: skip
    for name, value in texts.items():
        setattr(made, name, value)
    return made
