"""Memory traffic, arithmetic and launches of nests, groups and extern calls.

Before fusion each nest is a kernel; after fusion each group is a kernel.  A kernel moves each
buffer once, and only the elements that it touches: a broadcast row counts as one row.

`((x + 1) * 2).sin()` on n floats: 3 kernels, 6 passes and 24n bytes before; 1, 2 and 8n after.

Inductor: `scheduler.py`, `BaseSchedulerNode.get_read_write_buffers_sizes` and `estimate_flops`.
"""

from __future__ import annotations

from collections.abc import Mapping

from inductor_lab.compiler.ir.flops import call_flops
from inductor_lab.compiler.ir.index import hint
from inductor_lab.compiler.ir.program import Buffer, BufferView, ExternCall, Layout
from inductor_lab.compiler.schedule.facts import storage_elements
from inductor_lab.compiler.schedule.fusion.cluster import Cluster
from inductor_lab.compiler.schedule.schedule import Cost


def cluster_cost(cluster: Cluster) -> Cost:
    """The cost of one kernel that computes the cluster."""
    return Cost(
        bytes_read=cluster.bytes_read,
        bytes_written=cluster.bytes_written,
        flops=cluster.flops_kept,
        kernels=1,
        passes=len(cluster.reads) + len(cluster.written),
    )


def extern_cost(call: ExternCall, buffers: Mapping[str, Buffer]) -> Cost:
    """The minimum that a library call reads and writes, and its arithmetic."""
    read: dict[str, int] = {}
    for view in call.views:
        amount = storage_elements(view.layout) * buffers[view.buffer].dtype.itemsize
        read[view.buffer] = max(amount, read.get(view.buffer, 0))
    made = [buffers[name] for name in call.outputs if name is not None]
    written = sum(storage_elements(buffer.layout) * buffer.dtype.itemsize for buffer in made)
    shapes = [_shape(arg.layout) if isinstance(arg, BufferView) else arg for arg in call.args]
    flops = call_flops(call.op, shapes, _shape(made[0].layout)) if made else 0
    return Cost(sum(read.values()), written, flops, 1, len(read) + len(made))


def _shape(layout: Layout) -> tuple[int, ...]:
    return tuple(hint(size) for size in layout.size)
