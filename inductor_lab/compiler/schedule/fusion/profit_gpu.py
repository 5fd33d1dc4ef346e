"""Profit rules for GPUs only; `profit.py` has the rules for all devices."""

from __future__ import annotations

from math import prod

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.ir.gpu_sizes import GPU_PARTS, ROW_ELEMENTS
from inductor_lab.compiler.ir.index import hint
from inductor_lab.compiler.schedule.fusion.profit import MIN_SHARE
from inductor_lab.compiler.schedule.fusion.rules import Pair, profit

GPU_POINTS, GPU_VOLUME = 8192, 1 << 20
"""Parallel points that fill a GPU; elements from which this matters more than a launch."""


@profit
def fills_the_gpu(pair: Pair) -> str | None:
    """On a GPU, large pointwise work is not fused with a reduction that has few points.

    The rule applies if the two share only the few results of the reduction.
    """
    if pair.merged is None or pair.placement != "stored":
        return None
    points = pair.merged.points
    if pair.buffers[pair.consumer].device == "cpu" or points >= GPU_POINTS:
        return None
    if pair.saved >= MIN_SHARE * pair.second.bytes:
        return None
    for member in pair.second.members:
        if not member.accumulates and member.facts.volume > max(points, GPU_VOLUME):
            return (
                f"only {points:,} points would process {member.facts.volume:,} elements of "
                f"{member.buffer}, to save {bytes_text(pair.saved)}"
            )
    return None


@profit
def parts_fill_the_gpu(pair: Pair) -> str | None:
    """With a sum over the outer axes, only parts run in parallel; there must be enough of them.

    If rows are short, one program processes several parts.
    """
    if pair.merged is None or pair.merged.in_parts is None:
        return None
    if pair.buffers[pair.consumer].device == "cpu":
        return None
    points, part = pair.merged.points, pair.merged.in_parts.part
    sums = (member for member in pair.merged.members if member.in_parts)
    width = max(prod(hint(a.size) for a in member.axes if a != part) for member in sums)
    together = max(ROW_ELEMENTS >> (width - 1).bit_length(), 1)
    if points >= GPU_PARTS and points // together >= GPU_PARTS // 2:
        return None
    return f"{points:,} parts are too few for a GPU"


@profit
def product_goes_on(pair: Pair) -> str | None:
    """A matrix product reads both operands from memory; only pointwise work on its sums may be
    fused with it."""
    clusters, rounded = (pair.first, pair.second), pair.first.members[0].facts
    inlined = [facts for cluster in clusters for facts in cluster.inlined.values()]
    members = [member for cluster in clusters for member in cluster.members]
    products = {facts.product for facts in (*inlined, *(m.facts for m in members))} - {""}
    if not products:
        return None
    of = min(products)
    if len(products) > 1:
        return f"a kernel computes one matrix product, not {' and '.join(sorted(products))}"
    if pair.evaluated_on_demand and not rounded.product:
        read = any(pair.producer in m.loads for m in members if m.buffer == of)
        return f"{pair.producer} would be recomputed for many sums of {of}" if read else None
    others = [m for m in members if m.buffer != of]
    cluster = pair.second if pair.evaluated_on_demand else pair.merged
    alike = {(m.facts.volume, len(m.axes), m.accumulates) for m in others}
    plain = cluster is not None and alike <= {(others[0].facts.volume, len(cluster.axes), False)}
    if plain and pair.placement in ("inlined", "stored"):
        return None
    return f"{pair.consumer} does more than pointwise work on the sums of {of}"
