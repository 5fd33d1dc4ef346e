"""Mixed-order reduction: sum over the outer axes of a kernel in addition to its work on each row.

    buf0[i0] = sum over r0<2048 of x[i0, r0]                          along the rows
    buf1_parts[p0, i1] = sum over r0<16 of x[16*p0 + r0, i1]          across them

The second nest is the first half of a long sum that was split into parts
(`lower/passes/split_reductions.py`).  Both nests visit the same points if the first visits its
points part by part: i0 is at `16*part + step0`.  A part is then one program, or one iteration of a
thread, that keeps a sum for each element of a row; x is read once.  Examples are the gradients of a
layer norm, and the gradient of a bias together with the values that it sums.

Inductor: `scheduler.py`, `FusedMixOrderReductions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from inductor_lab.compiler.ir.gpu_sizes import LONGEST_HELD
from inductor_lab.compiler.ir.index import Axis, Index, hint, is_int, product
from inductor_lab.compiler.ir.program import Reduction
from inductor_lab.compiler.ir.row_major import coordinates_at, flat_position
from inductor_lab.compiler.schedule.facts import Place, real_axes
from inductor_lab.compiler.schedule.fusion.align import places_of
from inductor_lab.compiler.schedule.fusion.cluster import Cluster, Member, with_loads
from inductor_lab.compiler.schedule.fusion.rules import Pair
from inductor_lab.compiler.schedule.row_parts import InParts


@dataclass(frozen=True, slots=True)
class Visit:
    """How sums visit the outer axes of the rows.

    places  outer axis → its index, in terms of the axes of the sums
    inside  these axes, slowest first: the summed axes and the part axis
    """

    places: Mapping[Axis, Index]
    inside: tuple[Axis, ...]


def mixed_order_pairs(pair: Pair, shared: Sequence[str]) -> Iterator[Pair]:
    """Yield the pair, changed so that the sums visit the points in the order of the rows.

    Yields nothing if neither cluster sums over outer axes of the other.
    """
    first, second = pair.first, pair.second
    for rows, sums in ((first, second), (second, first)):
        summed = _summed(sums)
        if not summed or not sums.axes or rows.scans or rows.scatter:
            continue
        for visit in _visits(rows, sums, summed, shared):
            if visited := _with_row_axes(sums, summed, visit, rows.in_parts):
                both = (first, visited) if sums is second else (visited, second)
                common = {axis: axis for axis in visited.axes}
                yield replace(pair, first=both[0], second=both[1], common=common)
                return


def _summed(cluster: Cluster) -> tuple[Axis, ...]:
    """The axes over which all members sum.

    Empty if a member is not a sum, or if it reads another member: sums are complete only after the
    kernel.
    """
    if not cluster.made.keys().isdisjoint(cluster.loads):
        return ()
    found: set[tuple[Axis, ...]] = set()
    for member in cluster.members:
        nest = member.facts.nest
        if not isinstance(nest, Reduction) or nest.kind != "sum" or member.in_parts:
            return ()
        found.add(real_axes(member.rename.get(axis, axis) for axis in nest.reduce_axes))
    return found.pop() if len(found) == 1 else ()


def _visits(
    rows: Cluster, sums: Cluster, summed: tuple[Axis, ...], shared: Sequence[str]
) -> Iterator[Visit]:
    """Each visit that a shared buffer allows, if its memory is contiguous along the columns."""
    for buffer in shared:
        for there in sums.loads.get(buffer, ()):
            visits = (_visit(here, there, rows.axes, summed, sums.axes)
                      for here in places_of(rows, buffer))  # fmt: skip
            for visit in filter(None, visits):
                flat = sums.buffers[buffer].layout.element(there)
                columns = set(sums.axes).difference(visit.inside)
                if any(is_int(flat.coefficient(axis), 1) for axis in columns):
                    yield visit


@lru_cache(maxsize=1 << 10)
def _visit(
    here: Place,
    there: Place,
    outer: tuple[Axis, ...],
    summed: tuple[Axis, ...],
    own: tuple[Axis, ...],
) -> Visit | None:
    """The visit that a pair of accesses of a shared buffer allows.

    None unless all `summed` axes and one part axis visit each point of the outer axes exactly once:
    `1024*step0 + 4*part + step1`.
    """
    at = {mine.as_axis(): theirs for mine, theirs in zip(here, there, strict=True)}
    common = {axis: at[axis] for axis in outer if axis in at}
    place_axes = [set(place.axes()) for place in common.values()]
    if not set[Axis]().union(*place_axes).issuperset(summed):
        return None
    among = [axes for axes in place_axes if not axes.isdisjoint(summed)]
    inside = {*summed, *(set[Axis]().union(*among).difference(summed) or own[:1])}
    places = {axis: place for axis, place in common.items() if not inside.isdisjoint(place.axes())}
    sizes = {axis.size for axis in (*inside, *places)}
    if len(inside) != len(summed) + 1 or not all(isinstance(size, int) for size in sizes):
        return None
    whole = flat_position(tuple(places)).substitute(places)
    order = tuple(sorted(whole.axes(), key=lambda axis: -hint(whole.coefficient(axis))))
    as_long = product(axis.size for axis in places) == product(axis.size for axis in inside)
    once = set(order) == inside and whole == flat_position(order)
    by_parts = as_long and once and coordinates_at(whole, tuple(places)) == places
    return Visit(places, order) if by_parts else None


def _with_row_axes(
    sums: Cluster, summed: tuple[Axis, ...], visit: Visit, given: InParts | None
) -> Cluster | None:
    """The sums, with the outer axes of `visit` as their outer axes.

    None if they have no columns, or too many to keep, or if their parts differ from `given`.

    before:  (p0, i1)  buf1_parts[p0, i1] = sum over r0 of x[16*p0 + r0, i1]
    after:   (i0)      buf1_parts[part, column0] = sum over step0 of x[i0, column0]
    """
    outer, inside = tuple(visit.places), visit.inside
    (part,) = (axis for axis in inside if axis not in summed)
    columns = [axis for axis in sums.axes if axis != part]
    sizes = [axis.size for axis in columns if isinstance(axis.size, int)]
    if not sizes or len(sizes) < len(columns) or prod(sizes) > LONGEST_HELD:
        return None
    names = {part: Axis("part", part.size)}
    for kind, axes in (("step", [a for a in inside if a in summed]), ("column", columns)):
        names |= {axis: Axis(f"{kind}{k}", axis.size) for k, axis in enumerate(axes)}
    new = {old: Index.of(name) for old, name in names.items()}
    steps = tuple(names[axis] for axis in inside if axis != part)
    in_parts = InParts(names[part], steps, {a: p.substitute(new) for a, p in visit.places.items()})
    if given not in (None, in_parts):
        return None
    moved = {**new, **coordinates_at(flat_position(outer), inside)}
    members = []
    for member in sums.members:
        nest = member.facts.nest
        own = {axis: member.rename.get(axis, axis) for axis in (*nest.axes, *nest.reduce_axes)}
        rename = {axis: names.get(now, now) for axis, now in own.items()}
        visited = Member(member.facts, rename, {}, in_parts)
        members.append(with_loads(visited, member.loads, moved, sums.buffers))
    return replace(sums, axes=outer, members=tuple(members))
