"""Which collectives are merged and which must not be, in graphs whose nodes have only shapes."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.rewrite.aten.bucket_collectives import BUCKET
from inductor_lab.compiler.rewrite.passes import rewrite

aten, c10d = torch.ops.aten, torch.ops._c10d_functional


class Builder:
    """A graph of collectives over one input of `size` floats."""

    def __init__(self, size: int = 16) -> None:
        self.graph, self.size = Graph(), size
        self.x = self.graph.placeholder("x")
        self.x.meta["val"] = torch.empty(size)

    def call(self, op: Any, *args: Any, **meta: Any) -> Node:
        node = self.graph.call_function(op, args)
        node.meta["val"] = meta.get("val", torch.empty(self.size))
        return node

    def sum_of(self, x: Node, kind: str = "sum") -> Node:
        return self.call(c10d.wait_tensor.default, self.call(c10d.all_reduce.default, x, kind, "0"))

    def joined(self, *outputs: Node, **options: Any) -> list[int]:
        """The number of tensors in each message of the result, in order."""
        self.graph.output(outputs)
        result = rewrite(GraphModule({}, self.graph), "forward", Options(**options))
        result.module.graph.lint()
        self.fired = result.steps[0].fired
        sent = [n for n in result.module.graph.nodes if "all_reduce" in str(n.target)]
        return [len(n.args[0]) if isinstance(n.args[0], list | tuple) else 1 for n in sent]


def test_independent_sums_are_merged() -> None:
    build = Builder()
    sums = [build.sum_of(build.call(aten.mul.Tensor, build.x, k)) for k in range(2, 5)]
    scaled = [build.call(aten.div.Tensor, s, 2) for s in sums]
    assert build.joined(*scaled) == [3]
    (fired,) = build.fired
    assert fired.rule == "collectives" and fired.became == "all_reduce_coalesced"
    assert "3 messages, 192 B together: 200 us of hops saved" in fired.why


def test_a_collective_that_another_one_needs_is_not_merged() -> None:
    build = Builder()
    first = build.sum_of(build.x)
    second = build.sum_of(build.call(aten.sin.default, first))
    third = build.sum_of(build.call(aten.cos.default, build.x))
    assert build.joined(second, third) == [1, 2]


def test_other_reductions_and_dtypes_are_not_merged() -> None:
    build = Builder()
    half = build.call(aten._to_copy.default, build.x, val=torch.empty(16, dtype=torch.bfloat16))
    sent = build.call(c10d.all_reduce.default, half, "sum", "0", val=half.meta["val"])
    narrow = build.call(c10d.wait_tensor.default, sent, val=half.meta["val"])
    assert build.joined(build.sum_of(build.x), build.sum_of(build.x, "max"), narrow) == [1, 1, 1]


def test_a_bucket_has_a_maximum_size() -> None:
    build = Builder(BUCKET["cpu"] // 4 // 2)
    assert build.joined(*(build.sum_of(build.x, "sum") for _ in range(5))) == [2, 2, 1]
    large = Builder(BUCKET["cpu"] // 4 + 1)
    assert large.joined(large.sum_of(large.x), large.sum_of(large.x)) == [1, 1]


def test_the_order_of_random_draws_is_kept() -> None:
    build = Builder()
    kept = build.call(aten.bernoulli.default, build.sum_of(build.x))
    other = build.call(aten.bernoulli.default, build.x)
    assert build.joined(kept, build.sum_of(other)) == [1, 1]


def test_symbolic_sizes_are_not_merged() -> None:
    build = Builder()
    symbolic = torch.fx.experimental.symbolic_shapes.ShapeEnv().create_unbacked_symint()
    with torch._subclasses.FakeTensorMode(shape_env=symbolic.node.shape_env):
        value = torch.empty(symbolic)
    waits = []
    for _ in range(2):
        sent = build.call(c10d.all_reduce.default, build.x, "sum", "0", val=value)
        waits.append(build.call(c10d.wait_tensor.default, sent, val=value))
    assert build.joined(*waits) == [1, 1]


def test_the_pass_can_be_disabled() -> None:
    build = Builder()
    sums = build.sum_of(build.x), build.sum_of(build.x)
    assert build.joined(*sums, rewrites_off=("collectives", "common_subexpressions")) == [1, 1]


def test_gathers_are_merged() -> None:
    build = Builder()
    whole = torch.empty(32)
    out = []
    for k in (2, 3):
        part = build.call(aten.mul.Tensor, build.x, k)
        sent = build.call(c10d.all_gather_into_tensor.default, part, 2, "0", val=whole)
        out.append(build.call(c10d.wait_tensor.default, sent, val=whole))
    build.joined(*out)
    (fired,) = build.fired
    assert fired.became == "all_gather_into_tensor_coalesced" and "256 B" in fired.why
