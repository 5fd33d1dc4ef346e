"""Loops whose vector lanes run along the innermost loop: pointwise kernels and rows.

    for (int64_t j0 = 0; j0 < 1024; j0++) {
        acc0 = acc0 + in0[1024 * i0 + j0];
    }

Each lane of a vector register sums its own elements (`#pragma omp simd reduction(+ : acc0)`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeGuard

import torch

from inductor_lab.codegen.cpp_blocks import Blocks
from inductor_lab.codegen.cpp_halves import in_floats, widened_loads
from inductor_lab.codegen.cpp_ops import CTYPES
from inductor_lab.codegen.cpp_statements import Accumulator
from inductor_lab.codegen.cpp_text import Writer
from inductor_lab.codegen.cpu_plan import (
    BLOCK,
    CHUNKS,
    LINE,
    TILE,
    CpuPlan,
    Simd,
    innermost_loops,
    point_loops,
    tiled_axes,
)
from inductor_lab.codegen.next_row import AHEAD, first_read, next_row
from inductor_lab.codegen.row_cache import Row
from inductor_lab.codegen.tidy import walk
from inductor_lab.codegen.tree import Accumulate, Let, Loop, LoopKind, Stmt, Store
from inductor_lab.ir.expr import Expr, Load, Origins, Temp
from inductor_lab.ir.index import Axis, Index, hint, is_int

CLAUSES = {"sum": "+", "prod": "*", "any": "|", "all": "&", "max": "max", "min": "min"}
"""The OpenMP name of a reduction."""


WIDE = 64
"""Lanes of a loop that only sums: the machine adds faster than one register can take part in it."""
SHORTEST_WIDE = 1024
"""Turns of a loop from which on this shows."""
SMALLEST_TURNED = 1 << 16
"""Elements of a transposed matrix that do not stay in the first cache anyway."""
CHEAP = 4
"""Operations in a loop, beyond which its arithmetic takes longer than the additions wait."""


class Rows(Blocks):
    """Prints a tree with point loops outside and SIMD inside."""

    level = 0
    nesting = 0
    """Loops of a reduction around the one being printed."""
    running: frozenset[str] = frozenset()
    """Float max and min that run as a plain comparison beside a flag for NaN, in this very loop."""

    def __init__(
        self,
        tree: tuple[Stmt, ...],
        writer: Writer,
        plan: CpuPlan,
        rows: tuple[Row, ...] = (),
    ) -> None:
        super().__init__(tree, writer, plan)
        self.rows = rows
        self.tiles = 0
        self.tiled: tuple[Axis, ...] = ()
        """The loops that are cut in tiles, from the outer one on, while that is printed."""
        writer.buffers.update((row.name, row.name) for row in rows)

    def point_loop(self, loop: Loop) -> None:
        outside = self.tiled
        self.tiled = outside or self.tiles_of(loop)
        threads = self.plan.threads if self.level == 0 else 0
        words = ["parallel for"] if threads else []
        innermost = loop.kind is LoopKind.VECTOR
        blocks = innermost and not self.tiled and self.in_need_of_blocks(loop)
        words += ["simd"] if innermost and not self.tiled and not blocks else []
        if words:
            collapse = f" collapse({threads})" if threads > 1 else ""
            clauses = self.clauses(loop.body)
            if threads and self.plan.in_team:
                # the threads are there; a status is each thread's own, but not each lane's
                words = ["for"] + (words[1:] if not clauses else [])
                collapse, clauses = collapse + " nowait", ""
            elif threads:
                collapse += self.condition()
            self.pragma(" ".join(words) + collapse + clauses)
        self.level += 1
        name, size = loop.axis.name, self.writer.size(loop.axis.size)
        if loop.axis in self.tiled:
            width = TILE[self.tiled.index(loop.axis)]
            with self.loop(f"{name}_tile", "0", size, str(width)):
                self.in_tile(loop) if innermost else self.body(loop.body)
        elif blocks:
            self.in_blocks(loop)
        else:
            with self.loop(name, "0", size):
                inside = [s for s in loop.body if isinstance(s, Loop)]
                if not innermost and all(s.kind is not LoopKind.PARALLEL for s in inside):
                    self.declare_rows()
                self.body(loop.body)
        self.level -= 1
        self.tiled = outside

    def tiles_of(self, loop: Loop) -> tuple[Axis, ...]:
        """This loop and the innermost one, if they are to be cut in tiles.

        A loop may come in pieces, and each has tiles of its own.
        """
        tiled = tiled_axes(point_loops((loop,))) if self.plan.simd is Simd.POINTS else ()
        return tiled if loop.axis in tiled[:1] else ()

    def whole(self) -> None:
        if not point_loops(self.tree):
            self.declare_rows()
        super().whole()

    def declare_rows(self) -> None:
        for row in self.rows:
            self.line(f"{CTYPES[row.dtype]} {row.name}[{row.length}];")

    def in_tile(self, loop: Loop) -> None:
        """The two loops inside a tile; the innermost one is SIMD."""
        outer, inner = self.tiled
        for axis, width in zip(self.tiled, TILE, strict=True):
            name, size = axis.name, self.writer.size(axis.size)
            stop = f"{name}_tile + {width}"
            self.line(f"const int64_t {name}_end = {stop} < {size} ? {stop} : {size};")
        if hint(outer.size, 1024) * hint(inner.size, 1024) >= SMALLEST_TURNED:
            loop = replace(loop, body=self.turned(loop.body))
        with self.loop(outer.name, f"{outer.name}_tile", f"{outer.name}_end"):
            first, end = f"{inner.name}_tile", f"{inner.name}_end"
            self.stretch(loop, first, end, TILE[1])

    def turned(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The body with its transposed loads from local arrays, which are filled before it.

        That reads whole cache lines, in the direction in which memory goes on.
        """
        outer, inner = self.tiled
        width = TILE[1] + LINE  # rows start in different sets of the cache
        row, column = (f"{axis.name} - {axis.name}_tile" for axis in (outer, inner))
        tile = {axis: f"{axis.name}_tile" for axis in self.tiled}
        lengths = ", ".join(f"{axis.name}_end - {tile[axis]}" for axis in (inner, outer))
        new: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Let) and is_transposed(stmt.value, outer, inner):
                name, dtype = f"tile{self.tiles}", stmt.value.dtype
                self.tiles += 1
                stride = self.writer.size(stmt.value.index[0].coefficient(inner))
                start = self.block_start(stmt.value, tile)
                self.line(f"{CTYPES[dtype]} {name}[{width * TILE[0]}];", stmt.origins)
                call = f"lab_turn({name}, {width}, {start}, {stride}, {lengths});"
                self.line(call, stmt.origins, statement=True)
                self.writer.places[name] = f"{name}[{width} * ({row}) + {column}]"
                stmt = replace(stmt, value=Temp(name, dtype))
            new.append(stmt)
        return tuple(new)

    def inner_loop(self, loop: Loop) -> None:
        size = self.writer.size(loop.axis.size)
        threads = self.plan.inner_threads and not self.inside_threads
        if loop.kind is LoopKind.BISECT:
            self.bisect(loop)
            return
        if loop.kind is LoopKind.SCAN:
            self.scan(loop, size, threads)
            return
        if loop.kind is LoopKind.REDUCE:
            if threads:
                self.chunks(loop, size)
            else:
                self.reduce(loop, "0", size)
            return
        innermost = next(innermost_loops((loop,))) is loop and loop.kind is not LoopKind.ORDERED
        blocks = innermost and self.in_need_of_blocks(loop)
        words = ["parallel for"] if threads else []
        words += ["simd"] if innermost and not blocks else []
        if words:
            condition = self.condition() if threads else ""
            self.pragma(" ".join(words) + condition + self.clauses(loop.body))
        if blocks:
            self.in_blocks(loop)
            return
        with self.threaded(), self.loop(loop.axis.name, "0", size):
            self.body(loop.body)

    def scan(self, loop: Loop, size: str, threads: bool) -> None:
        raise NotImplementedError

    # ---- reductions --------------------------------------------------------------------------

    def fed_by(self, loop: Loop) -> list[Accumulator]:
        names = {s.name: None for s in walk(loop.body) if isinstance(s, Accumulate)}
        return [self.accumulators[name] for name in names]

    def reduce(self, loop: Loop, begin: str, end: str) -> None:
        """The loop from `begin` to `end`; long float sums are sums of blocks."""
        if next(innermost_loops((loop,))) is not loop:
            self.nesting += 1
            with self.loop(loop.axis.name, begin, end):
                self.body(loop.body)
            self.nesting -= 1
            return
        sums = [acc for acc in self.fed_by(loop) if acc.sums_floats]
        size, axis = loop.axis.size, loop.axis.name
        block = BLOCK * max(1, self.wide_sums(loop) // LINE)
        one_block = isinstance(size, int) and size <= 2 * block
        if not sums or (one_block and not self.nesting):
            self.lanes(loop, begin, end)
        elif one_block:
            self.sum_block(sums, loop, begin, end)
        else:
            with self.loop(f"{axis}_block", begin, end, str(block)):
                stop = f"{axis}_block + {block}"
                self.line(f"const int64_t {axis}_end = {stop} < {end} ? {stop} : {end};")
                self.sum_block(sums, loop, f"{axis}_block", f"{axis}_end")

    def sum_block(self, sums: list[Accumulator], loop: Loop, begin: str, end: str) -> None:
        """One stretch of a sum in an accumulator of its own, which is then added to the whole."""
        outside = {acc.name: self.writer.temp(acc.name) for acc in sums}
        for acc in sums:
            self.writer.places[acc.name] = f"block_{acc.name}"
            self.line(f"{acc.ctype} block_{acc.name} = 0;", acc.origins)
        self.lanes(loop, begin, end)
        for acc in sums:
            whole = outside[acc.name]
            self.line(f"{whole} = {whole} + block_{acc.name};", acc.origins)
            self._restore(acc.name, whole)

    def lanes(self, loop: Loop, begin: str, end: str) -> None:
        """The innermost loop: each lane reduces its own elements, then the lanes are combined."""
        width = self.wide_sums(loop)
        if width:
            size, tail = loop.axis.size, f"{loop.axis.name}_tail"
            if isinstance(size, int) and (begin, end) == ("0", str(size)):
                tail = str(size // width * width)
            else:
                stop = f"{begin} + ({end} - {begin}) / {width} * {width}"
                self.line(f"const int64_t {tail} = {stop};")
            self.wide_lanes(loop, begin, tail, width)
            if tail == end:
                return
            begin = tail
        self.narrow_lanes(loop, begin, end)

    def wide_sums(self, loop: Loop) -> int:
        """How many lanes pay for an innermost loop; 0: as many as a register has."""
        size, stmts, fed = loop.axis.size, list(walk(loop.body)), self.fed_by(loop)
        plain = all(isinstance(stmt, Let | Accumulate) or is_plain_store(stmt) for stmt in stmts)
        sums = 1 <= len(fed) <= 2 and all(acc.sums_floats for acc in fed)
        if not plain or not sums or len(stmts) > len(fed) + CHEAP:
            return 0
        width = WIDE // len(fed)
        return width if not isinstance(size, int) or size >= SHORTEST_WIDE else 0

    def wide_lanes(self, loop: Loop, begin: str, end: str, width: int) -> None:
        """Sums in an array of `width` lanes: several registers, whose additions overlap."""
        axis, fed, widened = loop.axis.name, self.fed_by(loop), widened_loads(loop)
        outside = {acc.name: self.writer.temp(acc.name) for acc in fed}
        for acc in fed:
            self.line(f"{acc.ctype} lanes_{acc.name}[{width}] = {{}};", acc.origins)
            self.writer.places[acc.name] = f"lanes_{acc.name}[{axis} - {axis}_wide]"
        with self.loop(f"{axis}_wide", begin, end, str(width)):
            place = {loop.axis: f"{axis}_wide"}
            for load in [] if self.inside_threads else next_row(self.tree, loop):
                self.line(f"lab_fetch({self.block_start(load, place)}, {width});", load.origins)
            for load in first_read(self.tree, loop):
                start = f"{self.block_start(load, place)} + {AHEAD // load.dtype.itemsize}"
                self.line(f"lab_fetch({start}, {width});", load.origins)
            with self.as_floats(widened, loop.axis, f"{axis}_wide", str(width), width):
                self.pragma("simd" + self.clauses(loop.body))
                with self.loop(axis, f"{axis}_wide", f"{axis}_wide + {width}"):
                    self.body(in_floats(loop.body, widened, ()))
        for acc in fed:
            whole = outside[acc.name]
            self._restore(acc.name, whole)
            self.pragma(f"simd reduction(+ : {whole})")
            with self.loop("lane", "0", str(width)):
                self.line(f"{whole} = {whole} + lanes_{acc.name}[lane];", acc.origins)

    def narrow_lanes(self, loop: Loop, begin: str, end: str) -> None:
        """One register for each accumulator."""
        fed = self.fed_by(loop)
        flagged = [a for a in fed if a.kind in ("max", "min") and a.dtype.is_floating_point]
        self.running = frozenset(a.name for a in flagged)
        clauses = self.clauses(loop.body)
        for acc in fed:
            place = self.writer.temp(acc.name)
            if acc in flagged:
                place = f"{acc.kind}_{acc.name}"
                self.line(f"{acc.ctype} {place} = {acc.neutral};", acc.origins)
                self.line(f"int nan_{acc.name} = 0;", acc.origins)
                clauses += f" reduction(| : nan_{acc.name})"
            if acc.kind in CLAUSES:
                clauses += f" reduction({CLAUSES[acc.kind]} : {place})"
        if all(acc.kind in CLAUSES for acc in fed):
            self.pragma("simd" + clauses)
        with self.loop(loop.axis.name, begin, end):
            self.body(loop.body)
        for acc in flagged:
            found = f"nan_{acc.name} ? ({acc.ctype})lab_nan : {acc.kind}_{acc.name}"
            place = self.writer.temp(acc.name)
            self.line(f"{place} = {acc.combined(place, found)};", acc.origins)
        self.running = frozenset()

    def accumulate(
        self, acc: Accumulator, value: Expr, position: Index | None, origins: Origins
    ) -> None:
        if acc.name not in self.running:
            super().accumulate(acc, value, position, origins)
            return
        place, text = f"{acc.kind}_{acc.name}", self.writer.operand(value)
        sign = ">" if acc.kind == "max" else "<"
        self.line(f"{place} = {text} {sign} {place} ? {text} : {place};", origins, statement=True)
        self.line(f"nan_{acc.name} |= {text} != {text};", origins, statement=True)

    def chunks(self, loop: Loop, size: str) -> None:
        """The loop in a fixed number of parts, threaded; their results are combined in order."""
        self.partial(loop, size)
        with self.loop("part", "0", str(part_count(loop))):
            for acc in self.fed_by(loop):
                self._combine_part(acc)

    def partial(self, loop: Loop, size: str) -> None:
        """What each part of a loop accumulates, in arrays `parts_..`."""
        fed = self.fed_by(loop)
        for acc in fed:
            for name, ctype in running_of(acc):
                self.line(f"{ctype} parts_{name}[{part_count(loop)}];", acc.origins)
        with self.each_part(loop, size):
            for acc in fed:
                self.start(acc)
            self.reduce(loop, "begin", "end")
            for acc in fed:
                for name, _ in running_of(acc):
                    self.line(f"parts_{name}[part] = {name};", acc.origins)

    @contextmanager
    def each_part(self, loop: Loop, size: str) -> Iterator[None]:
        """A threaded loop over the parts of a loop, each from `begin` to `end`."""
        count = part_count(loop)
        self.pragma("parallel for" + self.condition() + self.clauses(loop.body))
        with self.threaded(), self.loop("part", "0", str(count)):
            whole = f" / {LINE} * {LINE}" if next(innermost_loops((loop,))) is loop else ""
            stop = f"{size} * (part + 1) / {count}{whole}"
            stop = f"part < {count - 1} ? {stop} : {size}" if whole else stop
            self.line(f"const int64_t begin = {size} * part / {count}{whole};")
            self.line(f"const int64_t end = {stop};")
            yield

    def _combine_part(self, acc: Accumulator) -> None:
        if acc.is_arg:
            value, at = f"parts_{acc.best}[part]", f"parts_{acc.name}[part]"
            self.take_better(acc, value, at, acc.origins)
        else:
            text = acc.combined(acc.name, f"parts_{acc.name}[part]")
            self.line(f"{acc.name} = {text};", acc.origins, statement=True)

    def _restore(self, name: str, place: str) -> None:
        if place == name:
            del self.writer.places[name]
        else:
            self.writer.places[name] = place


def is_transposed(value: Expr, outer: Axis, inner: Axis) -> TypeGuard[Load]:
    """Is it a load that goes on along `outer` and leaps along `inner`?"""
    if not isinstance(value, Load) or value.dtype is torch.bool or not value.index[0].is_affine:
        return False
    index = value.index[0]
    return is_int(index.coefficient(outer), 1) and hint(index.coefficient(inner)) > 1


def is_plain_store(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.kind == "store"


def part_count(loop: Loop) -> int:
    """In how many parts a threaded loop is cut."""
    return min(CHUNKS, loop.axis.size) if isinstance(loop.axis.size, int) else CHUNKS


def running_of(acc: Accumulator) -> list[tuple[str, str]]:
    """The variables of an accumulator with their types."""
    best = [(acc.best, CTYPES[acc.dtype])] if acc.is_arg else []
    return [(acc.name, acc.ctype), *best]
