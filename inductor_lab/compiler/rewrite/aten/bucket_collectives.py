"""Small collectives that do not depend on one another are merged into one message.

    a = wait(all_reduce(x))          a', b' = all_reduce_coalesced([x, y])
    b = wait(all_reduce(y))     →    a, b = wait(a'), wait(b')

The consumers of the first result move behind the last message.  So only messages that no other
collective depends on are merged, such as gradients at the end of a backward.  A merged message
saves one hop, and it is late by at most the transfer time of the bucket.

All ranks must merge the same messages.  So the decision depends only on the graph and on constants,
and this pass runs before all others.

Inductor: `fx_passes/bucketing.py`; torch: the buckets of `DistributedDataParallel`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.ir.collective import RATES, collective_kind
from inductor_lab.compiler.rewrite.aliases import Aliases
from inductor_lab.compiler.rewrite.aten.constant_folding import is_pure
from inductor_lab.compiler.rewrite.facts import RewriteFacts
from inductor_lab.compiler.rewrite.rewrites import Fired

BUCKET = {"cpu": 512 << 10, "cuda": 4 << 20}
"""The largest bucket in bytes, by device.  CPU: eight messages over gloo take, as one message, a
twentieth (2 KiB in total) to three fifths (512 KiB) of their time, nine tenths at 1 MiB, and more
than their time at 8 MiB (`python -m benchmarks.distributed --only messages`, two processes on two
busy cores, November 2026).  CUDA: the bytes that NVLink transfers in the time of one hop."""

JOINED = {"all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor"}
"""Collectives that have a variant NAME_coalesced for several tensors."""


def collectives(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Merge small collectives of one kind, process group and dtype."""
    nodes = list(module.graph.nodes)
    sent = {node: nbytes for node in nodes if (nbytes := _nbytes(node))}
    if len(sent) < 2 or Aliases(module.graph).written:
        return
    tied = set[Node]()
    for node in reversed(nodes):
        if any(user in tied or not _may_move(user) for user in node.users):
            tied.add(node)
    buckets: dict[Any, list[Node]] = {}
    full = list[list[Node]]()
    for node in sent:
        value = node.meta["val"]
        limit = BUCKET.get(value.device.type, 0)
        if node in tied or sent[node] > limit:
            continue
        bucket = buckets.setdefault((node.target, node.args[1:], value.dtype, value.device), [])
        if sum(map(sent.__getitem__, bucket)) + sent[node] > limit:
            full.append(bucket.copy())
            bucket.clear()
        bucket.append(node)
    for bucket in (*full, *buckets.values()):
        if len(bucket) > 1:
            why, span = _why(bucket, sent), facts.span_of(bucket[-1])
            yield Fired("collectives", bucket[0].name, _join(bucket).name, span, why)


def _nbytes(node: Node) -> int:
    """Bytes of the larger side of a collective that may be merged; 0 for all other nodes."""
    if collective_kind(node.target) != "collective" or _name(node) not in JOINED:
        return 0
    fakes = [other.meta["val"] for other in (node, *node.all_input_nodes)]
    known = all(isinstance(size, int) for fake in fakes for size in fake.shape)
    return max(fake.nbytes for fake in fakes) if known else 0


def _name(node: Node) -> str:
    """The operator's name, such as "all_reduce"."""
    return str(node.target).split(".")[1]


def _may_move(node: Node) -> bool:
    """May a node run later?  Not if it is a collective or draws random numbers."""
    return (
        node.op == "output" or node.target is operator.getitem or is_pure(node)
        or collective_kind(node.target) == "wait"
    )  # fmt: skip


def _join(bucket: list[Node]) -> Node:
    """Replace the last of several messages by one message; the consumers of the others move behind
    it."""
    first, last = bucket[0], bucket[-1]
    name = f"{_name(last)}_coalesced"
    op: Any = getattr(torch.ops._c10d_functional, name).default
    new = last.graph.create_node
    with last.graph.inserting_before(last):
        given = ([node.args[0] for node in bucket], *last.args[1:])
        joined = new("call_function", op, given, name=name)
        parts = [new("call_function", operator.getitem, (joined, k)) for k in range(len(bucket))]
    stood_for = (name for node in bucket for name in node.meta.get("lab_from", ()))
    joined.meta = {**last.meta, "val": [n.meta["val"] for n in bucket], "lab_from": (*stood_for,)}
    between, latest, late = first.next, parts[-1], set(parts)
    for node, part in zip(bucket, parts, strict=True):
        part.meta = dict(node.meta)
        node.replace_all_uses_with(part)
    while between is not joined:
        node, between = between, between.next
        if late.intersection(node.all_input_nodes):
            latest.append(node)
            late.add(node)
            latest = node
    for node in bucket:
        node.graph.erase_node(node)
    return joined


def _why(bucket: list[Node], sent: dict[Node, int]) -> str:
    """The estimate: the time saved, and the largest delay."""
    rates, nbytes = RATES[bucket[0].meta["val"].device.type], sum(sent[node] for node in bucket)
    saved, later = (len(bucket) - 1) * rates.latency, nbytes / rates.link
    return (
        f"{len(bucket)} messages, {bytes_text(nbytes)} together: {saved * 1e6:.0f} us of hops "
        f"saved, the first delayed by at most {later * 1e6:.0f} us"
    )
