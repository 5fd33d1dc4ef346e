"""Equal calls are decomposed once: the nodes of the first call are copied for the others.

    native_layer_norm(x, [768], w, b, 1e-5)     twelve layers: traced once, copied eleven times

Each operator in a definition goes through PyTorch's dispatcher, functional tensors, fake tensors
and the tracer; a layer norm and its gradient take a third of AOTAutograd's time for a transformer.
The names, order and metadata of the nodes are those of a trace.

Inductor has no counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from operator import getitem
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from inductor_lab.compiler.torch_door.torch_aot import Tracing
from inductor_lab.compiler.torch_door.torch_api import FakeTensor, OpOverload

PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device, torch.layout,
         torch.memory_format)  # fmt: skip
"""Types of arguments that are compared by value."""

COPIED = ("val", "tensor_meta")
"""Metadata of a node that is copied with its result; all other metadata belongs to the call."""


Places = dict[int, tuple[int, torch.Tensor]]
"""The tensors of a call by identity, because a foreach operator has hundreds."""


class NotComparable(Exception):
    """A call cannot be compared with others, or its nodes cannot be copied."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The nodes that a call added to the graph.

    inputs    the nodes of its tensors, in order
    nodes     the nodes of the operators that it called
    results   for each result its node and the tensor; None for None
    made_of   builds the return value of the definition from the results
    """

    inputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    results: tuple[tuple[Node, torch.Tensor] | None, ...]
    made_of: Callable[[Sequence[Any]], Any]


class Repeats:
    """The definitions of a table, with their traces in one graph."""

    def __init__(self, table: Mapping[Any, Callable[..., Any]]) -> None:
        self.definitions = {op: partial(self.call, op, made) for op, made in table.items()}
        self._known: WeakKeyDictionary[Any, dict[Any, Trace | None]] = WeakKeyDictionary()

    def call(self, operator: Any, made: Callable[..., Any], *given: Any, **more: Any) -> Any:
        """The result of the definition for these arguments; traced or copied."""
        tensors: Places = {}
        into = Tracing.now()
        try:
            kind = operator, _signature((*given, *more.items()), tensors)
            inputs = _nodes([tensor for _, tensor in tensors.values()], into)
        except NotComparable:
            return made(*given, **more)
        known = self._known.setdefault(into.tracer, {})
        trace = known.get(kind)
        if trace is not None:
            return _copied(trace, inputs, into)
        last = next(iter(reversed(into.tracer.graph.nodes)))
        made_now = made(*given, **more)
        if kind not in known:
            try:
                known[kind] = _trace(inputs, _after(last), made_now, into)
            except NotComparable:
                known[kind] = None
        return made_now


def _signature(value: Any, tensors: Places) -> Any:
    """Everything that a definition may depend on in an argument; adds each tensor to `tensors`
    once."""
    if isinstance(value, FakeTensor):
        if value.layout is not torch.strided or value.dtype.is_complex or value.is_neg():
            raise NotComparable
        sizes = (*value.shape, *value.stride(), value.storage_offset())
        if not all(type(size) is int for size in sizes):
            raise NotComparable
        place, _ = tensors.setdefault(id(value), (len(tensors), value))
        return place, value.dim(), sizes, value.dtype, value.device
    if isinstance(value, list | tuple):
        return tuple(_signature(item, tensors) for item in value)
    if isinstance(value, PLAIN):
        return type(value), repr(value) if isinstance(value, float) else value
    raise NotComparable


def _nodes(tensors: Sequence[torch.Tensor], into: Tracing) -> tuple[Node, ...]:
    nodes = tuple(node for node in map(into.node_of, tensors) if node is not None)
    if not nodes or len(nodes) < len(tensors):
        raise NotComparable
    return nodes


def _after(last: Node) -> tuple[Node, ...]:
    nodes, node = [], last.next
    while node.op != "root":
        nodes.append(node)
        node = node.next
    return tuple(nodes)


def _trace(inputs: tuple[Node, ...], nodes: tuple[Node, ...], made: Any, into: Tracing) -> Trace:
    """The trace of a call, if each of its nodes can be recreated from the tensors of the call."""
    called = frozenset(nodes)
    known = called.union(inputs)
    for node in nodes:
        if not (_is_plain(node.target) and known.issuperset(node.all_input_nodes)):
            raise NotComparable
    alone = isinstance(made, torch.Tensor)
    if not (alone or isinstance(made, list | tuple)):
        raise NotComparable  # NotImplemented: the operator is not decomposed
    results = tuple(_result(one, called, into) for one in ([made] if alone else made))
    own = [found[0] for found in results if found is not None]
    if len({*own}) < len(own):
        raise NotComparable
    made_of = _only if alone else list if isinstance(made, list) else tuple
    return Trace(inputs, nodes, results, made_of)


def _result(made: Any, called: Set[Node], into: Tracing) -> tuple[Node, torch.Tensor] | None:
    """A result and its node, which must not be a view of an argument or of another result."""
    if made is None:
        return None
    _signature(made, {})
    (node,) = _nodes([made], into)
    source: Any = node.args[0] if node.target is getitem else node
    if source not in called or any(found.alias_info for found in source.target._schema.returns):
        raise NotComparable
    return node, made


def _is_plain(target: Any) -> bool:
    """Does a node compute the same result each time it runs?"""
    return target is getitem or (
        isinstance(target, OpOverload)
        and not target._schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in target.tags
    )


def _copied(trace: Trace, inputs: tuple[Node, ...], into: Tracing) -> Any:
    """The results of a traced call for other tensors."""
    now = dict(zip(trace.inputs, inputs, strict=True))
    for node in trace.nodes:
        args, kwargs = map_arg((node.args, node.kwargs), now.__getitem__)
        name = re.sub(r"_\d+$", "", node.name)
        now[node] = copy = into.tracer.create_node(node.op, node.target, args, kwargs, name)
        copy.meta.update({key: node.meta[key] for key in COPIED if key in node.meta})
    return trace.made_of(
        [found and into.tensor_of(now[found[0]], like=found[1]) for found in trace.results]
    )


def _only(results: Sequence[Any]) -> Any:
    (result,) = results
    return result
