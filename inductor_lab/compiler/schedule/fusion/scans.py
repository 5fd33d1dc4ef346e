"""Nests that read a scan inside the kernel that computes it.

Such a nest runs in the loop of the scan and takes each value from a register.  So it must read the
scan in step: at its own position along the scanned axis, or, in reverse, at the mirrored position.

    buf1[i0, i1] = cumsum of x[i0, i1]
    buf2[i0, i1] = buf1[i0, 99 - i1] + 1         i1 runs from 99 to 0 while the scan runs from 0

Inductor fuses a consumer with a scan only if it has exactly the same loops.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.compiler.ir.index import Axis, Index, add_sizes
from inductor_lab.compiler.ir.program import Reduction
from inductor_lab.compiler.schedule.facts import Place, real_axes
from inductor_lab.compiler.schedule.fusion.cluster import Cluster, Member


def mirrored(axis: Axis) -> Index:
    """The reversed axis: `size - 1 - axis`."""
    return Index.of(axis) * -1 + add_sizes(axis.size, -1)


def scans_read(cluster: Cluster, member: Member) -> Iterator[tuple[Member, Place]]:
    """The scans of the cluster that a member reads, with places, also through pointwise members."""
    if not cluster.scans:
        return
    waiting = [(name, place) for name, places in member.loads.items() for place in places]
    seen = set(waiting)
    while waiting:
        name, place = waiting.pop()
        maker = cluster.made.get(name)
        if maker is None:
            continue
        if maker.scanned is not None:
            yield maker, place
        elif not maker.accumulates:
            moved = dict(zip(maker.axes, place, strict=True))
            for below, places in maker.loads.items():
                fresh = {(below, tuple(i.substitute(moved) for i in at)) for at in places} - seen
                waiting.extend(fresh)
                seen |= fresh


def in_step(scan: Member, member: Member, place: Place, outer: tuple[Axis, ...]) -> Index | None:
    """The index of the member along the scanned axis; None if it cannot run in the scan's loop."""
    assert scan.scanned is not None, f"{scan.buffer} is not a scan"
    along = place[scan.axes.index(scan.scanned)]
    inner = [axis for axis in real_axes(member.loops) if axis not in outer]
    if isinstance(member.facts.nest, Reduction) or len(inner) != 1:
        return None
    orders = [Index.of(inner[0])] if member.scanned else [Index.of(inner[0]), mirrored(inner[0])]
    return along if along in orders and inner[0].size == scan.scanned.size else None
