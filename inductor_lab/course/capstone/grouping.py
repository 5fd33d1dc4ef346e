"""Is a group of nests a legal kernel?  Decided by enumerating its points.

The points of the shared axes run in any order, on several threads.  So a point may read of its own
group only what it wrote itself, and a buffer that is local to a kernel is read nowhere else.
"""

from __future__ import annotations

from itertools import product

from inductor_lab.course.capstone.values import elements
from inductor_lab.course.language import say
from inductor_lab.mini.fuse import Group, Schedule, steps_of
from inductor_lab.mini.loops import Affine, Nest, reads


def conflict(schedule: Schedule) -> str | None:
    """A sentence about a point that reads what another point writes; None if there is none."""
    for item in schedule.items:
        if not isinstance(item, Group):
            continue
        others = {name for other in schedule.items if other is not item
                  for step in steps_of(other) for name in reads(step)}  # fmt: skip
        lost = item.local & (others | schedule.program.returned())
        if lost:
            return say("{b} is needed outside of its kernel", b=min(lost))
        wrong = _in_group(item)
        if wrong:
            return wrong
    return None


def _in_group(group: Group) -> str | None:
    depth = len(group.sizes)
    for nest in group.steps:
        if nest.kept < depth or nest.sizes[:depth] != group.sizes:
            return say("`{s}` does not have the axes {a} of its group", s=nest, a=group.sizes)
    made = {nest.out for nest in group.steps}
    for point in product(*map(range, group.sizes)):
        written: dict[str, set[int]] = {}
        for nest in group.steps:
            for load in nest.loads():
                if load.buffer in made:
                    read = set(_at(nest, load.at, point, len(nest.sizes)))
                    missing = read - written.get(load.buffer, set())
                    if missing:
                        where = ", ".join(f"i{k} = {n}" for k, n in enumerate(point))
                        return say("at {p}, `{s}` reads {b}[{i}], which this point has not "
                                   "written", p=where, s=nest, b=load.buffer,
                                   i=min(missing))  # fmt: skip
            written[nest.out] = set(_at(nest, nest.store, point, nest.kept))
    return None


def _at(nest: Nest, at: Affine, point: tuple[int, ...], end: int) -> list[int]:
    """The elements that an index reaches at one point of the shared axes."""
    depth = len(point)
    offset = at.offset + sum(c * k for c, k in zip(at.coefs, point, strict=False))
    return elements(Affine(offset, at.coefs[depth:end]), nest.sizes[depth:end])
