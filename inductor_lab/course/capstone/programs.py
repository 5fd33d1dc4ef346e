"""Hidden programs: a few random lines of tensor code, which a person can read.

    def f(x, y, w):
        a = torch.tanh(x + y)
        b = a - a[:1]
        return b, a.sum(0)

A program is data, so it can be sent to a student's process and made smaller.  All its values are
matrices of the same size.  Tensors are float64: wrong results differ by more than rounding.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import GraphModule

from inductor_lab.compiler.torch_door.torch_api import make_fx

Function = Callable[..., Any]
POINTWISE = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "torch.relu({a})", "torch.tanh({a})",
             "torch.maximum({a}, {b})", "torch.where({a} > 0, {b}, {a})", "2 * {a} + 1",
             "torch.sigmoid({a})", "{a}.abs()")  # fmt: skip
REDUCTIONS = ("{a} - {a}.amax(1, keepdim=True)", "{a} + {b}.sum(-1, keepdim=True)",
              "{a} * {b}.sum(0)", "{a} - {b}.amin(0)", "{a} / (1 + {b}.abs().sum(1, keepdim=True))")
VIEWS = ("{a} - {b}[:1]", "{a} - {b}[:, :1]", "{a} + {b}.t().reshape({b}.shape)",
         "({a}.t() * 2).t()", "{a} + {b}[-1:]", "{a} * {b}.mean(1, keepdim=True)")  # fmt: skip
PRODUCTS = ("{a} @ w", "({a} * 2) @ w")
GATES = ("{a}.softmax(1)", "F.gelu({a})", "{a} - {a}.mean()", "{a} - {a}.mean(1, keepdim=True)",
         "F.layer_norm({a}, {a}.shape[1:])", "{a}.log_softmax(-1)",
         "F.layer_norm({a}, {a}.shape[1:], {b}[0], {b}[-1])", "{a}.softmax(0)",
         "F.gelu({a}, approximate='tanh')")  # fmt: skip


@dataclass(frozen=True)
class Program:
    """The lines, each a template with the numbers of its operands: 0 is x, 1 is y, 2 is `a`."""

    rows: int
    columns: int
    lines: tuple[tuple[str, int, int], ...]
    seed: int

    def __str__(self) -> str:
        names = ["x", "y", *"abcdefghklmnop"]
        lines = ["def f(x, y, w):"]
        for number, (template, a, b) in enumerate(self.lines):
            value = template.format(a=names[a], b=names[b])
            lines.append(f"    {names[number + 2]} = {value}")
        last = names[len(self.lines) + 1]
        return "\n".join([*lines, f"    return {last}, {last}.sum(0)"])

    @property
    def described(self) -> str:
        """The text for the student."""
        n, m = self.rows, self.columns
        return f"{self}\n# x, y: {n} × {m}, w: {m} × {m}"

    def function(self) -> Function:
        names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
        exec(compile(str(self), "<hidden program>", "exec"), names)
        made: Function = names["f"]
        return made

    def inputs(self, shift: int = 0) -> list[torch.Tensor]:
        draw = torch.Generator().manual_seed(self.seed + shift)
        shapes = [(self.rows, self.columns)] * 2 + [(self.columns, self.columns)]
        return [torch.randn(n, m, generator=draw, dtype=torch.float64) for n, m in shapes]

    def results(self, shift: int = 0) -> list[torch.Tensor]:
        """What eager mode computes."""
        return [*self.function()(*self.inputs(shift))]

    def traced(self, table: Any) -> GraphModule:
        """A graph of ATen operators, decomposed with this table."""
        return trace(self.function(), self.inputs(), table)

    def smaller(self) -> Iterator[Program]:
        """The program without one line, and on smaller matrices."""
        for number in range(len(self.lines)):
            if len(self.lines) > 1:
                kept = self.lines[:number] + self.lines[number + 1 :]
                yield replace(self, lines=tuple(
                    (text, _without(a, number + 2), _without(b, number + 2)) for text, a, b in kept
                ))  # fmt: skip
        for rows, columns in ((2, 3), (3, 4)):
            if rows * columns < self.rows * self.columns:
                yield replace(self, rows=rows, columns=columns)


def _without(value: int, lost: int) -> int:
    """The number of a value after line `lost` is gone; x takes the place of the lost value."""
    return 0 if value == lost else value - (value > lost)


def trace(function: Function, inputs: list[torch.Tensor], table: Any) -> GraphModule:
    made: GraphModule = make_fx(function, decomposition_table=table, tracing_mode="fake")(*inputs)
    return made


Kinds = tuple[tuple[str, ...], ...]
"""Lines, in groups that are drawn equally often."""
SMALL = (2, 5), (3, 7)
LARGE = (10, 14), (16, 24)
"""The least and the most rows, and columns."""
Sizes = tuple[tuple[int, int], tuple[int, int]]


def drawn(draw: random.Random, kinds: Kinds, count: int, sizes: Sizes) -> Program:
    """A program of `count` lines; a line prefers the newest values."""
    lines: list[tuple[str, int, int]] = []
    for number in range(count):
        a, b = (draw.choice([number + 1, draw.randrange(number + 2)]) for _ in range(2))
        lines.append((draw.choice(draw.choice(kinds)), a, b))
    rows, columns = (draw.randint(*ends) for ends in sizes)
    return Program(rows, columns, tuple(lines), draw.randrange(1 << 30))


def each_line(draw: random.Random, kinds: Kinds, before: str, sizes: Sizes) -> Iterator[Program]:
    """A program for each line, alone or after the line `before`."""
    first = ((before, 0, 0),) if before else ()
    for template in [line for kind in kinds for line in kind]:
        lines = (*first, (template, 2, 2) if before else (template, 0, 1))
        rows, columns = (draw.randint(*ends) for ends in sizes)
        yield Program(rows, columns, lines, draw.randrange(1 << 30))


def series(draw: random.Random, kinds: Kinds, counts: str, sizes: Sizes) -> Iterator[Program]:
    """Programs with these numbers of lines: "1 1 2 4"."""
    for count in counts.split():
        yield drawn(draw, kinds, int(count), sizes)
