"""Which axis of one cluster is which axis of the other.

Two clusters meet in a buffer that both load, or that one makes and the other loads.  Where the
first has `buf[i0, r0]` and the second `buf[i0, i1]`, the outer axis i0 of one is i0 of the other;
r0 and i1 are each one's own business.

Inductor: `scheduler.py`, `MemoryDep.normalize_with_stride_order` and loop reordering do this by
renaming all loops of both sides to one canonical order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.schedule.facts import Place, real_axes
from inductor_lab.compiler.schedule.fusion.cluster import Cluster, Member, renamed, union


def common_axes(first: Cluster, second: Cluster, shared: Sequence[str]) -> dict[Axis, Axis]:
    """Outer axes of `first` → outer axes of `second` that walk the shared buffers together.

    Of all pairs of places the one that matches most axes wins.  If it matches any, or if nothing is
    shared, axes left over on both sides are matched by position.
    """
    best: dict[Axis, Axis] = {}
    enough = min(len(first.axes), len(second.axes))
    for buffer in shared:
        for here in places_of(first, buffer):
            for there in places_of(second, buffer):
                found = _matching(here, there, first.axes, second.axes)
                if len(found) > len(best):
                    best = found
                if len(best) == enough:
                    return best
    return _completed(best, first.axes, second.axes) if best or not shared else best


def places_of(cluster: Cluster, buffer: str) -> Iterable[Place]:
    """Where a cluster touches a buffer: where it stores it, or where it loads it."""
    if buffer in cluster.made:
        return (cluster.made[buffer].store,)
    return cluster.loads.get(buffer, ())


def _matching(
    here: Place, there: Place, first: tuple[Axis, ...], second: tuple[Axis, ...]
) -> dict[Axis, Axis]:
    pairs: dict[Axis, Axis] = {}
    for a, b in zip(here, there, strict=True):
        for one, other in _alike(a, b):
            fresh = one not in pairs and other not in pairs.values()
            if fresh and one.size == other.size and one in first and other in second:
                pairs[one] = other
    return pairs


def _alike(here: Index, there: Index) -> Iterable[tuple[Axis, Axis]]:
    """Axes that step through a dimension alike: i0 and i1 of `8*i0 + r0` and `8*i1 + r0`."""
    one, other = here.as_axis(), there.as_axis()
    if one is not None and other is not None:
        yield one, other
    elif len(here.terms) > 1 and here.constant == there.constant:
        steps = {step: atom for atom, step in there.terms}
        for atom, step in here.terms:
            other_atom = steps.get(step)
            if isinstance(atom, Axis) and isinstance(other_atom, Axis):
                yield atom, other_atom


def _completed(
    pairs: dict[Axis, Axis], first: tuple[Axis, ...], second: tuple[Axis, ...]
) -> dict[Axis, Axis]:
    pairs = dict(pairs)
    if len(first) == len(second):
        for one, other in zip(first, second, strict=True):
            if one not in pairs and other not in pairs.values() and one.size == other.size:
                pairs[one] = other
    return pairs


def put_together(first: Cluster, second: Cluster, common: Mapping[Axis, Axis]) -> Cluster:
    """One cluster whose outer axes are the common ones, called as `second` calls them.

    before:  first  (i0)      buf1[i0] = sum over r0 of x[i0, r0]
             second (i0, i1)  buf2[i0, i1] = x[i0, i1] / buf1[i0]
    after:   (i0)             both; i1 is now the inner loop of buf2
    """
    kept = set(common.values())
    axes = tuple(axis for axis in second.axes if axis in kept)
    members = [renamed(m, _new_names(m, common), second.buffers) for m in first.members]
    return union(axes, first, members, second)


def _new_names(member: Member, common: Mapping[Axis, Axis]) -> dict[Axis, Axis]:
    """Common axes take the other side's names; inner axes are renamed where they would clash."""
    outer = {axis.name for axis in common.values()}
    taken = outer | {axis.name for axis in member.loops}
    names = {axis: common[axis] for axis in member.loops if axis in common}
    for axis in real_axes(member.loops):
        if axis not in common and axis.name in outer:
            names[axis] = Axis(_free_name(axis.name, taken), axis.size)
    return names


def _free_name(name: str, taken: set[str]) -> str:
    count = 1
    while f"{name}_{count}" in taken:
        count += 1
    taken.add(f"{name}_{count}")
    return f"{name}_{count}"
