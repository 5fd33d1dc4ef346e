"""Profit rules: what should hold for a fusion to make the program faster.

The thresholds are round numbers for both CPUs and GPUs.  The option `force` overrules the rules for
a pair; `off` disables a rule.

Inductor: `choices.py`, `InductorChoices.can_fuse`; `scheduler.py`, `score_fusion_memory`; and
`config.realize_reads_threshold`, `config.max_fusion_size`.
"""

from __future__ import annotations

from math import prod

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.ir.index import Axis, hint, is_int
from inductor_lab.compiler.ir.ops import EXPENSIVE_FLOPS
from inductor_lab.compiler.schedule.facts import real_axes
from inductor_lab.compiler.schedule.fusion.cluster import Cluster, Member
from inductor_lab.compiler.schedule.fusion.rules import Pair, profit
from inductor_lab.compiler.schedule.fusion.scans import scans_read

FLOPS_PER_BYTE = 16
"""Arithmetic that costs about as much as moving one byte.  The thresholds in this file are chosen,
not measured one by one; benchmarks/RESULTS.md has the results of all of them together."""

SPARE_FLOPS_PER_BYTE = 4
"""A kernel with less arithmetic than this waits for memory."""

LEAST_SAVED, ONE_OPERATION = 0.01, 2
"""On a CPU, recomputing more than one operation must save at least this share of the kernel's
traffic.  One operation takes no longer than loading its result."""

FREE_FLOPS = 100_000
"""Recomputing this much costs less than launching one more kernel."""

COPY_LOADS = 3
"""Maximum loads per element of a producer that is copied into several kernels."""

COPIED_FLOPS = 32
"""Maximum arithmetic per element of all producers that are copied into one kernel."""

WINDOW, WINDOW_OPERATIONS = 4, 32
"""A window is at least so many places at which one element reads a producer; the maximum number of
operations that may be repeated at all places."""

MAX_BUFFERS = 48
MAX_OPERATIONS = 400
"""Limits of a kernel: pointers, and operations in its code."""

MIN_POINTS = 32
SERIAL_WORK = 32768
"""Longer loops need at least MIN_POINTS independent points, so that they run in parallel."""

MIN_SHARE = 0.05
"""Siblings must save at least this share of the traffic of the smaller one."""

FAR = 100
"""Maximum distance of siblings, in steps."""


@profit
def bytes_saved(pair: Pair) -> str | None:
    """A fusion must reduce memory traffic."""
    if pair.merged is None or pair.saved > 0:
        return None
    if pair.saved == 0:
        return "it saves no memory traffic"
    return f"fusion would move {bytes_text(-pair.saved)} more than two kernels"


@profit
def recompute_work(pair: Pair) -> str | None:
    """Recomputation must not become the main work of a kernel.

    A memory-bound kernel has spare arithmetic.  In other kernels, and on a CPU if almost no traffic
    is saved, the extra work must be worth the traffic that it saves.
    """
    if pair.merged is None or pair.placement == "siblings" or pair.first.accumulates:
        return None
    facts = pair.first.members[0].facts
    extra = pair.merged.recomputed_flops(facts)
    if extra <= FREE_FLOPS + FLOPS_PER_BYTE * max(pair.saved, 0):
        return None
    work = pair.merged.flops + (0 if pair.evaluated_on_demand else extra)
    more = pair.operations > ONE_OPERATION or facts.flops > 1
    least = more and pair.buffers[pair.consumer].device == "cpu" and LEAST_SAVED * pair.merged.bytes
    if pair.saved >= least and work <= SPARE_FLOPS_PER_BYTE * pair.merged.bytes:
        return None
    return (
        f"{extra:,} more flops to recompute {pair.producer}, "
        f"to save only {bytes_text(pair.saved)}"
    )


@profit
def window_work(pair: Pair) -> str | None:
    """A producer that one element reads at many places (the window of a pool) is stored.

    It is recomputed only if it, and the producers that only it needs, are almost free.
    """
    if pair.merged is None or not pair.evaluated_on_demand:
        return None
    own = pair.merged.inlined[pair.producer]
    if pair.merged.places(own) < WINDOW:
        return None
    windows = [f for f in pair.merged.inlined.values() if pair.merged.places(f) >= WINDOW]
    repeated = sum(pair.merged.places(facts) * facts.ops for facts in windows)
    # if only later producers were refused, the terms of a sum would be stored, and each term would
    # be read at all places
    repeated += pair.merged.places(own) * (pair.operations - own.ops)
    if repeated <= WINDOW_OPERATIONS:
        return None
    return f"{repeated} operations would be unrolled for each element of {pair.consumer}"


@profit
def cheap_copy(pair: Pair) -> str | None:
    """Only a cheap producer is computed in several kernels."""
    if pair.merged is None or pair.placement != "copied":
        return None
    facts = pair.first.members[0].facts
    if facts.flops >= EXPENSIVE_FLOPS:
        return f"computing {pair.producer} takes {facts.flops} flops per element"
    if len(facts.loads) > COPY_LOADS:
        return f"computing {pair.producer} takes {len(facts.loads)} loads per element"
    if (flops := pair.merged.copied) > COPIED_FLOPS:
        return f"the kernel of {pair.consumer} would recompute {flops} flops per element"
    return None


@profit
def one_more_place(pair: Pair) -> str | None:
    """A small producer is not inlined if the kernel would load a buffer at one more place.

    The kernel could not write its result over this buffer.  A producer that is computed nowhere
    else must follow a reduction, whose kernel can compute it:

        mean[i] = x[i, 0] + off[i] / n           off: a sum over r of x[i, r] - x[i, 0]
        y[i, j] = x[i, j] - mean[i]
    """
    if pair.merged is None or not pair.evaluated_on_demand:
        return None
    facts = pair.first.members[0].facts
    if facts.volume >= max(member.facts.volume for member in pair.second.members):
        return None
    if pair.placement == "inlined" and not pair.after_reduction:
        return None
    for name, _ in facts.loads:
        if len(pair.merged.loads[name]) > len(pair.second.loads.get(name, ())) > 0:
            return f"the kernel of {pair.consumer} would load {name} at one more place"
    return None


@profit
def kernel_size(pair: Pair) -> str | None:
    """A kernel with too many pointers or operations spills registers and compiles slowly."""
    if pair.merged is None:
        return None
    buffers = len(pair.merged.reads) + len(pair.merged.written)
    if buffers > MAX_BUFFERS:
        return f"the kernel would access {buffers} buffers, more than {MAX_BUFFERS}"
    if pair.merged.operations > MAX_OPERATIONS:
        return f"the kernel would contain {pair.merged.operations} operations"
    return None


@profit
def parallelism(pair: Pair) -> str | None:
    """Outer axes run in parallel, inner loops do not: large work needs many points.

    If the kernel has a single point (an optimizer's step counter), a nest that does not depend on
    it keeps its own points.
    """
    if pair.merged is None or pair.evaluated_on_demand:
        return None
    points = pair.merged.points
    if points >= MIN_POINTS:
        return None
    for member in pair.merged.members:
        in_loop = member.accumulates or any(scans_read(pair.merged, member))
        waits = _reads_own_reduction(member, pair.merged)
        longest = SERIAL_WORK if waits or points > 1 else 1
        if (waits or not in_loop) and member.facts.volume > longest:
            return (
                f"only {points} independent point{'s' if points != 1 else ''} would process "
                f"{member.facts.volume:,} elements of {member.buffer}"
            )
    return None


@profit
def memory_walk(pair: Pair) -> str | None:
    """The innermost loop of a stored nest should run along its contiguous axis.

    The loop of a scan must run along the scanned axis, so the rule ignores scans.
    """
    if pair.merged is None or pair.evaluated_on_demand or pair.merged.scans:
        return None
    contiguous: dict[Axis, str] = {}
    for member in pair.merged.members:
        axis = _contiguous_axis(member, pair.merged)
        if member.accumulates or axis is None:
            continue
        has_inner = len(real_axes(member.axes)) > len(pair.merged.axes)
        if has_inner and axis in pair.merged.axes:
            return (
                f"{member.buffer} is contiguous along {axis.name}, "
                f"which would be an outer axis: the inner loop would access memory with a stride"
            )
        if not has_inner:
            contiguous.setdefault(axis, member.buffer)
    if len(contiguous) > 1:
        (one, here), (other, there) = list(contiguous.items())[:2]
        return f"{here} is contiguous along {one.name}, {there} along {other.name}"
    return None


@profit
def same_loops(pair: Pair) -> str | None:
    """Siblings should run the same loops.

    Or one of them runs one iteration per point of the other's outer axes, like the running mean of
    a batch norm.
    """
    if pair.merged is None or pair.placement != "siblings":
        return None
    here, there = _iterations(pair.first), _iterations(pair.second)
    larger = pair.first if here > there else pair.second
    points = prod(hint(axis.size) for axis in pair.merged.axes)
    if here == there or (min(here, there) == points and len(larger.axes) == len(pair.merged.axes)):
        return None
    return f"{pair.producer} takes {here:,} iterations, {pair.consumer} {there:,}"


@profit
def shares_enough(pair: Pair) -> str | None:
    """Siblings should share a large part of the data that they move."""
    if pair.merged is None or pair.placement != "siblings":
        return None
    smaller = min(pair.first.bytes, pair.second.bytes)
    if pair.saved >= MIN_SHARE * smaller:
        return None
    return f"they share only {bytes_text(pair.saved)} of {bytes_text(smaller)}"


@profit
def near(pair: Pair) -> str | None:
    """Siblings that are far apart in the program keep too much memory alive if they are fused."""
    if pair.merged is None or pair.placement != "siblings":
        return None
    distance = abs(pair.second.first - pair.first.members[-1].facts.position)
    return f"they are {distance} steps apart" if distance > FAR else None


def _reads_own_reduction(member: Member, cluster: Cluster) -> bool:
    """Does the member load a reduction of its own kernel?"""
    makers = (cluster.made[name] for name in member.loads if name in cluster.made)
    return any(maker.accumulates and maker.scanned is None for maker in makers)


def _contiguous_axis(member: Member, cluster: Cluster) -> Axis | None:
    layout = cluster.buffers[member.buffer].layout
    steps = zip(member.axes, layout.stride, strict=True)
    return next((a for a, s in steps if is_int(s, 1) and not is_int(a.size, 1)), None)


def _iterations(cluster: Cluster) -> int:
    return max(member.facts.volume for member in cluster.members)
