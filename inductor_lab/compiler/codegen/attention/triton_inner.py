"""Prints a pointwise group as lines inside a larger Triton kernel.

The points of the group are a block of rows and columns.  Some of its inputs are blocks that the
kernel has already loaded or computed.  Its stores become variables.

    seen[b, h, i, j] = scores[b, h, i, j] + table[i - j]    →    t0 = tl.load(in0 + i - j)
                                                                 seen = scores + t0

Inductor: `ModificationWrapper` in `select_algorithm.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy

from inductor_lab.compiler.codegen.kernel import Line
from inductor_lab.compiler.codegen.tree.emit_values import ValueEmitter
from inductor_lab.compiler.codegen.tree.inline_temps import tidy
from inductor_lab.compiler.codegen.tree.loop_tree import Loop, LoopKind, Store, Tree
from inductor_lab.compiler.codegen.triton.blocks import Blocks
from inductor_lab.compiler.codegen.triton.expressions import Dims, Value
from inductor_lab.compiler.codegen.triton.statements import Printer
from inductor_lab.compiler.codegen.triton.triton_ops import TRITON_OPS
from inductor_lab.compiler.ir.expr import Load
from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group


@dataclass(frozen=True)
class Surroundings:
    """What the surrounding kernel provides.

    positions   the values of the group's four axes: batch, head, row and column
    at_hand     buffer → the block that the kernel already has
    pointers    buffer → the argument of the kernel
    results     buffer → the variable that it becomes
    sizes       symbol in a size → the argument of the kernel
    lengths     dimension → its length in the block, in order
    inside      dimension → the mask of valid points, if the block can reach beyond the end
    """

    positions: Sequence[Value]
    at_hand: Mapping[str, Value]
    pointers: Mapping[str, str]
    results: Mapping[str, str]
    sizes: Mapping[sympy.Expr, str]
    lengths: Mapping[str, int]
    inside: Mapping[str, Value]


class Within(Printer):
    """Prints the statements of such a group, whose tree `tree_of` builds."""

    def __init__(self, group: Group, tree: Tree, given: Surroundings) -> None:
        super().__init__("", (), Blocks((), tree, 1, {}, 1), TRITON_OPS, "int32")
        self.given, self.buffer = given, dict(given.pointers)
        self.text.symbols = given.sizes
        for axis, position in zip(group.nests[0].axes, given.positions, strict=True):
            self.text.positions[axis.name] = position

    def printed(self, indent: int) -> tuple[Line, ...]:
        self.indent = indent
        self._statements(self.blocks.body)
        return tuple(self.lines)

    def _loop(self, loop: Loop) -> None:
        self._statements(loop.body)

    def _load(self, load: Load) -> Value:
        block = self.given.at_hand.get(load.buffer)
        return super()._load(load) if block is None else block

    def _store(self, store: Store) -> None:
        self._line(f"{self.given.results[store.buffer]} = {self.text.value(store.value).text}")

    def _mask(self, dims: Dims) -> list[Value]:
        return [*(mask for dim, mask in self.given.inside.items() if dim in dims), *self.guards]

    def _shape(self, dims: Dims) -> str:
        lengths = (length if dim in dims else 1 for dim, length in self.given.lengths.items())
        return f"[{', '.join(map(str, lengths))}]"


def tree_of(group: Group, buffers: Mapping[str, Buffer]) -> Tree:
    """Build the loop tree of a group, with one loop for each axis."""
    at = ValueEmitter(group, buffers)
    at.open()
    for axis in group.axes:
        at.open(axis)
    values = [at.value(nest.roots[0], nest.origins) for nest in group.nests]
    for nest, value in zip(group.nests, values, strict=True):
        place = buffers[nest.buffer].layout.element(tuple(map(Index.of, nest.axes)))
        at.emit(Store(nest.buffer, place, value, nest.origins))
    for axis in reversed(group.axes):
        body = at.close()
        at.emit(Loop(axis, LoopKind.PARALLEL, body))
    return tidy(at.close())
