"""Prints a matrix product and its pointwise epilogue as one Triton kernel.

    x, y = lab.near(tl.program_id(0), 64, 12, 8)                  the block of the result
    row = (x * XBLOCK + tl.arange(0, XBLOCK))[:, None]
    column = (y * YBLOCK + tl.arange(0, YBLOCK))[None, :]
    acc0 = tl.full([XBLOCK, YBLOCK], 0.0, tl.float32)
    for start in range(0, 768, RBLOCK):
        term = start + tl.arange(0, RBLOCK)
        left = tl.load(in0 + (768 * row + term[None, :]))
        right = tl.load(in1 + (768 * column + term[:, None]))
        acc0 = tl.dot(left, right, acc0)                          tensor cores
    t0 = tl.load(in2 + column)                                    the epilogue
    tl.store(out0 + (3072 * row + column), (acc0 + t0.to(tl.float32)).to(tl.float16))

Inductor: `kernel/mm.py` and `select_algorithm.py`, templates with holes for the epilogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line, Parameter
from inductor_lab.compiler.codegen.parameters import kernel_parameters
from inductor_lab.compiler.codegen.tree.build import build_tree
from inductor_lab.compiler.codegen.tree.loop_tree import Init, Loop, Tree
from inductor_lab.compiler.codegen.tree.visit import loads_in
from inductor_lab.compiler.codegen.triton.block_loops import outer_loops
from inductor_lab.compiler.codegen.triton.blocks import Blocks, index_type, power_of_2, reach
from inductor_lab.compiler.codegen.triton.expressions import Dims, Value
from inductor_lab.compiler.codegen.triton.shared_rows import shared_memory
from inductor_lab.compiler.codegen.triton.statements import Printer
from inductor_lab.compiler.ir.expr import Load
from inductor_lab.compiler.ir.index import Axis, Index, hint
from inductor_lab.compiler.ir.match_matmul import Product, product_of
from inductor_lab.compiler.ir.program import Buffer, Pointwise
from inductor_lab.compiler.ir.row_major import coordinates_at
from inductor_lab.compiler.schedule.schedule import Group

BAND = 8
"""The rows of blocks that are computed together.  Their operands stay in the caches."""

FILLS = 96
"""The number of programs that keeps most of a GPU busy."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The rows and columns of a program's block, the terms per iteration, and launch settings."""

    rows: int
    columns: int
    terms: int
    warps: int
    stages: int

    @property
    def nbytes(self) -> int:
        """The bytes of the blocks of both matrices that are loaded ahead."""
        return 2 * self.stages * self.terms * (self.rows + self.columns)

    @property
    def constants(self) -> dict[str, int]:
        return {"XBLOCK": self.rows, "YBLOCK": self.columns, "RBLOCK": self.terms}


TILES = (
    Tile(128, 256, 64, 8, 3), Tile(128, 128, 64, 4, 3), Tile(128, 128, 64, 8, 4),
    Tile(256, 128, 64, 8, 3), Tile(64, 256, 64, 4, 3), Tile(64, 128, 64, 4, 4),
    Tile(64, 64, 64, 4, 4), Tile(32, 64, 128, 4, 4), Tile(16, 64, 128, 4, 5),
    Tile(16, 32, 256, 2, 4), Tile(16, 16, 16, 1, 2),
)  # fmt: skip
"""Tiles that were the fastest, or nearly so, for some shape on an H200.  The first tile that fits
and fills the GPU is used.  `mode="max-autotune"` measures all tiles that fit."""


def product_in(group: Group) -> Product | None:
    """Return the product of a group that has one product and nothing but its epilogue, or None."""
    products = [product_of(nest) for nest in group.nests]
    others = [n for n, p in zip(group.nests, products, strict=True) if p is None]
    plain = all(isinstance(n, Pointwise) and len(n.axes) == len(group.axes) for n in others)
    found = [p for p in products if p is not None]
    return found[0] if len(found) == 1 and plain and group.in_parts is None else None


def tiles_of(product: Product, device: str) -> list[Tile]:
    """Return the tiles that fit on a device, the predicted best one first."""
    batch, rows, columns = map(_count, (product.batch, product.rows, product.columns))
    longest = [power_of_2(n) for n in (rows, columns, _count((product.terms,)))]
    room = shared_memory(device)
    fits = [t for t in TILES if t.rows <= longest[0] and t.columns <= longest[1]
            and t.terms <= longest[2] and t.nbytes <= room]  # fmt: skip
    programs = {t: batch * -(-rows // t.rows) * -(-columns // t.columns) for t in fits}
    fills = [t for t in fits if programs[t] >= FILLS]
    first = fills[0] if fills else max(fits, key=lambda t: programs[t] * t.terms)
    return [first, *(t for t in fits if t != first)]


def product_kernel(
    product: Product, group: Group, buffers: Mapping[str, Buffer], name: str, device: str,
    ops: Mapping[str, str], tile: Tile | None = None,
) -> Kernel:  # fmt: skip
    """Print the kernel of a group with a product."""
    tile = tile or tiles_of(product, device)[0]
    tree = build_tree(group, buffers)
    parameters = kernel_parameters(tree, buffers)
    printer = _Printer(name, parameters, tree, buffers, ops, tile)
    code = printer.code()
    launch: dict[str, Any] = {
        "constants": tile.constants, "num_warps": tile.warps, "num_stages": tile.stages,
        "parts": ((printer.counts[0], tile.rows),), "times": printer.times,
    }  # fmt: skip
    launch |= {"asserts": True} if printer.asserts else {}
    return Kernel(name, "triton", device, code, parameters, group, buffers, launch)


class _Printer(Printer):
    """Prints the loop over terms as a `tl.dot` loop, and other statements as usual."""

    def __init__(
        self, name: str, parameters: tuple[Parameter, ...], tree: Tree,
        buffers: Mapping[str, Buffer], ops: Mapping[str, str], tile: Tile,
    ) -> None:  # fmt: skip
        outer, body = outer_loops(tree)
        blocks = Blocks(outer, body, tile.rows, {}, tile.warps)
        super().__init__(
            name, parameters, blocks, ops, index_type(reach(parameters, buffers, blocks))
        )
        self.tile = tile
        (loop,) = (stmt for stmt in body if isinstance(stmt, Loop))
        first, second = loads_in((loop,))
        self.product = Product.of(first, second, loop.axis, outer)
        self.counts = tuple(map(_count, (self.product.rows, self.product.columns)))
        self.times = _count(self.product.batch) * -(-self.counts[1] // tile.columns)
        terms = _count((loop.axis,))
        lengths = zip("xyr", (*self.counts, terms), tile.constants.values(), strict=True)
        self.open = frozenset(letter for letter, count, block in lengths if count % block)
        """The dimensions in which a block can reach beyond the end."""

    def code(self) -> Code:
        names = [p.name for p in self.parameters]
        heading = self.heading(self.name, names, self.tile.constants)
        return Code.of([*heading, *self.body()])

    def body(self) -> tuple[Line, ...]:
        self._positions_of_block()
        self._statements(self.blocks.body)
        return tuple(self.lines)

    def _positions_of_block(self) -> None:
        """Print the batch index, the rows and the columns of the block."""
        down, across = -(-self.counts[0] // self.tile.rows), -(-self.counts[1] // self.tile.columns)
        program = "tl.program_id(0)"
        if self.product.batch:
            self._frame(f"batch = {self._wide(f'{program} // {down * across}')}")
            program = f"{program} % {down * across}"
            self._along("batch", self.product.batch, frozenset())
        self._frame(f"x, y = lab.near({program}, {down}, {across}, {BAND})")
        for name, letter, view, axes in (
            ("row", "x", "[:, None]", self.product.rows),
            ("column", "y", "[None, :]", self.product.columns),
        ):
            block = f"{letter.upper()}BLOCK"
            place = self._wide(f"{letter} * {block} + tl.arange(0, {block})")
            self._frame(f"{name} = ({place}){view}" if " " in place else f"{name} = {place}{view}")
            self._along(name, axes, frozenset(letter))
            if letter in self.open:
                self._frame(f"{letter}mask = {name} < {_count(axes)}")

    def _along(self, name: str, axes: tuple[Axis, ...], dims: Dims) -> None:
        """Define axes as parts of one flattened position."""
        self.text.positions[name] = Value(name, dims)
        self.text.axes.update(coordinates_at(Index.of(Axis(name, _count(axes))), axes))

    def _wide(self, place: str) -> str:
        return place if self.index_type == "int32" else f"({place}).to({self._index_dtype()})"

    def _loop(self, loop: Loop) -> None:
        """Print the product.  After the loop, its sums are a block."""
        (init,) = (stmt for stmt in self.blocks.body if isinstance(stmt, Init))
        self.origins = init.origins
        self._line(f"{init.name} = tl.full([XBLOCK, YBLOCK], 0.0, tl.float32)")
        end = _count((loop.axis,))
        self._frame(f"for start in range(0, {end}, RBLOCK):")
        with self._inside():
            self._frame(f"term = {self._wide('start + tl.arange(0, RBLOCK)')}")
            if "r" in self.open:
                self._frame(f"rmask = term < {end}")
            for name, load, view in zip(
                ("left", "right"), self.product.operands, ("[None, :]", "[:, None]"), strict=True
            ):
                self._operand(name, load, view)
            self.origins = init.origins
            self._line(f"{init.name} = tl.dot(left, right, {init.name})")
        self.text.temps[init.name] = Value(init.name, frozenset("xy"))

    def _operand(self, name: str, load: Load, view: str) -> None:
        """Load a block of a matrix, with zeros beyond its end."""
        self.text.positions[self.product.terms.name] = Value(f"term{view}", frozenset("r"))
        place = self.text.index(load.index[0])
        masks = [f"rmask{view}" if m.text == "rmask" else m.text for m in self._mask(place.dims)]
        self.origins = load.origins
        given = f", {' & '.join(masks)}, 0.0" if masks else ""
        self._line(f"{name} = tl.load({self.buffer[load.buffer]} + {place.inside()}{given})")

    def _mask(self, dims: Dims) -> list[Value]:
        own = [Value(f"{d}mask", frozenset(d)) for d in "xyr" if d in dims and d in self.open]
        return [*own, *self.guards]

    def _shape(self, dims: Dims) -> str:
        return f"[{'XBLOCK' if 'x' in dims else 1}, {'YBLOCK' if 'y' in dims else 1}]"


def _count(axes: tuple[Axis, ...]) -> int:
    return prod(hint(axis.size) for axis in axes)
