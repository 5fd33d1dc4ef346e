"""Memory accesses of a captured graph: which nodes write to which tensors, and through which views.

TorchDynamo runs each node with fake tensors, which share storages as the real ones do, also between
a graph and its nested graphs.  So views of one tensor have the same storage.
"""

from __future__ import annotations

import inspect
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.torch_door.torch_api import (
    OpOverload,
    OpOverloadPacket,
    expression_of,
    pytree,
    size_hint,
)

_IN_PLACE = frozenset(
    f"i{name}" for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
        "and", "or", "xor", "lshift", "rshift",
    )
)  # fmt: skip
"""Functions of the module `operator` that write to their first argument: `x += y`."""
_DUNDERS = frozenset(["__setitem__", *(f"__{name}__" for name in _IN_PLACE)])
NEW_LAYOUT = frozenset(
    {
        "as_strided_", "detach_", "requires_grad_", "squeeze_", "swapaxes_", "swapdims_", "t_",
        "transpose_", "unsqueeze_", "resize_", "resize_as_", "set_", "rename_", "share_memory_",
        "shallow_copy_data_",  # `x.data = y` since torch 2.14; before, it was `set_`
    }
)  # fmt: skip
"""Methods that change the metadata of a tensor, but none of its elements."""


@dataclass(frozen=True)
class Writing:
    """A node that writes to the elements of `target`."""

    node: Node
    target: Node


@dataclass(frozen=True)
class Memory:
    """The nodes of a captured graph and of its nested graphs, with their writes.

    `of_storage` has the nodes of each storage, in order; `_storages` those of each node.
    """

    nodes: tuple[Node, ...]
    writings: tuple[Writing, ...]
    of_storage: dict[int, list[Node]] = field(repr=False)
    _storages: dict[Node, frozenset[int]] = field(repr=False)

    @classmethod
    def of(cls, module: torch.nn.Module) -> Memory:
        """Read the accesses of a TorchDynamo graph."""
        parts = [part.graph for part in module.modules() if isinstance(part, GraphModule)]
        nodes = tuple(node for graph in parts for node in graph.nodes)
        found = {node: frozenset(map(storage_of, _tensors(node))) for node in nodes}
        of_storage: dict[int, list[Node]] = defaultdict(list)
        for node in nodes:
            for storage in found[node]:
                of_storage[storage].append(node)
        writings = tuple(Writing(n, target) for n in nodes for target in _targets(n))
        return cls(nodes, writings, of_storage, found)

    def storages_of(self, node: Node) -> frozenset[int]:
        """The storages of the result of a node."""
        return self._storages[node]

    def written(self, node: Node) -> bool:
        """Does any node of the graph write to the storage of this node's tensor?"""
        mine = self.storages_of(node)
        return any(not mine.isdisjoint(self.storages_of(w.target)) for w in self.writings)

    def written_with_gradients(self) -> Iterator[Writing]:
        """The writes outside `torch.no_grad()`, as far as the graph shows it."""
        enabled, without = torch.is_grad_enabled(), set()
        for node in self.nodes:
            if getattr(node.target, "__name__", "") == "_set_grad_enabled":
                enabled = bool(node.args[0])
            elif not enabled:
                without.add(node)
        return (writing for writing in self.writings if writing.node not in without)

    def views_behind(self, node: Node) -> Iterator[Node]:
        """The node, and the nodes that it is a view of, back to the node that owns the memory.

        An input of a nested graph continues at the outer nodes with the same layout.
        """
        mine, seen, pending = self.storages_of(node), {node}, [node]
        while pending:
            view = pending.pop()
            yield view
            behind = view.all_input_nodes
            if view.op == "placeholder" and view.graph is not self.nodes[0].graph:
                fake = tensor_of(view)
                behind = [
                    n for s in mine for n in self.of_storage[s] if same_layout(tensor_of(n), fake)
                ]
            for other in behind:
                if other not in seen and not mine.isdisjoint(self.storages_of(other)):
                    seen.add(other)
                    pending.append(other)


def tensor_of(node: Node) -> torch.Tensor | None:
    """The strided fake tensor of a node, or the first one of several."""
    return next(_tensors(node), None)


def storage_of(tensor: torch.Tensor) -> int:
    """A number that is equal for tensors that share their storage."""
    return int(tensor.untyped_storage()._cdata)


def may_overlap(tensor: torch.Tensor) -> bool:
    """May two elements share memory?  Not if each stride is larger than the extent of all smaller
    ones."""
    sizes, strides = (tuple(map(size_hint, n)) for n in (tensor.shape, tensor.stride()))
    reach = 1
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1 and stride < reach:
            return True
        reach += stride * (size - 1)
    return False


def extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The first byte of a storage that a tensor may access, and the one after the last."""
    sizes, strides = (tuple(map(size_hint, n)) for n in (tensor.shape, tensor.stride()))
    first = size_hint(tensor.storage_offset())
    reach = sum(stride * (size - 1) for size, stride in zip(sizes, strides, strict=True))
    last = first + (reach + 1 if 0 not in sizes else 0)
    return first * tensor.element_size(), last * tensor.element_size()


def _tensors(node: Node) -> Iterator[torch.Tensor]:
    value = node.meta.get("example_value")
    for leaf in pytree.tree_leaves(value) if isinstance(value, list | tuple) else (value,):
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and _has_storage(leaf):
            yield leaf


def _has_storage(tensor: torch.Tensor) -> bool:
    """Wrapper tensors of transformations (`torch.func`) have no storage."""
    try:
        tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):
        return False
    return True


def same_layout(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    """Do two tensors of one storage have the same elements, for all values of the symbols?"""
    return one is not None and other is not None and _layout(one) == _layout(other)


def _layout(tensor: torch.Tensor) -> list[Any]:
    """Sizes, strides and offset as expressions, because comparing symbols would add guards."""
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    return [expression_of(number) for number in numbers]


def _targets(node: Node) -> Iterable[Node]:
    """The nodes to whose elements a node writes."""
    if node.op == "call_method":
        name = str(node.target)
        in_place = name.endswith("_") and not name.endswith("__") and name not in NEW_LAYOUT
        return _nodes_in(node.args[:1]) if in_place or name in _DUNDERS else ()
    if node.op != "call_function":
        return ()
    target: Any = node.target
    if isinstance(target, OpOverloadPacket):
        target = getattr(target, target.overloads()[0])
    if isinstance(target, OpOverload):
        if target._schema.name.removeprefix("aten::") in NEW_LAYOUT:
            return ()
        return _nodes_in(list(_written_arguments(target, node)))
    name = getattr(target, "__name__", "")
    if target is operator.setitem or _is_in_place(target, name):
        return _nodes_in(node.args[:1])
    if _has_in_place_flag(target, node):
        return _nodes_in(node.args[:1] or (node.kwargs.get("input"),))
    return _nodes_in(node.kwargs.get("out"))


def _is_in_place(target: Any, name: str) -> bool:
    if getattr(target, "__module__", "") == "_operator":
        return name in _IN_PLACE
    return name.endswith("_") and not name.endswith("__") and name not in NEW_LAYOUT


def _has_in_place_flag(target: Any, node: Node) -> bool:
    """Is it called as `relu(x, inplace=True)`?"""
    if "inplace" in node.kwargs:
        return node.kwargs["inplace"] is True
    if True not in [arg for arg in node.args if isinstance(arg, bool)]:
        return False
    try:
        given = inspect.signature(target).bind_partial(*node.args)
    except (TypeError, ValueError):
        return False
    return given.arguments.get("inplace") is True


def _written_arguments(overload: OpOverload, node: Node) -> Iterator[Any]:
    for place, argument in enumerate(overload._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)


def _nodes_in(value: Any) -> Sequence[Node]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Node)]
