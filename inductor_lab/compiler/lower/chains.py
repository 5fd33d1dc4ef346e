"""Writes that follow one another in a graph: which of them lead from an input to its new value?

    c[1:5][2] = x;  c[7] = y                         as AOTAutograd gives it to us

    row = c.slice(0, 1, 5).select_scatter(x, 0, 2)   a write to a view of c
    c1 = c.slice_scatter(row, 0, 1, 5)               the view goes back to where it was taken from
    c2 = c1.select_scatter(y, 0, 7)                  a second write
    c.copy_(c2)                                      the new value of c

All of these are writes to parts of c: none of them needs a copy of it.

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
"""Operators that put a tensor in a region of another, and the view that the region is."""

PLACES = frozenset(
    {
        aten.index_put.default, aten.put.default, aten.scatter.src, aten.scatter.value,
        aten.scatter.reduce, aten.scatter.value_reduce, aten.scatter_add.default,
        aten.index_add.default, aten.index_copy.default, aten.index_fill.int_Scalar,
        aten.index_fill.int_Tensor, aten.scatter_reduce.two, aten.index_reduce.default,
    }
)  # fmt: skip
"""Operators that write at computed places of their first argument."""

SAME_ELEMENTS = frozenset(
    {
        aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.alias.default,
        aten.permute.default, aten.t.default, aten.transpose.int, aten.unsqueeze.default,
        aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
    }
)  # fmt: skip
"""Views of all elements of their argument, each once."""


FUNCTIONAL = "auto_functionalized_v2"
"""What PyTorch makes of a call of a custom operator that writes to arguments: it returns the new
values of their bases, `_all_bases`, after its results."""


def writes_to_arguments(node: Node) -> bool:
    """Is a node such a call, of an operator that is given tensors to write to one by one?"""
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


def items_of_bases(node: Node) -> list[Node]:
    """The tensors that a call has new values for."""
    bases = node.kwargs["_all_bases"]
    assert isinstance(bases, list | tuple), "bases are a list"
    return [base for base in bases if isinstance(base, Node)]


def base_before(node: Node) -> Node | None:
    """What a new value that such a call returns was before it; None for any other node."""
    if node.target is not operator.getitem or not writes_to_arguments(operand(node)):
        return None
    bases, place = items_of_bases(operand(node)), node.args[1]
    first = len(operand(node).meta["val"]) - len(bases)
    assert isinstance(place, int), "results are numbered"
    return bases[place - first] if place >= first else None


@dataclass(frozen=True, slots=True)
class Part:
    """What a buffer has in common with the one that it was before, `base`: all elements that are
    outside of each of some views (of `base`, as index maps); all if it is a copy."""

    base: str
    views: set[tuple[Index, ...]]
    copy: bool = False

    def has(self, view: tuple[Index, ...]) -> bool:
        """Are all differences inside of the view?"""
        return self.copy or view in self.views


@dataclass(frozen=True)
class Chains:
    """What a graph says of its writes to parts of tensors.

    home     writes on the path from an input to the new value that the graph gives it
    length   for each write to a region, how many of them follow one another
    """

    home: frozenset[Node]
    length: dict[Node, int]


def chains_of(graph: Graph, writes: Sequence[Write]) -> Chains:
    """The chains of a graph whose last results are what `writes` says."""
    (results,) = graph.output_node().args
    given = results[-len(writes) :] if writes and isinstance(results, list | tuple) else ()
    home: set[Node] = set()
    for value, write in zip(given, writes, strict=True):
        if write.method == "copy_" and isinstance(value, Node):
            home.update(_path(value, write.input))
    return Chains(frozenset(home), _lengths(graph))


def _path(value: Node, name: str) -> set[Node]:
    """The writes from the input of that name to `value`; none unless all steps between the two are
    views of all elements, or writes."""
    found: list[Node] = []
    start = _back(value, found)
    return set(found) if start.op == "placeholder" and start.name == name else set()


def _back(node: Node, found: list[Node]) -> Node:
    """The node that a series of writes begins with; the writes go to `found`."""
    while node.op == "call_function":
        if node.target in REGIONS:
            found.append(node)
            found.extend(_inside(node))
        elif node.target in PLACES:
            found.append(node)
        elif (before := base_before(node)) is not None:
            node = before
            continue
        elif node.target not in SAME_ELEMENTS:
            return node
        node = operand(node)
    return node


def _inside(write: Node) -> Iterator[Node]:
    """The writes to the view that a region is, whose result goes back to the region."""
    source = write.args[1]
    if not isinstance(source, Node):
        return
    found: list[Node] = []
    start = _back(source, found)
    if start.target is REGIONS[write.target] and start.args[0] is write.args[0]:
        yield from found


def _lengths(graph: Graph) -> dict[Node, int]:
    """How many writes to regions each of them has before and after it, and itself."""
    first: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.target in REGIONS:
            before = operand(node)
            while before.target in SAME_ELEMENTS:
                before = operand(before)
            first[node] = first.get(before, node)
    count = Counter(first.values())
    return {node: count[start] for node, start in first.items()}
