"""Legality rules: what must hold for two nests to share a kernel.

A kernel runs the points of its group's outer axes independently, in any order, and completes before
the next kernel starts.  Each rule checks one consequence of this.

Inductor: `scheduler.py`, `Scheduler.can_fuse` and `can_fuse_vertical`.
"""

from __future__ import annotations

from collections.abc import Mapping

from inductor_lab.compiler.ir.index import Axis
from inductor_lab.compiler.ir.text import axes_text, index_text
from inductor_lab.compiler.schedule.facts import Place, real_axes
from inductor_lab.compiler.schedule.fusion.cluster import Cluster
from inductor_lab.compiler.schedule.fusion.rules import Pair, legality
from inductor_lab.compiler.schedule.fusion.scans import in_step, scans_read


@legality
def same_device(pair: Pair) -> str | None:
    """A kernel runs on one device."""
    here = pair.buffers[pair.producer].device
    there = pair.buffers[pair.consumer].device
    if here == there:
        return None
    return f"{pair.producer} is on {here}, {pair.consumer} on {there}"


@legality
def no_step_between(pair: Pair) -> str | None:
    """No step may depend on one nest while the other depends on it: such a step could run neither
    before nor after the kernel."""
    if pair.between is None:
        return None
    return f"{pair.between} has to run between {pair.producer} and {pair.consumer}"


@legality
def not_overwritten(pair: Pair) -> str | None:
    """A write in place destroys the old value: steps that read the old value must run before it."""
    return pair.overwritten


@legality
def scatter_alone(pair: Pair) -> str | None:
    """A scatter is complete only after its kernel, and no other nest visits the same points.

    Producers may be inlined into it, except its base.
    """
    scatters = [cluster.scatter for cluster in (pair.first, pair.second)]
    for scatter in scatters:
        if scatter is not None and scatter.base == pair.producer:
            return f"{scatter.buffer} is written into the storage of {pair.producer}"
        if scatter is not None and not pair.evaluated_on_demand:
            return f"{scatter.buffer} is a scatter and has a kernel of its own"
    return None


@legality
def stored_once(pair: Pair) -> str | None:
    """One kernel writes a buffer; other kernels load it."""
    if pair.home is None:
        return None
    return f"{pair.producer} is already stored by the kernel of {pair.home}"


@legality
def same_iteration_space(pair: Pair) -> str | None:
    """All nests of a kernel visit all points of its outer axes.

    All axes of a reduction's result are outer axes; some axes of a pointwise nest may become inner
    loops.
    """
    if pair.evaluated_on_demand or scatter_alone(pair):
        return None
    parts, others = pair.first.in_parts, pair.second.in_parts
    if parts and others and parts.renamed(pair.common) != others:
        return (
            f"the kernels of {pair.producer} and {pair.consumer} "
            "divide their rows into different parts"
        )
    if axes_cover(pair.first, pair.second, pair.common):
        return None
    producer, consumer = pair.producer, pair.consumer
    here, there = _space(pair.first), _space(pair.second)
    if here != there:
        first = f"the kernel of {producer} iterates over {here}"
        return f"{first}, the kernel of {consumer} over {there}"
    own = axes_text([axis for axis in pair.first.axes if axis not in pair.common])
    both = f"the kernels of {producer} and {consumer} both iterate over {here}"
    return f"{both}, but no axis of {consumer} corresponds to {own} of {producer}"


@legality
def same_point(pair: Pair) -> str | None:
    """A nest may read the result of another nest only at the same point of the outer axes: other
    points may not have been computed yet."""
    if pair.evaluated_on_demand or scatter_alone(pair):
        return None
    back = {other: one for one, other in pair.common.items()}
    return _read_elsewhere(pair.first, pair.second, pair.common) or _read_elsewhere(
        pair.second, pair.first, back
    )


@legality
def in_step_with_scan(pair: Pair) -> str | None:
    """A nest that reads a scan in the same kernel runs in the scan's loop, element by element.

    It reads at its own position along the scanned axis; a pointwise nest may also read at the
    mirrored position.
    """
    if pair.merged is None:
        return None
    for member in pair.merged.members:
        orders = set()
        for scan, place in scans_read(pair.merged, member):
            order = in_step(scan, member, place, pair.merged.axes)
            orders.add(order)
            if order is None or len(orders) > 1:
                loops, at = axes_text(real_axes(member.loops)), _places(place)
                reads = f"reads the scan {scan.buffer} at [{at}]"
                return f"{member.buffer} iterates over {loops} and {reads}"
    return None


def axes_cover(first: Cluster, second: Cluster, common: Mapping[Axis, Axis]) -> bool:
    """Do the common axes include all axes of each side with a reduction, else of either side?"""
    all_first = len(common) == len(first.axes)
    all_second = len(common) == len(second.axes)
    if first.accumulates or second.accumulates:
        return (all_first or not first.accumulates) and (all_second or not second.accumulates)
    return all_first or all_second


def _read_elsewhere(maker: Cluster, reader: Cluster, common: Mapping[Axis, Axis]) -> str | None:
    for name, member in maker.made.items():
        for place in reader.loads.get(name, ()):
            if member.in_parts:
                return f"{name} is complete only after its kernel has finished"
            for axis, index in zip(member.axes, place, strict=True):
                if axis in common:
                    elsewhere = index.as_axis() != common[axis]
                else:
                    fixed = maker.accumulates and axis in maker.axes
                    elsewhere = fixed and index.as_axis() is None
                if elsewhere:
                    made = _places(member.store)
                    return f"{name} is computed at [{made}] but read at [{_places(place)}]"
    return None


def _places(place: Place) -> str:
    return ", ".join(index_text(index) for index in place)


def _space(cluster: Cluster) -> str:
    return axes_text(cluster.axes) or "a single point"
