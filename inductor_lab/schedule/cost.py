"""Memory traffic, arithmetic and launches of nests, groups and extern calls.

Before fusion each nest is a kernel of its own; after fusion each group is one.  A kernel moves each
buffer once, and of a buffer only the elements that it touches: a broadcast row counts as one row.

`((x + 1) * 2).sin()` on n floats: 3 kernels, 6 passes and 24n bytes before; 1, 2 and 8n after.

Inductor: `scheduler.py`, `BaseSchedulerNode.get_read_write_buffers_sizes` and `estimate_flops`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inductor_lab.ir.index import hint
from inductor_lab.ir.program import Buffer, ExternCall
from inductor_lab.schedule.cluster import Cluster
from inductor_lab.schedule.facts import storage_elements
from inductor_lab.schedule.result import Cost

LINEAR = ("_linear_pointwise", "linear")
"""oneDNN's product, and ours with packed weights: the length of the sums is the first's."""
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", *LINEAR)


def cluster_cost(cluster: Cluster) -> Cost:
    """What one kernel costs that computes all of a cluster."""
    return Cost(
        bytes_read=cluster.bytes_read,
        bytes_written=cluster.bytes_written,
        flops=cluster.flops,
        kernels=1,
        passes=len(cluster.reads) + len(cluster.written),
    )


def extern_cost(call: ExternCall, buffers: Mapping[str, Buffer]) -> Cost:
    """What a library call reads and writes at least; flops are known for matrix products only."""
    read: dict[str, int] = {}
    for view in call.views:
        amount = storage_elements(view.layout) * buffers[view.buffer].dtype.itemsize
        read[view.buffer] = max(amount, read.get(view.buffer, 0))
    made = [buffers[name] for name in call.outputs if name is not None]
    written = sum(storage_elements(buffer.layout) * buffer.dtype.itemsize for buffer in made)
    flops = _product_flops(call, made)
    return Cost(sum(read.values()), written, flops, 1, len(read) + len(made))


def total(costs: Iterable[Cost]) -> Cost:
    return sum(costs, Cost())


def _product_flops(call: ExternCall, made: list[Buffer]) -> int:
    """2 * (elements of the result) * (length of the sums) for matrix products."""
    name, views = call.op.split(".")[1], call.views
    if name not in PRODUCTS or not made or len(views) < 2:
        return 0
    length = views[0].layout.size[-1] if name in LINEAR else views[-1].layout.size[-2]
    return 2 * storage_elements(made[0].layout) * hint(length)
