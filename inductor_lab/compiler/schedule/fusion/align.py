"""Match the outer axes of two clusters.

Two clusters share a buffer that both load, or that one computes and the other loads.  If the first
accesses `buf[i0, r0]` and the second `buf[i0, i1]`, then the outer axis i0 of one corresponds to i0
of the other; r0 and i1 remain separate inner axes.

Inductor: `scheduler.py`, `MemoryDep.normalize_with_stride_order` and loop reordering, which rename
all loops of both sides to a canonical order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.schedule.facts import Place, real_axes
from inductor_lab.compiler.schedule.fusion.cluster import Cluster, Member, renamed, union


def common_axes(first: Cluster, second: Cluster, shared: Sequence[str]) -> dict[Axis, Axis]:
    """Outer axes of `first` → outer axes of `second` that index the shared buffers in the same way.

    The pair of places that matches most axes is used.  If it matches any axis, or if no buffer is
    shared, the remaining axes of both sides are matched by position.
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
    """The places where a cluster accesses a buffer: its store, or its loads."""
    if buffer in cluster.made:
        return (cluster.made[buffer].store,)
    return cluster.loads.get(buffer, ())


def _matching(
    here: Place, there: Place, first: tuple[Axis, ...], second: tuple[Axis, ...]
) -> dict[Axis, Axis]:
    pairs: dict[Axis, Axis] = {}
    for a, b in zip(here, there, strict=True):
        for one, other in _axes_of_equal_stride(a, b):
            fresh = one not in pairs and other not in pairs.values()
            if fresh and one.size == other.size and one in first and other in second:
                pairs[one] = other
    return pairs


def _axes_of_equal_stride(here: Index, there: Index) -> Iterable[tuple[Axis, Axis]]:
    """Axes with the same stride in a dimension: i0 and i1 of `8*i0 + r0` and `8*i1 + r0`."""
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


def merge_clusters(first: Cluster, second: Cluster, common: Mapping[Axis, Axis]) -> Cluster:
    """Merge two clusters: the outer axes are the common axes, with their names in `second`.

    before:  first  (i0)      buf1[i0] = sum over r0 of x[i0, r0]
             second (i0, i1)  buf2[i0, i1] = x[i0, i1] / buf1[i0]
    after:   (i0)             both; i1 is now the inner loop of buf2
    """
    kept = set(common.values())
    axes = tuple(axis for axis in second.axes if axis in kept)
    members = [renamed(m, _new_names(m, common), second.buffers) for m in first.members]
    return union(axes, first, members, second)


def _new_names(member: Member, common: Mapping[Axis, Axis]) -> dict[Axis, Axis]:
    """Common axes take the names of the other side; inner axes are renamed if names clash."""
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
