"""What reads a scan inside the kernel that computes it.

Such a nest runs in the loop of the scan and takes each value from a register, so it has to read the
scan in step: at its own place along the scanned axis, or, running backwards, at the mirrored one.

    buf1[i0, i1] = cumsum of x[i0, i1]
    buf2[i0, i1] = buf1[i0, 99 - i1] + 1         i1 runs from 99 to 0 while the scan runs from 0

Inductor fuses behind a scan only what has the very same loops.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.compiler.ir.index import Axis, Index, add_sizes
from inductor_lab.compiler.ir.program import Reduction
from inductor_lab.compiler.schedule.facts import Place, real_axes
from inductor_lab.compiler.schedule.fusion.cluster import Cluster, Member


def mirrored(axis: Axis) -> Index:
    """The axis run backwards: `size - 1 - axis`."""
    return Index.of(axis) * -1 + add_sizes(axis.size, -1)


def scans_read(cluster: Cluster, member: Member) -> Iterator[tuple[Member, Place]]:
    """The scans of the cluster that a member reads, and where, through pointwise members too."""
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
    """Where the member reads along the scanned axis if it can run in the scan's loop."""
    assert scan.scanned is not None, f"{scan.buffer} is no scan"
    along = place[scan.axes.index(scan.scanned)]
    inner = [axis for axis in real_axes(member.loops) if axis not in outer]
    if isinstance(member.facts.nest, Reduction) or len(inner) != 1:
        return None
    orders = [Index.of(inner[0])] if member.scanned else [Index.of(inner[0]), mirrored(inner[0])]
    return along if along in orders and inner[0].size == scan.scanned.size else None
