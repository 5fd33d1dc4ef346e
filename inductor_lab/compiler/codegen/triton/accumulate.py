"""Prints reductions, scans and binary searches as lines of Triton.

    acc0 = lab.row_sum(t0)                                  a row that fits in one block
    acc0, acc1 = lab.row_sums(t0, t1)                       two sums of a row
    acc0_block = acc0_block + t0                            a longer row, reduced after the loop
    acc0 = lab.row_sum(lab.of_all_parts(acc0_part, ...))    a row that several programs share
    acc0, acc0_before = lab.scan_sum(t0, acc0_before)       a scan of one block or several
    acc0 = tl.where(acc0_open & ~t0, j0 + 1, acc0)          a binary search
"""

from __future__ import annotations

from inductor_lab.compiler.codegen.tree.loop_tree import Accumulate, Init, Loop, Stmt
from inductor_lab.compiler.codegen.tree.visit import read_by
from inductor_lab.compiler.codegen.triton.blocks import Cover, Row, power_of_2
from inductor_lab.compiler.codegen.triton.expressions import Dims, Value
from inductor_lab.compiler.codegen.triton.kernel_lines import Lines
from inductor_lab.compiler.codegen.triton.triton_ops import (
    COMBINE,
    FINISH,
    SCANNED,
    TRITON_TYPES,
    literal,
    template,
)
from inductor_lab.compiler.ir.index import Index, is_int
from inductor_lab.compiler.ir.ops import POSITIONS, neutral


class Accumulations(Lines):
    """Prints `Init` and `Accumulate`."""

    def _start(self, name: str, row: Row) -> None:
        init = self.inits[name]
        self.origins = init.origins
        self.blocks_kept[name] = row
        shape = f"[XBLOCK, {row.block_name}]"
        start = literal(neutral(init.kind, init.dtype), init.dtype)
        dtype = TRITON_TYPES[init.dtype]
        self._line(f"{name}_block = tl.full({shape}, {start}, tl.{dtype})")
        if init.kind in ("argmax", "argmin"):
            # if no element is better than the neutral value, all are equal to it: return the first
            self._line(f"{name}_at = tl.full({shape}, 0, {self._index_dtype()})")

    def _accumulate(self, stmt: Accumulate) -> None:
        if stmt.kind == "bisect":
            self._halve(stmt)
            return
        row = self.row
        assert row is not None, "an accumulator is updated outside a loop"
        init = self.inits[stmt.name]
        value = self.text.value(stmt.value, typed=False)
        if self.scanning:
            self._scan(stmt, value, row)
        elif stmt.position is not None:
            self._accumulate_position(stmt, value, row)
        elif stmt.name in self.blocks_kept:
            name = f"{stmt.name}_block"
            combined = template(COMBINE, stmt.kind, init.dtype).format(name, value.inside())
            if row.masked:
                combined = f"tl.where({row.prefix}mask, {combined}, {name})"
            self._line(f"{name} = {combined}")
        else:
            self._finish(stmt.name, self._neutralized(init, value, row))

    def _accumulate_position(self, stmt: Accumulate, value: Value, row: Row) -> None:
        """Accumulate argmax or argmin, as pairs of a value and its position."""
        assert stmt.position is not None
        init = self.inits[stmt.name]
        block = self._neutralized(init, value, row)
        at = self._positions(stmt.position, row, self._index_dtype())
        name = stmt.name
        if name in self.blocks_kept:
            better = "next_max" if stmt.kind == "argmax" else "next_min"
            pair = f"{name}_block, {name}_at"
            self._line(f"{pair} = lab.{better}({pair}, {block}, {at})")
        else:
            self._finish(name, block, at)

    def _positions(self, position: Index, row: Row, dtype: str = "tl.int64") -> str:
        """Return a full block of positions.  32-bit positions need half as many registers."""
        place = self.text.index(position).text
        return f"tl.broadcast_to(tl.cast({place}, {dtype}), [XBLOCK, {row.block_name}])"

    def _start_scan(self, name: str) -> None:
        """Print the carry into the first block: the neutral value, and its position if needed."""
        init = self.inits[name]
        self.origins = init.origins
        start = literal(neutral(init.kind, init.dtype), init.dtype)
        whole = f"tl.full([XBLOCK, 1], {start}, tl.{TRITON_TYPES[init.dtype]})"
        if init.kind in POSITIONS:
            self._line(f"{name}_best = {whole}")
            whole = "tl.full([XBLOCK, 1], 0, tl.int64)"
        self._line(f"{name}_before = {whole}")

    def _scan(self, stmt: Accumulate, value: Value, row: Row) -> None:
        """Print the values of a scan in this block, and the carry for the next block."""
        name = stmt.name
        operands, kept = [self._neutralized(self.inits[name], value, row)], [f"{name}_before"]
        if stmt.position is not None:
            self._line(f"{name}_block = {operands[0]}")
            self._line(f"{name}_at = {self._positions(stmt.position, row)}")
            operands, kept = [f"{name}_block", f"{name}_at"], [f"{name}_best", *kept]
        call = template(SCANNED, stmt.kind, stmt.value.dtype).format(*operands, *kept)
        self._line(f"{', '.join([name, *kept])} = {call}")
        self.text.temps[name] = Value(name, frozenset(["x", row.prefix]))

    def _neutralized(self, init: Init, value: Value, row: Row) -> str:
        """Return a full block of values, with the neutral value beyond the end of the row."""
        text, block = value.text, f"[XBLOCK, {row.block_name}]"
        # the `tl.where` of the mask broadcasts the value, but not the position of a pair
        enough = row.masked and init.kind not in POSITIONS
        if value.number:
            text = f"tl.full({block}, {text}, tl.{TRITON_TYPES[init.dtype]})"
        elif value.dims != {"x", row.prefix} and not (enough and row.prefix in value.dims):
            text = f"tl.broadcast_to({text}, {block})"
        if row.masked:
            start = literal(neutral(init.kind, init.dtype), init.dtype)
            text = f"tl.where({row.prefix}mask, {text}, {start})"
        return text

    def _finish(self, name: str, block: str, at: str = "") -> None:
        """Reduce a block to one value for each row."""
        init = self.inits[name]
        at = at or f"{name}_at"
        text = template(FINISH, init.kind, init.dtype).format(block, at)
        self.origins = init.origins
        if self.row is not None and self.row.cover is Cover.SHARED:
            text = template(FINISH, init.kind, init.dtype).format(self._combine_parts(name, text))
        result = self._bind(name, Value(text, frozenset("x")))
        self.text.temps[name] = result

    def _combine_parts(self, name: str, text: str) -> str:
        """Return a block with the result of each part of a shared row."""
        own = self._bind(f"{name}_part", Value(text, frozenset("x")))
        place, parts = self._exchange(name)
        return f"lab.of_all_parts({own.text}, {place}, rpart, {parts})"

    def _exchange(self, name: str) -> tuple[str, str]:
        """Return where the parts of a shared row are published, and how they are read."""
        row, init = self.blocks.shared, self.inits[name]
        assert row is not None, "no row is shared"
        first = row.parts * list(self.inits).index(name)
        place = f"exchange + {first}" if first else "exchange"
        if not is_int(self.blocks.xnumel, 1):
            place += f" + {self.blocks.words} * xindex"
        lanes, start = power_of_2(row.parts), literal(neutral(init.kind, init.dtype), init.dtype)
        return place, f"{row.parts}, {lanes}, {start}"

    # ---- two sums of one row -----------------------------------------------------------------

    def _are_pair(self, one: Stmt, other: Stmt) -> bool:
        """Are these two sums of the same row, which can be reduced together?"""
        if not isinstance(one, Accumulate) or not isinstance(other, Accumulate):
            return False
        inits = self.inits[one.name], self.inits[other.name]
        row, kept = self.row, self.blocks_kept
        sums = all(init.kind == "sum" for init in inits) and inits[0].dtype == inits[1].dtype
        now = not self.scanning and one.name not in kept and other.name not in kept
        return sums and now and row is not None and one.name not in read_by((other,))

    def _accumulate_pair(self, one: Accumulate, other: Accumulate) -> None:
        row, names = self.row, (one.name, other.name)
        assert row is not None, "an accumulator is updated outside a loop"
        values = [self.text.value(stmt.value, typed=False) for stmt in (one, other)]
        if any(value.number or value.dims != {"x", row.prefix} for value in values):
            for stmt in (one, other):
                self._accumulate(stmt)
            return
        blocks = [self._neutralized(self.inits[name], value, row)
                  for name, value in zip(names, values, strict=True)]  # fmt: skip
        self.origins = one.origins | other.origins
        shared = row.cover is Cover.SHARED
        found = [f"{name}_part" for name in names] if shared else list(names)
        self._line(f"{', '.join(found)} = lab.row_sums({', '.join(blocks)})")
        if shared:
            places = [self._exchange(name) for name in names]
            for part, (place, _) in zip(found, places, strict=True):
                self._line(f"lab.publish_part({part}, {place}, rpart)")
            for name, (place, read) in zip(names, places, strict=True):
                parts = f"lab.published_parts({place}, {read})"
                self._line(f"{name} = {FINISH['sum'].format(parts)}")
        for name in names:
            self.text.temps[name] = Value(name, frozenset("x"))

    # ---- searches ----------------------------------------------------------------------------

    def _bisect(self, loop: Loop) -> None:
        """Print a binary search for each point.  The interval is `name` .. `name_end`."""
        (found,) = [s for s in loop.body if isinstance(s, Accumulate)]
        name, at, dims = found.name, loop.axis.name, self._point_dims()
        self.origins = found.origins
        shape, size = self._shape(dims), self.text.size(loop.axis.size).text
        self._line(f"{name} = tl.full({shape}, 0, tl.int64)")
        self._line(f"{name}_end = tl.full({shape}, {size}, tl.int64)")
        self._frame(f"{name}_left = {size}")
        self._frame(f"while {name}_left > 0:")
        with self._inside():
            self._frame(f"{name}_left = {name}_left // 2")
            self._line(f"{at} = {name} + ({name}_end - {name}) // 2")
            self._line(f"{name}_open = {name} < {name}_end")
            self.text.positions[at] = Value(at, dims)
            self.text.axes.pop(loop.axis, None)
            self.guards.append(Value(f"{name}_open", dims))
            self._statements(loop.body)
            self.guards.pop()
        self.text.temps[name] = Value(name, dims)

    def _point_dims(self) -> Dims:
        """Return the block dimensions along which points vary."""
        tiled = self.blocks.rows.values() if self.blocks.tiled is not None else ()
        return frozenset(["x", *(row.prefix for row in tiled)])

    def _halve(self, found: Accumulate) -> None:
        """Keep the half of the interval that contains the first position that matches."""
        name, holds = found.name, self._bind(f"{found.name}_holds", self.text.value(found.value))
        assert found.position is not None, "a binary search needs a position"
        at = self.text.index(found.position).text
        self._line(f"{name}_end = tl.where({name}_open & {holds.text}, {at}, {name}_end)")
        self._line(f"{name} = tl.where({name}_open & ~{holds.text}, {at} + 1, {name})")
