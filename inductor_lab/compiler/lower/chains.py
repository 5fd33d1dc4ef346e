"""Chains of writes in a graph: which writes are on the path from an input to its new value?

    c[1:5][2] = x;  c[7] = y                         AOTAutograd gives us this graph:

    row = c.slice(0, 1, 5).select_scatter(x, 0, 2)   a write to a view of c
    c1 = c.slice_scatter(row, 0, 1, 5)               the view is written back to its base
    c2 = c1.select_scatter(y, 0, 7)                  a second write
    c.copy_(c2)                                      the new value of c

All of these are writes to parts of c.  None of them needs a copy of c.

Inductor: `fx_passes/reinplace.py`, `canonicalize_view_scatter_ops`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from inductor_lab.compiler.capture.operands import operand
from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.ir.program import Write
from inductor_lab.compiler.torch_door.torch_api import OpOverload

aten = torch.ops.aten

REGIONS: Mapping[Any, Any] = {
    aten.select_scatter.default: aten.select.int,
    aten.slice_scatter.default: aten.slice.Tensor,
    aten.diagonal_scatter.default: aten.diagonal.default,
    aten.as_strided_scatter.default: aten.as_strided.default,
}
"""Operators that write a tensor to a region of another one → the view operator of that region."""

PLACES = frozenset(
    {
        aten.index_put.default, aten.put.default, aten.scatter.src, aten.scatter.value,
        aten.scatter.reduce, aten.scatter.value_reduce, aten.scatter_add.default,
        aten.index_add.default, aten.index_copy.default, aten.index_fill.int_Scalar,
        aten.index_fill.int_Tensor, aten.scatter_reduce.two, aten.index_reduce.default,
    }
)  # fmt: skip
"""Operators that write to computed positions of their first argument."""

SAME_ELEMENTS = frozenset(
    {
        aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.alias.default,
        aten.permute.default, aten.t.default, aten.transpose.int, aten.unsqueeze.default,
        aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
    }
)  # fmt: skip
"""Views that contain each element of their argument exactly once."""


FUNCTIONAL = "auto_functionalized_v2"
"""PyTorch's functional form of a custom operator that writes to arguments: it returns the results,
followed by the new values of `_all_bases`."""


def writes_to_arguments(node: Node) -> bool:
    """Is a node such a call, of an operator whose mutable arguments are single tensors?"""
    if getattr(node.target, "__name__", "") != FUNCTIONAL or "_all_bases" not in node.kwargs:
        return False
    called = node.args[0]
    if not isinstance(called, OpOverload):
        return False
    return all(f"_{name}_base_index" in node.kwargs for name in written_arguments(called))


def written_arguments(op: OpOverload) -> list[str]:
    """The names of the arguments that an operator writes to."""
    given = op._schema.arguments
    return [a.name for a in given if a.alias_info is not None and a.alias_info.is_write]


def base_tensors(node: Node) -> list[Node]:
    """The tensors for which a call returns new values."""
    bases = node.kwargs["_all_bases"]
    assert isinstance(bases, list | tuple), "_all_bases is a list"
    return [base for base in bases if isinstance(base, Node)]


def old_base(node: Node) -> Node | None:
    """The old value of a base, given its new value that such a call returns; None for other
    nodes."""
    if node.target is not operator.getitem or not writes_to_arguments(operand(node)):
        return None
    bases, place = base_tensors(operand(node)), node.args[1]
    first = len(operand(node).meta["val"]) - len(bases)
    assert isinstance(place, int), "the index of a result is an int"
    return bases[place - first] if place >= first else None


@dataclass(frozen=True, slots=True)
class ChangedCopy:
    """How a buffer differs from `base`, its earlier value.

    Elements outside each of the `views` (index maps of `base`) are equal.  If `copy` is true, all
    elements are equal.
    """

    base: str
    views: set[tuple[Index, ...]]
    copy: bool = False

    def has(self, view: tuple[Index, ...]) -> bool:
        """Are all differences inside the view?"""
        return self.copy or view in self.views


@dataclass(frozen=True)
class Chains:
    """The writes to parts of tensors in a graph.

    home     writes on the path from an input to its new value
    length   for each write to a region, the number of writes in its chain
    """

    home: frozenset[Node]
    length: dict[Node, int]


def chains_of(graph: Graph, writes: Sequence[Write]) -> Chains:
    """The chains of a graph; `writes` describe its last results."""
    (results,) = graph.output_node().args
    given = results[-len(writes) :] if writes and isinstance(results, list | tuple) else ()
    home: set[Node] = set()
    for value, write in zip(given, writes, strict=True):
        if write.method == "copy_" and isinstance(value, Node):
            home.update(_path(value, write.input))
    return Chains(frozenset(home), _lengths(graph))


def _path(value: Node, name: str) -> set[Node]:
    """The writes from the input of that name to `value`; empty unless every node between the two is
    a write or a view of all elements."""
    found: list[Node] = []
    start = _back(value, found)
    return set(found) if start.op == "placeholder" and start.name == name else set()


def _back(node: Node, found: list[Node]) -> Node:
    """The node where a chain of writes begins; adds the writes to `found`."""
    while node.op == "call_function":
        if node.target in REGIONS:
            found.append(node)
            found.extend(_inside(node))
        elif node.target in PLACES:
            found.append(node)
        elif (before := old_base(node)) is not None:
            node = before
            continue
        elif node.target not in SAME_ELEMENTS:
            return node
        node = operand(node)
    return node


def _inside(write: Node) -> Iterator[Node]:
    """The writes to a view of a region whose result is written back to the region."""
    source = write.args[1]
    if not isinstance(source, Node):
        return
    found: list[Node] = []
    start = _back(source, found)
    if start.target is REGIONS[write.target] and start.args[0] is write.args[0]:
        yield from found


def _lengths(graph: Graph) -> dict[Node, int]:
    """For each write to a region, the number of writes in its chain, itself included."""
    first: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.target in REGIONS:
            before = operand(node)
            while before.target in SAME_ELEMENTS:
                before = operand(before)
            first[node] = first.get(before, node)
    count = Counter(first.values())
    return {node: count[start] for node, start in first.items()}
