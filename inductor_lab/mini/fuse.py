"""Fusion: substitute loops into their readers, then let loops over the same points share a kernel.

In:    a `Program` with one nest for each operator.
Out:   `substitute`: a `Program` with fewer nests.  `group`: a `Schedule`, whose groups are kernels.

    b[i0] = x[i0] + 1; c[i0] = b[i0] * 2     ->   c[i0] = (x[i0] + 1) * 2        (substitution)
    m[i0] = max over i1 of x[i0, i1]         ->   for each i0:                  (a group with one
    y[i0, i1] = x[i0, i1] - m[i0]                     m = max over i1; y = ...   shared axis, i0)

A nest stores at its own axes, so a buffer is a function of them.  Where another nest loads the
buffer, `positions` finds the point that wrote that element.  Substitution inserts the body of that
point.  A group is legal if each load of a shared point reads what the same point wrote.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import inductor_lab.mini.loops as loops
from inductor_lab.mini.loops import Affine, Call, Const, Expr, Index, Load, Nest, Op, Program, Step

LARGEST = 100
"""No body gets more operations and loads than this."""
SIMPLE = """add sub mul neg cast where maximum minimum relu abs eq ne lt le gt ge logical_and
    logical_or logical_not""".split()
"""Operations that are computed twice rather than stored."""
FEW = 32
"""With fewer shared points than this, there is too little to divide among threads."""
LOCAL_BYTES = 65536
"""A buffer of a shared point is on the stack up to this size."""


def positions(at: Affine, sizes: Sequence[int], producer: Nest) -> list[Affine] | None:
    """The axes of the point of `producer` that wrote element `at`; None if they are not affine.

    `at` is an index in a nest with these sizes.  The producer stores at strides t0 > t1 > ...: the
    largest stride that divides a term decides which axis it belongs to.

    The producer, 4 × 6, stores at 6*i0 + i1:   at 6*i0 + i1 + 12   ->   axes i0 + 2 and i1
    """
    left, found = at, [Affine(0, (0,) * len(sizes)) for _ in range(producer.kept)]
    axes = [k for k in range(producer.kept) if producer.sizes[k] > 1]
    for axis in sorted(axes, key=lambda k: -producer.store.coefs[k]):
        stride = producer.store.coefs[axis]
        if stride <= 0:
            return None
        own = tuple(c // stride if c % stride == 0 else 0 for c in left.coefs)
        rest = tuple(c if c % stride else 0 for c in left.coefs)
        found[axis] = Affine(left.offset // stride, own)
        left = Affine(left.offset % stride, rest)
        for index, n in ((found[axis], producer.sizes[axis]), (left, stride)):
            low, high = index.bounds(sizes)
            if low < 0 or high >= n:
                return None
    return found if left.bounds(sizes) == (0, 0) else None


def inlined(consumer: Nest, producer: Nest) -> Nest | None:
    """The consumer with the producer's body in place of its loads; None if they are not affine.

    b[i0] = x[i0] + 1   and   c[i0] = b[i0 + 2] * y[i0]   ->   c[i0] = (x[i0 + 2] + 1) * y[i0]
    """
    def at_point(expr: Expr, point: Sequence[Affine]) -> Expr:
        if not isinstance(expr, Load | Index):
            return expr
        pairs = list(zip(expr.at.coefs, point, strict=True))
        offset = expr.at.offset + sum(c * axis.offset for c, axis in pairs)
        rank = range(len(consumer.sizes))
        coefs = tuple(sum(c * axis.coefs[k] for c, axis in pairs) for k in rank)
        return expr._replace(at=Affine(offset, coefs))

    def leaf(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or expr.buffer != producer.out:
            return expr
        return loops.rewrite(producer.body, lambda each: at_point(each, points[expr.at] or ()))

    ats = {load.at for load in consumer.loads() if load.buffer == producer.out}
    points = {at: positions(at, consumer.sizes, producer) for at in ats}
    if None in points.values():
        return None
    return replace(consumer, body=loops.rewrite(consumer.body, leaf))


def reason_to_store(producer: Nest, consumer: Nest, loads: int, is_stored: bool) -> str | None:
    """Why the producer is not substituted into the consumer; None if it may be.

    `loads` is the number of loads of its buffer in the program.
    """
    work = {e.name for e in loops.parts(producer.body) if isinstance(e, Op)}
    own = sum(load.buffer == producer.out for load in consumer.loads())
    rules = {
        "it is a reduction": producer.reduce,
        "it is empty": 0 in producer.sizes or 0 in consumer.sizes,
        "its buffer is stored in any case": is_stored and (work or producer.loads()),
        "it is expensive, and read more than once": loads > 1 and not work.issubset(SIMPLE),
        "each of its points would be computed several times":
            work and math.prod(consumer.sizes) > math.prod(producer.sizes),
        "the body would be too large":
            size_of(consumer.body) + own * size_of(producer.body) > LARGEST,
    }  # fmt: skip
    return next((reason for reason, holds in rules.items() if holds), None)


def size_of(expr: Expr) -> int:
    return sum(not isinstance(e, Const) for e in loops.parts(expr))


def substitute(program: Program) -> tuple[Program, dict[tuple[str, str], str]]:
    """The program after substitution, and the reason for each pair of nests that stays two."""
    nests = {step.out: step for step in program.steps if isinstance(step, Nest)}
    counts = Counter(load.buffer for nest in nests.values() for load in nest.loads())
    calls = (loops.reads(step) for step in program.steps if isinstance(step, Call))
    stored = program.returned().union(*calls)
    reasons: dict[tuple[str, str], str] = {}
    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, Nest):
            for name in sorted(loops.reads(step) & nests.keys()):
                why = reason_to_store(nests[name], step, counts[name], name in stored)
                whole = None if why else inlined(step, nests[name])
                step = whole or step
                if whole is None:
                    reasons[name, step.out] = why or "its index is not affine"
                    stored.add(name)
            nests[step.out] = step
        steps.append(step)
    needed = program.returned()
    for step in reversed(steps):
        needed |= loops.reads(step) if isinstance(step, Call) or step.out in needed else set()
    kept = (step for step in steps if isinstance(step, Call) or step.out in needed)
    return replace(program, steps=tuple(kept)), reasons


@dataclass(frozen=True)
class Group:
    """Nests that share their first axes, and a kernel; `local` buffers are not read elsewhere."""

    sizes: tuple[int, ...]
    steps: tuple[Nest, ...]
    local: frozenset[str] = frozenset()

    def __str__(self) -> str:
        shared = ", ".join(f"i{k} < {n}" for k, n in enumerate(self.sizes))
        lines = [f"for {shared}:" if shared else "once:"]
        lines += [nest.inside(len(self.sizes)) for nest in self.steps]
        lines += [f"only in this kernel: {', '.join(sorted(self.local))}"] if self.local else []
        return "\n    ".join(lines)


def steps_of(item: Group | Call) -> tuple[Step, ...]:
    return item.steps if isinstance(item, Group) else (item,)


@dataclass(frozen=True)
class Schedule:
    """Groups and calls in order; each group is a kernel."""

    program: Program
    items: tuple[Group | Call, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.items))

    def run(self, *args: Any) -> list[Any]:
        return self.program.interpret(self.steps(), {}, args)

    def steps(self) -> list[Step]:
        return [step for item in self.items for step in steps_of(item)]


def is_legal(nests: Sequence[Nest], shared: int) -> bool:
    """Does each load of another nest's buffer read what the same shared point wrote?

    b[i0] = ...; c[i0] = b[i0]   ->   yes            b[i0] = ...; c[i0] = b[i0 + 1]   ->   no
    """
    by_name = {nest.out: nest for nest in nests}
    for nest in nests:
        units = [tuple(int(j == k) for j in range(len(nest.sizes))) for k in range(shared)]
        for load in nest.loads():
            if load.buffer in by_name:
                point = positions(load.at, nest.sizes, by_name[load.buffer])
                if point is None or point[:shared] != [Affine(0, unit) for unit in units]:
                    return False
    return True


def share_data(nests: Sequence[Nest], shared: int) -> bool:
    """Does the last nest load what another one loads or stores, at the same shared point?"""
    *others, last = ({(load.buffer, load.at.coefs[:shared]) for load in nest.loads()}
                     for nest in nests)  # fmt: skip
    return bool(last & {(n.out, n.store.coefs[:shared]) for n in nests}.union(*others))


def join(group: Group, nest: Nest) -> Group | None:
    """The group with one more nest, and as many shared points as are legal; None if too few.

    A group over (64, 8), and a nest over 64 that sums the second axis   ->   a group over (64,)
    """
    every = (*group.steps, nest)
    points = max(math.prod(each.shape) for each in every)
    choices = [group.sizes[:depth] for depth in range(len(group.sizes) + 1)]
    for sizes in sorted(choices, key=len, reverse=True):
        depth = len(sizes)
        fits = all(each.kept >= depth and each.sizes[:depth] == sizes for each in every)
        is_enough = math.prod(sizes) >= min(FEW, points // FEW)
        if fits and is_enough and share_data(every, depth) and is_legal(every, depth):
            return Group(sizes, every)
    return None


def group(program: Program) -> Schedule:
    """Put each nest into the last group that it may join, or into a new one."""
    items: list[Group | Call] = []
    for step in program.steps:
        joined, place = None, len(items)
        while isinstance(step, Nest) and joined is None and place > 0:
            place -= 1
            item = items[place]
            joined = join(item, step) if isinstance(item, Group) else None
            if any(loops.reads(step).intersection(loops.writes(s)) for s in steps_of(item)):
                break
        if joined is not None:
            items[place] = joined
        else:
            items.append(step if isinstance(step, Call) else Group(step.shape, (step,)))
    done = (finished(x, program, items) if isinstance(x, Group) else x for x in items)
    return Schedule(program, tuple(done))


def finished(group: Group, program: Program, items: Sequence[Group | Call]) -> Group:
    """The group, with the buffers that no other group needs."""
    others = (step for item in items if item is not group for step in steps_of(item))
    elsewhere = program.returned().union(*map(loops.reads, others))
    sizes = {nest.out: local_elements(nest, len(group.sizes)) for nest in group.steps}
    local = (name for name, count in sizes.items() if name not in elsewhere
             and count * program.buffers[name].dtype.itemsize <= LOCAL_BYTES)  # fmt: skip
    return replace(group, local=frozenset(local))


def local_elements(nest: Nest, shared: int) -> int:
    """From the first to the last element that one shared point of the nest writes."""
    inner = slice(shared, nest.kept)
    return Affine(0, nest.store.coefs[inner]).bounds(nest.sizes[inner])[1] + 1


# What the full compiler does differently
#
# - compiler/schedule/fusion/legality.py, profit.py: one function for each rule; all rules are
#   evaluated for each pair, so a decision shows every reason.
# - compiler/schedule/fusion/walk.py: the order in which pairs are tried.
# - compiler/schedule/fusion/mixed_order_reduction.py, combo.py, scans.py: sums over rows and over
#   columns in one kernel, independent nests in one kernel, prefix sums.
# - compiler/ir/rules.py: sizes are symbols, so each comparison may be unknown.
