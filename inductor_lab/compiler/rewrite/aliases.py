"""Which nodes share memory, and when one node may replace another.

AOTAutograd has recorded which outputs are new memory, and their strides.  So a rewrite that keeps
all values may still be wrong: `return x * 1` must not become `return x`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

from inductor_lab.compiler.torch_door.torch_api import expression_of, forward_results

aten = torch.ops.aten

_HIDDEN_VIEWS = (aten._unsafe_view.default, operator.getitem)
"""Operators whose result shares the operand's memory, although no schema says so."""

_FUNCTIONALIZED = (
    torch.ops.higher_order.auto_functionalized,
    torch.ops.higher_order.auto_functionalized_v2,
)
_SCATTERS = (
    aten.select_scatter.default, aten.slice_scatter.default, aten.diagonal_scatter.default,
    aten.as_strided_scatter.default,
)  # fmt: skip


def is_view(node: Node) -> bool:
    """Does the result alias the first argument?"""
    if node.target in _HIDDEN_VIEWS:
        return True
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.returns or schema.is_mutable:
        return False
    return schema.returns[0].alias_info is not None


def _view_chain(node: Node) -> Iterator[Node]:
    """The chain of views from a node to its base, starting with the node."""
    yield node
    while node.op == "call_function" and is_view(node) and isinstance(node.args[0], Node):
        node = node.args[0]
        yield node


def base_of(node: Node) -> Node:
    """The node that this one is a view of; the node itself if it is not a view."""
    *_, base = _view_chain(node)
    return base


def storage_of(node: Node) -> Node:
    """The furthest base that this node is a view of with the same dtype.

    `as_strided` depends only on the start of the storage, so it gives the same result for both.
    """
    found, dtype = node, node.meta["val"].dtype
    for base in _view_chain(node):
        seen = base.meta.get("val")
        if isinstance(seen, torch.Tensor):
            if seen.dtype != dtype:
                break
            found = base
    return found


def has_absolute_offset(node: Node) -> bool:
    """Does a view have an explicit storage offset, independent of its argument's offset?"""
    strided = (n for n in _view_chain(node) if n.target is aten.as_strided.default)
    return any(n.args[3:4] not in ((), (None,)) for n in strided)


def escapes(base: Node) -> bool:
    """Does an output of the graph alias this node?"""
    waiting = [base]
    while waiting:
        node = waiting.pop()
        for user in node.users:
            if user.op == "output":
                return True
            if user.args[:1] == (node,) and base_of(user) is base:
                waiting.append(user)
    return False


def facts(value: Any) -> tuple[Any, ...]:
    """The metadata that must be equal if one value replaces another."""
    if not isinstance(value, torch.Tensor):
        return (type(value),)
    strides = () if value.layout is not torch.strided else tuple(map(expression_of, value.stride()))
    return value.dtype, value.device, value.layout, tuple(map(expression_of, value.shape)), strides


def same_sizes(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Are these equal for all values of their symbols?  Adds no guard."""
    return tuple(map(expression_of, one)) == tuple(map(expression_of, other))


def same_facts(one: Node, other: Node) -> bool:
    """Same dtype, device, sizes and strides, and both are known?"""
    a, b = one.meta.get("val"), other.meta.get("val")
    return a is not None and b is not None and facts(a) == facts(b)


class Aliases:
    """Which nodes escape the graph, are written to, or depend on the storage layout."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.written: set[Node] = set()
        self.raw: set[Node] = set()
        for node in reversed(graph.nodes):  # consumers first
            self.written.update(base_of(argument) for argument in _written_arguments(node))
            self.raw.update(map(base_of, _strided_arguments(node)))
            if node in self.raw:
                self.raw.update(map(base_of, _copied_with_offset(node)))

    def may_replace(self, old: Node, new: Node) -> bool:
        """May `new` replace `old` everywhere, given that their values are equal?"""
        if not same_facts(old, new):
            return False
        old_base, new_base = base_of(old), base_of(new)
        if old_base is new_base:
            # autograd records for each result tensor whether it requires a gradient
            return not {old, new} <= set(forward_results(self.graph.output_node()))
        if {old_base, new_base} & self.written or old_base in self.raw:
            return False
        is_fresh = new_base.op == "call_function" and not escapes(new_base)
        return is_fresh or not escapes(old_base)


def _strided_arguments(node: Node) -> Iterator[Node]:
    """Arguments whose elements the node addresses by their position in the storage."""
    if node.target is aten.as_strided.default:
        yield node
    elif node.target is torch.ops.higher_order.auto_functionalized_v2:
        # a custom operator writes to views of its bases, given by strides and a storage offset
        if any(name.endswith("_storage_offset") for name in node.kwargs):
            bases: Any = node.kwargs["_all_bases"]
            yield from bases


def _copied_with_offset(node: Node) -> Iterator[Node]:
    """Arguments whose storage offset the result has: the node writes to a copy with that offset."""
    if node.target in _FUNCTIONALIZED:
        yield from node.all_input_nodes
    elif node.target in _SCATTERS and isinstance(node.args[0], Node):
        yield node.args[0]


def _written_arguments(node: Node) -> Iterator[Node]:
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = node.kwargs.get(argument.name)
        if position < len(node.args):
            given = node.args[position]
        for item in given if isinstance(given, list | tuple) else [given]:
            if isinstance(item, Node):
                yield item
