"""Loops whose vector lanes run along the last point axis: reductions of columns.

Memory is contiguous along the columns, so a strip of them goes through the rows together:

    float acc0[512];
    for (int64_t i0 = 0; i0 < 512; i0++) acc0[i0] = 0;
    for (int64_t j0 = 0; j0 < 8192; j0++) {
        for (int64_t i0 = 0; i0 < 512; i0++) acc0[i0] = acc0[i0] + in0[512 * j0 + i0];
    }

Every value that lives from one of these small loops to the next is an array over the strip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from inductor_lab.codegen.cpp_ops import CTYPES
from inductor_lab.codegen.cpp_statements import Accumulator, Statements
from inductor_lab.codegen.cpu_plan import CHUNKS, COLUMN_BLOCK
from inductor_lab.codegen.tidy import temps_read, walk
from inductor_lab.codegen.tree import Accumulate, Init, Let, Loop, LoopKind, Stmt, When
from inductor_lab.ir.expr import Temp


class Columns(Statements):
    """Prints a tree with the last point axis innermost."""

    level = 0
    axis = ""
    first = ""
    last = ""
    width = 0

    def point_loop(self, loop: Loop) -> None:
        below = any(_is_point(s) for s in loop.body)
        threads = self.plan.threads if self.level == 0 else 0
        if threads and (below or self._is_cut(loop)):
            collapse = f" collapse({threads})" if threads > 1 else ""
            clauses = collapse + self.condition() + self.clauses(loop.body)
            self.pragma("parallel for" + clauses)
        size = self.writer.size(loop.axis.size)
        self.level += 1
        if below:
            with self.loop(loop.axis.name, "0", size):
                self.body(loop.body)
        else:
            self._strips(loop, size)
        self.level -= 1

    def _is_cut(self, loop: Loop) -> bool:
        return not isinstance(loop.axis.size, int) or loop.axis.size > self.plan.strip

    def _strips(self, loop: Loop, size: str) -> None:
        self.axis, self.width = loop.axis.name, self.plan.strip
        if not self._is_cut(loop):
            assert isinstance(loop.axis.size, int)
            self.first, self.last, self.width = "0", size, loop.axis.size
            self._segments(loop.body)
            return
        self.first, self.last = "strip", "strip_end"
        with self.loop("strip", "0", size, str(self.width)):
            stop = f"strip + {self.width}"
            self.line(f"const int64_t strip_end = {stop} < {size} ? {stop} : {size};")
            self._segments(loop.body)

    # ---- segments ----------------------------------------------------------------------------

    def _segments(self, body: tuple[Stmt, ...]) -> None:
        """Each run of statements without a loop becomes one loop over the strip."""
        for temp in sorted(_crossing(body), key=lambda t: t.name):
            self._array(temp.name, CTYPES[temp.dtype])
        self._runs(body)

    def _runs(self, body: tuple[Stmt, ...]) -> None:
        run: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Loop):
                self._lanes(run)
                run = []
                self.inner_loop(stmt)
            else:
                if isinstance(stmt, Init):
                    self._declare(self.accumulators[stmt.name])
                run.append(stmt)
        self._lanes(run)

    def _lanes(self, run: list[Stmt]) -> None:
        """A loop over the strip; what is the same in all columns is computed before it."""
        varying: set[str] = set(self.writer.places)
        stmts: tuple[Stmt, ...] = ()
        for stmt in run:
            if isinstance(stmt, Let) and self._is_uniform(stmt, varying):
                self.stmt(stmt)
            else:
                stmts += (stmt,)
                varying |= {s.temp.name for s in (stmt,) if isinstance(s, Let)}
                varying |= {s.result.name for s in (stmt,) if isinstance(s, When)}
        if stmts:
            if not any(isinstance(s, Accumulate) and s.position is not None for s in stmts):
                self.pragma("simd" + self.clauses(stmts))
            with self.loop(self.axis, self.first, self.last):
                self.body(stmts)

    def _is_uniform(self, let: Let, varying: set[str]) -> bool:
        read = {temp.name for temp in temps_read(let)}
        along = any(axis.name == self.axis for axis in let.value.axes())
        return not along and let.temp.name not in varying and not read & varying

    def _element(self) -> str:
        return self.axis if self.first == "0" else f"{self.axis} - {self.first}"

    def _array(self, name: str, ctype: str) -> None:
        self.line(f"{ctype} {name}[{self.width}];")
        self.writer.places[name] = f"{name}[{self._element()}]"

    def _declare(self, acc: Accumulator) -> None:
        self._array(acc.name, acc.ctype)
        if acc.is_arg:
            self._array(acc.best, CTYPES[acc.dtype])

    # ---- loops along the columns -------------------------------------------------------------

    def inner_loop(self, loop: Loop) -> None:
        size = self.writer.size(loop.axis.size)
        if loop.kind is LoopKind.SCAN:
            with self.loop(loop.axis.name, "0", size):
                self._segments(loop.body)
        elif self.inside_threads or not self.plan.inner_threads:
            self._rows(loop, "0", size)
        elif loop.kind is LoopKind.REDUCE:
            self._chunks(loop, size)
        else:
            self.pragma("parallel for" + self.condition() + self.clauses(loop.body))
            with self.threaded(), self.loop(loop.axis.name, "0", size):
                self._segments(loop.body)

    def _rows(self, loop: Loop, begin: str, end: str) -> None:
        sums = [acc for acc in self._fed_by(loop) if acc.sums_floats]
        size = loop.axis.size
        if not sums or (isinstance(size, int) and size <= 2 * COLUMN_BLOCK) or "block" in begin:
            with self.loop(loop.axis.name, begin, end):
                self._segments(loop.body)
            return
        axis = loop.axis.name
        with self.loop(f"{axis}_block", begin, end, str(COLUMN_BLOCK)):
            stop = f"{axis}_block + {COLUMN_BLOCK}"
            self.line(f"const int64_t {axis}_end = {stop} < {end} ? {stop} : {end};")
            outside = {acc.name: self.writer.places[acc.name] for acc in sums}
            for acc in sums:
                around = outside[acc.name].split("[")[0]  # a block itself, where loops are nested
                name = f"block_{around if around.startswith('block_') else acc.name}"
                self._array(name, acc.ctype)
                self.writer.places[acc.name] = self.writer.places[name]
            self._each(sums, lambda acc: f"{self.writer.temp(acc.name)} = 0;")
            self._rows(loop, f"{axis}_block", f"{axis}_end")
            inside = {acc.name: self.writer.temp(acc.name) for acc in sums}
            self.writer.places.update(outside)
            self._each(sums, lambda a: f"{outside[a.name]} = {outside[a.name]} + {inside[a.name]};")

    def _chunks(self, loop: Loop, size: str) -> None:
        """The rows in a fixed number of parts, threaded; their results are combined in order."""
        fed = list(self._fed_by(loop))
        count = min(CHUNKS, loop.axis.size) if isinstance(loop.axis.size, int) else CHUNKS
        outside = dict(self.writer.places)
        names = [(name, ctype) for acc in fed for name, ctype in _names(acc)]
        for name, ctype in names:
            self.line(f"{ctype} parts_{name}[{count}][{self.width}];")
            self.writer.places[name] = f"parts_{name}[part][{self._element()}]"
        self.pragma("parallel for" + self.condition() + self.clauses(loop.body))
        with self.threaded(), self.loop("part", "0", str(count)):
            self.line(f"const int64_t begin = {size} * part / {count};")
            self.line(f"const int64_t end = {size} * (part + 1) / {count};")
            with self.loop(self.axis, self.first, self.last):
                for acc in fed:
                    self.start(acc)
            self._rows(loop, "begin", "end")
        parts = {name: self.writer.places[name] for name, _ in names}
        self.writer.places = outside
        with (
            self.loop("part", "0", str(count)),
            self.loop(self.axis, self.first, self.last),
        ):
            for acc in fed:
                self._combine_part(acc, parts)

    def _combine_part(self, acc: Accumulator, parts: dict[str, str]) -> None:
        if acc.is_arg:
            self.take_better(acc, parts[acc.best], parts[acc.name], acc.origins)
        else:
            place = self.writer.temp(acc.name)
            text = acc.combined(place, parts[acc.name])
            self.line(f"{place} = {text};", acc.origins, statement=True)

    def _each(self, accs: list[Accumulator], text: Callable[[Accumulator], str]) -> None:
        self.pragma("simd")
        with self.loop(self.axis, self.first, self.last):
            for acc in accs:
                self.line(text(acc), acc.origins)

    def _fed_by(self, loop: Loop) -> Iterator[Accumulator]:
        names = {s.name: None for s in walk(loop.body) if isinstance(s, Accumulate)}
        return (self.accumulators[name] for name in names)


def _names(acc: Accumulator) -> list[tuple[str, str]]:
    best = [(acc.best, CTYPES[acc.dtype])] if acc.is_arg else []
    return [(acc.name, acc.ctype), *best]


def _is_point(stmt: Stmt) -> bool:
    return isinstance(stmt, Loop) and stmt.kind in (LoopKind.PARALLEL, LoopKind.VECTOR)


def _crossing(body: tuple[Stmt, ...]) -> set[Temp]:
    """Temps that one run of statements defines and another one, or a loop, reads."""
    run_of: dict[Temp, int] = {}
    crossing: set[Temp] = set()
    run = 0
    for stmt in body:
        run += isinstance(stmt, Loop)
        reads = {t for inner in walk((stmt,)) for t in temps_read(inner)}
        later = isinstance(stmt, Loop)
        crossing |= {t for t in reads if t in run_of and (later or run_of[t] != run)}
        if isinstance(stmt, Let):
            run_of[stmt.temp] = run
        elif isinstance(stmt, When):
            run_of[stmt.result] = run
    return crossing
