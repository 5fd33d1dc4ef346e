"""Which nodes share memory, and when one node may stand in for another.

AOTAutograd has promised its caller which outputs are fresh memory and what their strides are.  So a
rewrite that is right about values may still be wrong: `return x * 1` must not become `return x`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

from inductor_lab.compiler.torch_door.torch_api import expression_of, given_back

aten = torch.ops.aten

_HIDDEN_VIEWS = (aten._unsafe_view.default, operator.getitem)
"""What returns (part of) its operand's memory although no schema says so."""

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


def _looks_into(node: Node) -> Iterator[Node]:
    """The chain of views from a node to its base, the node first."""
    yield node
    while node.op == "call_function" and is_view(node) and isinstance(node.args[0], Node):
        node = node.args[0]
        yield node


def base_of(node: Node) -> Node:
    """The node that this one is a view of; itself, unless it is a view."""
    *_, base = _looks_into(node)
    return base


def storage_of(node: Node) -> Node:
    """The furthest node whose memory this one looks into, and as the same dtype: `as_strided`,
    which asks only where storage begins, means the same for both."""
    found, dtype = node, node.meta["val"].dtype
    for base in _looks_into(node):
        seen = base.meta.get("val")
        if isinstance(seen, torch.Tensor):
            if seen.dtype != dtype:
                break
            found = base
    return found


def asks_storage(node: Node) -> bool:
    """Does a view begin at a place of the storage itself, not of what it is a view of?"""
    strided = (n for n in _looks_into(node) if n.target is aten.as_strided.default)
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
    """What must be equal for one value to take the place of another."""
    if not isinstance(value, torch.Tensor):
        return (type(value),)
    strides = () if value.layout is not torch.strided else tuple(map(expression_of, value.stride()))
    return value.dtype, value.device, value.layout, tuple(map(expression_of, value.shape)), strides


def same_sizes(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Are these equal for all values of their symbols?  Adds no guard."""
    return tuple(map(expression_of, one)) == tuple(map(expression_of, other))


def same_facts(one: Node, other: Node) -> bool:
    """Same dtype, device, sizes and strides, as far as both are known."""
    a, b = one.meta.get("val"), other.meta.get("val")
    return a is not None and b is not None and facts(a) == facts(b)


class Aliases:
    """What escapes a graph, what is written to, and what depends on raw storage."""

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
        """May every use of `old` be a use of `new`, given that their values are equal?"""
        if not same_facts(old, new):
            return False
        old_base, new_base = base_of(old), base_of(new)
        if old_base is new_base:
            # autograd keeps for each result tensor whether it has a gradient
            return not {old, new} <= set(given_back(self.graph.output_node()))
        if {old_base, new_base} & self.written or old_base in self.raw:
            return False
        is_fresh = new_base.op == "call_function" and not escapes(new_base)
        return is_fresh or not escapes(old_base)


def _strided_arguments(node: Node) -> Iterator[Node]:
    """Arguments of which the node addresses elements by their place in the storage."""
    if node.target is aten.as_strided.default:
        yield node
    elif node.target is torch.ops.higher_order.auto_functionalized_v2:
        # a custom operator writes to views of these; strides and a storage offset describe a view
        if any(name.endswith("_storage_offset") for name in node.kwargs):
            bases: Any = node.kwargs["_all_bases"]
            yield from bases


def _copied_with_offset(node: Node) -> Iterator[Node]:
    """Arguments whose storage offset the result has: the node writes to a copy that keeps it."""
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
