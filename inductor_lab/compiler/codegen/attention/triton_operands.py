"""Prints the operands and lines that the kernels of `triton_flash.py` share.

    queries = tl.load(query + 10240 * b + 64 * h + 16 * rows[:, None] + d[None, :], mask=…)

Sizes and strides are constants in the text, or arguments of the kernel if they are symbolic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import sympy

from inductor_lab.compiler.codegen.attention.attention_call import (
    WHOLE_LENGTH,
    Attention,
    Operand,
    Visit,
)
from inductor_lab.compiler.codegen.attention.triton_inner import Surroundings, Within, tree_of
from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line, Parameter
from inductor_lab.compiler.codegen.parameters import kernel_parameters
from inductor_lab.compiler.codegen.triton.blocks import power_of_2
from inductor_lab.compiler.codegen.triton.expressions import Expressions, Value, signature
from inductor_lab.compiler.codegen.triton.triton_ops import TRITON_OPS, TRITON_TYPES
from inductor_lab.compiler.ir.index import Size, is_int, mul_sizes, size_arguments
from inductor_lab.compiler.ir.program import views_in

ROW, COLUMN = frozenset("x"), frozenset("r")


@dataclass(frozen=True)
class Tile:
    """The queries (rows) and keys (columns) of a block, and the launch settings."""

    rows: int
    columns: int
    warps: int
    stages: int


def padded(tensor: Operand) -> int:
    """Return the padded width of a block of rows: `tl.dot` needs a power of two of at least 16."""
    width = tensor.shape[3]
    assert isinstance(width, int), "the width of a query is static"
    return max(power_of_2(width), 16)


@dataclass
class Writer:
    """Collects the lines of one kernel.  `numbers` maps symbols in sizes to kernel arguments."""

    attention: Attention
    tile: Tile
    visits: tuple[Visit, ...]
    lines: list[Line] = field(default_factory=list)
    numbers: dict[sympy.Expr, str] = field(default_factory=dict)
    indent: int = 1
    asserts: bool = False

    # ---- lines -------------------------------------------------------------------------------

    def line(self, *texts: str) -> None:
        for text in texts:
            self.lines.append(Line("    " * self.indent + text, self.attention.origins))

    @contextmanager
    def loop(self, heading: str) -> Iterator[None]:
        self.line(heading)
        self.indent += 1
        yield
        self.indent -= 1

    def kernel(
        self, name: str, device: str, along: str, tensors: Sequence[tuple[str, Operand]],
        made: Sequence[tuple[str, Operand]],
    ) -> Kernel:  # fmt: skip
        """Return the lines as a kernel, with one program per block of rows or columns of a head.

        The arguments are `tensors`, the lists of blocks, the tensors that user functions read, and
        the results.
        """
        lists = [item for visit in self.visits for item in visit.listed.items()]
        given = [(f"in{n}", tensor) for n, tensor in enumerate(self.attention.given)]
        read = [Parameter(n, "in", n, t.dtype) for n, t in (*tensors, *lists, *given)]
        written = [Parameter(n, "out", n, t.dtype) for n, t in made]
        numbers = [Parameter(n, "symbol", symbol=part) for part, n in self.numbers.items()]
        parameters = (*read, *written, *numbers)
        heading = ["@triton.jit", *signature(name, [p.name for p in parameters])]
        code = Code.of([*(Line(text, statement=False) for text in heading), *self.lines])
        heads = mul_sizes(self.attention.query.shape[0], self.attention.heads(along))
        launch: dict[str, Any] = {
            "constants": {}, "num_warps": self.tile.warps, "num_stages": self.tile.stages,
            "parts": ((self.attention.length(along), self.block(along)),), "times": heads,
        }  # fmt: skip
        launch |= {"asserts": True} if self.asserts else {}
        first = self.visits[0].inner
        buffers = first.schedule.program.buffers
        return Kernel(name, "triton", device, code, parameters, first.group, buffers, launch)

    # ---- sizes -------------------------------------------------------------------------------

    def size(self, size: Size) -> str:
        """Return the text of a size, as an operand."""
        parts = () if isinstance(size, int) else size_arguments(size)
        for part in parts:
            self.numbers.setdefault(part, f"ks{len(self.numbers)}")
        text = Expressions(TRITON_OPS, self.numbers, _no_load, _no_name)
        return text.size(size).inside()

    def quotient(self, size: Size, step: int) -> str:
        """Return the text of the number of blocks of length `step`; the last one can be partial."""
        if isinstance(size, int):
            return str(-(-size // step))
        return f"(({self.size(size)} + {step - 1}) // {step})"

    def block(self, along: str) -> int:
        return self.tile.rows if along == "rows" else self.tile.columns

    def parts(self, along: str) -> str:
        """Return how many of the kernel's blocks are in one listed block."""
        listed = self.attention.listed(along)
        length = self.attention.length(along)
        whole = listed if listed < WHOLE_LENGTH else length
        return self.quotient(min(whole, length) if isinstance(length, int) else whole,
                             self.block(along))  # fmt: skip

    def open(self, along: str, visited: bool = False) -> bool:
        """Can a block reach beyond the end?"""
        length, listed = self.attention.length(along), self.attention.listed(along)
        if not isinstance(length, int):
            return True
        beyond = not self.attention.exact or (listed < length and length % listed)
        return bool(length % self.block(along) or (visited and beyond))

    def inside(self, at: str, along: str) -> str:
        return f"({at} < {self.size(self.attention.length(along))})"

    # ---- blocks in memory --------------------------------------------------------------------

    def place(self, pointer: str, tensor: Operand, *at: str, blocks: int = 0) -> str:
        """Return the address of elements, given their positions in all dimensions.

        In the last `blocks` dimensions, a position is a block.
        """
        numbers = len(at) - blocks
        steps = enumerate(zip(at, tensor.shape, tensor.stride, strict=True))
        texts = (self.times(position, stride) for n, (position, size, stride) in steps
                 if n >= numbers or not is_int(size, 1))  # fmt: skip
        return " + ".join([pointer, *texts])

    def times(self, text: str, factor: Size | str) -> str:
        number = factor if isinstance(factor, str) else self.size(factor)
        if number == "1":
            return text
        return f"{number} * ({text})" if " " in text else f"{number} * {text}"

    def matrix(
        self, pointer: str, tensor: Operand, head: str, along: str, *, visited: bool = False,
        transposed: bool = False,
    ) -> tuple[str, str]:  # fmt: skip
        """Return the address of a block of rows of a tensor [B, H, length, width], and its mask."""
        down, across = ("[None, :]", "[:, None]") if transposed else ("[:, None]", "[None, :]")
        width = "d" if tensor.shape[3] == self.attention.query.shape[3] else "e"
        place = self.place(pointer, tensor, "b", head, along + down, width + across, blocks=2)
        masks = [self.inside(along + down, along)] if self.open(along, visited) else []
        if padded(tensor) != tensor.shape[3]:
            masks.append(f"({width}{across} < {tensor.shape[3]})")
        return place, " & ".join(masks)

    def load(self, name: str, *what: Any, **how: Any) -> None:
        place, mask = self.matrix(*what, **how)
        self.line(f"{name} = tl.load({place}{f', mask={mask}, other=0.0' if mask else ''})")

    def store(self, value: str, *what: Any) -> None:
        place, mask = self.matrix(*what)
        self.line(f"tl.store({place}, {value}{f', mask={mask}' if mask else ''})")

    def load_vector(self, pointer: str, tensor: Operand, visited: bool = False) -> str:
        """Return the text that loads one number for each row of the queries."""
        return f"tl.load({self._vector(pointer, tensor, visited)})"

    def store_vector(self, pointer: str, tensor: Operand, value: str) -> None:
        place, *mask = self._vector(pointer, tensor).split(", ")
        self.line(f"tl.store({', '.join([place, value, *mask])})")

    def _vector(self, pointer: str, tensor: Operand, visited: bool = False) -> str:
        place = self.place(pointer, tensor, "b", "h", "i", blocks=1)
        return f"{place}, {self.inside('i', 'rows')}" if self.open("rows", visited) else place

    # ---- what is done in a block -------------------------------------------------------------

    def points(self, along: str, head: str = "h") -> None:
        """Print the position of this program: batch, head and block."""
        blocks = self.quotient(self.attention.length(along), self.block(along))
        heads, step = self.attention.heads(along), self.block(along)
        self.line(
            "program = tl.program_id(0)",
            f"part = program % {blocks}",
            f"{head} = (program // {blocks} % {heads}).to(tl.int64)",
            f"b = (program // {blocks} // {heads}).to(tl.int64)",
            f"{along} = part * {step} + tl.arange(0, {step})",
            f"d = tl.arange(0, {padded(self.attention.query)})",
            f"e = tl.arange(0, {padded(self.attention.value)})",
        )

    @contextmanager
    def visiting(self, visit: Visit, along: str) -> Iterator[None]:
        """Print a loop over the listed keys or queries of the program's block, or over all."""
        if not visit.lists:
            size = self.block(along)
            blocks = self.quotient(self.attention.length(along), size)
            with self.loop(f"for step in range(0, {blocks}):"):
                self.line(f"{along} = step * {size} + tl.arange(0, {size})")
                yield
            return
        own = "columns" if along == "rows" else "rows"
        listed, parts = self.attention.listed(along), self.parts(along)
        row = f"part * {self.block(own)} // {self.attention.listed(own)}"
        (counts, how_many), (indices, which) = visit.listed.items()
        counts = self.place(counts, how_many, "b", "h", row)
        step = "step" if parts == "1" else f"step // {parts}"
        indices = self.place(indices, which, "b", "h", row, step)
        self.line(f"count = tl.minimum(tl.load({counts}), {self.size(which.shape[3])})")
        last = self.quotient(self.attention.length(along), listed)
        last = f"{last} - 1" if self.attention.exact else last
        with self.loop(f"for step in range(0, {self.times('count', parts)}):"):
            self.line(f"block = tl.maximum(tl.minimum(tl.load({indices}), {last}), 0)")
            start = self.times("block", listed)
            if parts != "1":
                start = f"{start} + step % {parts} * {self.block(along)}"
            self.line(f"{along} = {start} + tl.arange(0, {self.block(along)})")
            yield

    def inner(self, visit: Visit, visited: str) -> None:
        """Print the user functions, applied to the current blocks."""
        inner, inside = visit.inner, {}
        for letter, at, along in (("x", "i", "rows"), ("r", "j", "columns")):
            if self.open(along, along == visited):
                inside[letter] = Value(self.inside(at, along), frozenset(letter))
        program = inner.schedule.program
        names = [name for name in program.inputs if isinstance(name, str)]
        dims = {"logs": ROW, "inner": ROW}
        blocks = {name: Value(block, dims.get(block, ROW | COLUMN))
                  for name, block in zip(names, inner.blocks, strict=False)}  # fmt: skip
        pointers = {name: f"in{n}" for n, name in enumerate(names[len(blocks) :])}
        views = views_in(program.outputs)
        results = {v.buffer: name for v, name in zip(views, inner.made, strict=True)}
        lengths = {"x": self.tile.rows, "r": self.tile.columns}
        if visited == "rows":
            lengths = dict(reversed(lengths.items()))
        tree = tree_of(inner.group, program.buffers)
        for parameter in kernel_parameters(tree, program.buffers):
            if parameter.symbol is not None:
                self.size(parameter.symbol)
        places = (Value("b"), Value("h"), Value("i", ROW), Value("j", COLUMN))
        given = Surroundings(places, blocks, pointers, results, self.numbers, lengths, inside)
        printer = Within(inner.group, tree, given)
        printed = printer.printed(self.indent)
        self.asserts |= printer.asserts
        self.lines += [replace(line, origins=self.attention.origins) for line in printed]

    def dot(self, a: str, b: str, onto: str = "") -> str:
        exact = ', input_precision="ieee"' if self.attention.query.dtype.itemsize == 4 else ""
        return f"tl.dot({a}, {b}{f', {onto}' if onto else ''}{exact})"

    def rounded(self, name: str) -> str:
        return f"{name}.to(tl.{TRITON_TYPES[self.attention.query.dtype]})"

    @property
    def shared(self) -> str:
        """The key head that belongs to a query head."""
        by = self.attention.shared_by
        return "h" if by == 1 else f"h // {by}"


def _no_load(load: Any) -> Value:
    raise AssertionError(f"a size contains no loads: {load}")


def _no_name(value: Value, letter: str) -> Value:
    raise AssertionError(f"a size contains no divisions: {value}")
