"""The checks of the steps: properties of what a student's stage returns, on hidden programs.

Each judge draws programs, sends them to the student's process, and gets data back.  The data is
verified and run here, and compared with eager mode in float64.  Bytes, kernels and saved values are
counted here too, and compared with those of the small compiler.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import torch

from inductor_lab import mini
from inductor_lab.course.capstone import process
from inductor_lab.course.capstone.grouping import conflict
from inductor_lab.course.capstone.programs import (
    GATES,
    LARGE,
    POINTWISE,
    PRODUCTS,
    REDUCTIONS,
    SMALL,
    VIEWS,
    Kinds,
    Program,
    Sizes,
    each_line,
    series,
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
from inductor_lab.course.exercise import Exercise
from inductor_lab.course.language import say
from inductor_lab.course.lines import line_in
from inductor_lab.debug.untrusted import Process, Raised, Stopped
from inductor_lab.mini import autograd, cpp, decompose, fuse, loops, lower, memory

Network = tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]
"""Weights, inputs, targets."""
ALL = (POINTWISE, REDUCTIONS, VIEWS, PRODUCTS)


class Judge(Exercise):
    """The check of one step.  `start` begins a process without any of the student's Python."""

    kinds: ClassVar[Kinds] = ALL
    counts: ClassVar[str] = "2 2 3 3 4 5 6 7"
    sizes: ClassVar[Sizes] = SMALL
    before: ClassVar[str | None] = ""
    """First each line of `kinds` is tried alone, after this line; None: it is not."""

    def __init__(self, step: Step, start: Callable[[], Process]) -> None:
        self.step, self.start = step, start
        self.figures: dict[str, list[int]] = {}

    def cases(self, draw: random.Random) -> Iterator[Program]:
        if self.before is not None:
            yield from each_line(draw, self.kinds, self.before, self.sizes)
        yield from series(draw, self.kinds, self.counts, self.sizes)

    def smaller(self, case: Program) -> Iterable[Program]:
        return case.smaller()

    def described(self, case: Any) -> str:
        return str(getattr(case, "described", case))

    def count(self, unit: str, mine: int, reference: int) -> None:
        """A figure for the score, and that of the small compiler."""
        pair = self.figures.setdefault(unit, [0, 0])
        pair[:] = pair[0] + mine, pair[1] + reference

    def scored(self) -> str:
        texts = (say("{unit}: {a:,}; inductor_lab.mini: {b:,}", unit=say(unit), a=a, b=b)
                 for unit, (a, b) in self.figures.items())  # fmt: skip
        return "\n".join(texts)

    def _tried(self, solution: Any, case: Any) -> str | None:
        try:
            return self.judge(solution, case)
        except (Stopped, NotImplementedError):
            raise
        except Raised as raised:
            if "NotImplementedError" in raised.mro:
                raise NotImplementedError from None
            place = solution.process.scratch / "my" / f"{self.step.file}.py"
            return say("it raised {e}{w}", e=raised, w=line_in(raised.frames, str(place)))
        except Exception as error:  # of data that no value can be made of
            e = f"{type(error).__name__}: {error}"
            return say("the check cannot use your answer: {e}", e=e)


def lowered(case: Program) -> loops.Program:
    return lower.Lowering(case.traced(decompose.table())).program()


def fused(case: Program) -> loops.Program:
    return fuse.substitute(lowered(case))[0]


def scheduled(case: Program) -> fuse.Schedule:
    return fuse.group(fused(case))


def wrong_program(program: Any, case: Program) -> str | None:
    """A sentence if the program is illegal, or computes something else than eager mode."""
    return illegal(program, case.inputs()) \
        or difference(program.run(*case.inputs()), case.results())  # fmt: skip


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


class Printed(Judge):
    """The C++ compiles without warnings, and computes the same in a process without Python of the
    student."""

    before: ClassVar[str | None] = None
    counts: ClassVar[str] = "1 2 4 6 8"
    kinds: ClassVar[Kinds] = (POINTWISE, REDUCTIONS, VIEWS, GATES)

    def judge(self, solution: Any, case: Program) -> str | None:
        plan = memory.plan(scheduled(case))
        made = solution("kernels", to_data(plan.schedule))
        with self.start() as runner:
            try:
                said, results = runner.begin()(to_data(plan), made, case.inputs())
            except (Raised, Stopped) as error:
                return say("{s}\nthe kernels cannot be compiled or called: {e}", s=plan.schedule,
                           e=error)  # fmt: skip
        if said:
            return say("{s}\nthe compiler says:\n{e}", s=plan.schedule, e=said)
        wrong = difference(results, case.results())
        return f"{plan.schedule}\n{from_data(made).functions}\n{wrong}" if wrong else None


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


JUDGES: dict[str, type[Judge]] = {
    "loops": Interpreter, "lower": Lowered, "decompose": Decomposed, "autograd": Partitioned,
    "substitute": Substituted, "group": Grouped, "memory": Planned, "cpp": Printed,
    "host": Hosted, "pipeline": Trained, "train": Trained,
}  # fmt: skip


def judge_of(step: Step, start: Callable[[], Process]) -> Judge:
    """The judge of a step, as an exercise of the course."""
    made = JUDGES[step.name](step, start)
    texts = {"name": f"{step.number}", "title": step.title, "points": step.points,
             "limit": step.limit}  # fmt: skip
    for name, value in texts.items():
        setattr(made, name, value)
    return made


