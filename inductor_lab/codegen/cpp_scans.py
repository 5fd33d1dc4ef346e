"""Rows with scans along them: in order, in two threaded passes, or in blocks.

    for (int64_t j0 = 0; j0 < 1024; j0++) {
        acc0 = acc0 + in0[1024 * i0 + j0];
        out0[1024 * i0 + j0] = acc0;
    }

A loop that carries a value from one turn to the next has no vector lanes.  So what is expensive
before and after the accumulation runs in loops of its own, a block at a time.  Sums have lanes all
the same: `lab_running_sum` adds a vector to itself, moved by one, two, four places and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from inductor_lab.codegen.cpp_ops import CTYPES
from inductor_lab.codegen.cpp_rows import part_count, running_of
from inductor_lab.codegen.cpp_search import RowSearches
from inductor_lab.codegen.cpp_statements import Accumulator
from inductor_lab.codegen.tidy import has_expensive, temps_read, walk
from inductor_lab.codegen.tree import Accumulate, Let, Loop, LoopKind, Stmt, When
from inductor_lab.ir.expr import Expr, Origins, Temp
from inductor_lab.ir.index import hint

SCAN_BLOCK = 64
"""Elements of a block: what goes from one of its loops to the next stays in the first cache."""
SHORTEST_SUM = 16
"""Elements of a row from which on its running sum is made in lanes."""


class RowScans(RowSearches):
    """Rows, and the scans along them."""

    def scan(self, loop: Loop, size: str, threads: bool) -> None:
        totals = needed_by_scans(loop.body)
        alone = not read_by(totals) & {s.name for s in totals if isinstance(s, Accumulate)}
        if threads and alone:
            self.scan_in_parts(loop, totals, size)
        else:
            self.in_order(loop, "0", size)

    def scan_in_parts(self, loop: Loop, totals: tuple[Stmt, ...], size: str) -> None:
        """A scan in two threaded passes: what each part comes to, then each part from what came
        before it.  `totals` is what that takes of the body."""
        self.partial(Loop(loop.axis, LoopKind.REDUCE, totals), size)
        fed = self.fed_by(loop)
        with self.loop("part", "0", str(part_count(loop))):
            for acc in fed:
                for name, ctype in running_of(acc):
                    self.line(f"const {ctype} part_{name} = parts_{name}[part];", acc.origins)
                    self.line(f"parts_{name}[part] = {name};", acc.origins)
                self._take_part(acc)
        with self.each_part(loop, size):
            for acc in fed:
                for name, ctype in running_of(acc):
                    self.line(f"{ctype} {name} = parts_{name}[part];", acc.origins)
            self.in_order(loop, "begin", "end")

    def _take_part(self, acc: Accumulator) -> None:
        """Go on with what came before a part and the part itself; an empty part has no place."""
        if acc.is_arg:
            with self.block(f"if (part_{acc.name} >= {acc.name})", acc.origins):
                self.take_better(acc, f"part_{acc.best}", f"part_{acc.name}", acc.origins)
        else:
            text = acc.combined(acc.name, f"part_{acc.name}")
            self.line(f"{acc.name} = {text};", acc.origins, statement=True)

    # ---- one after the other -----------------------------------------------------------------

    def in_order(self, loop: Loop, begin: str, end: str) -> None:
        before, scan, after = runs_of(loop)
        if not before and not after:
            with self.loop(loop.axis.name, begin, end):
                self.body(loop.body)
            return
        axis, sums = loop.axis.name, is_sum(scan)
        running = {s.name: s for s in scan if isinstance(s, Accumulate)}
        kept = _crossing((*before, *scan), (), after) if sums else _crossing(before, scan, after)
        known = {temp.name for temp in kept}
        kept += [
            Temp(s.name, s.value.dtype) for s in running.values() if sums and s.name not in known
        ]
        for temp in kept:
            self.line(f"{CTYPES[temp.dtype]} {temp.name}_block[{SCAN_BLOCK}];")
        with self.loop(f"{axis}_block", begin, end, str(SCAN_BLOCK)):
            stop = f"{axis}_block + {SCAN_BLOCK}"
            self.line(f"const int64_t {axis}_end = {stop} < {end} ? {stop} : {end};")
            places = {temp.name: f"{temp.name}_block[{axis} - {axis}_block]" for temp in kept}
            self.writer.places.update({n: at for n, at in places.items() if n not in running})
            if sums:
                added = [(places[n], s.value, s.origins) for n, s in running.items()]
                self._block(axis, before, added)
                for name, stmt in running.items():
                    given = f"{name}, {name}_block, {axis}_end - {axis}_block"
                    text = f"{name} = lab_running_sum({given});"
                    self.line(text, stmt.origins, statement=True)
            else:
                so_far = [(places[t.name], t, running[t.name].origins) for t in kept
                          if t.name in running]  # fmt: skip
                self._block(axis, before)
                self._block(axis, scan, so_far, simd=False)
            self.writer.places.update(places)
            self._block(axis, after)
            for name in places:
                del self.writer.places[name]

    def _block(
        self,
        axis: str,
        stmts: tuple[Stmt, ...],
        kept: Sequence[tuple[str, Expr, Origins]] = (),
        *,
        simd: bool = True,
    ) -> None:
        """One loop over a block; `kept` are values for the loop after it, and their places."""
        if not stmts and not kept:
            return
        if simd:
            self.pragma("simd" + self.clauses(stmts))
        with self.loop(axis, f"{axis}_block", f"{axis}_end"):
            self.body(stmts)
            for place, value, origins in kept:
                self.line(f"{place} = {self.writer.expr(value)};", origins, statement=True)


def read_by(stmts: Iterable[Stmt]) -> set[str]:
    """Names of the temps that statements read, those inside them included."""
    return {temp.name for stmt in walk(tuple(stmts)) for temp in temps_read(stmt)}


def needed_by_scans(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The accumulations, and the values that they take."""
    needed: set[str] = set()
    kept: list[Stmt] = []
    for stmt in reversed(body):
        defined = _defined(stmt)
        if isinstance(stmt, Accumulate) or (defined is not None and defined.name in needed):
            kept.append(stmt)
            needed |= read_by((stmt,))
    return tuple(reversed(kept))


Runs = tuple[tuple[Stmt, ...], tuple[Stmt, ...], tuple[Stmt, ...]]


def runs_of(loop: Loop) -> Runs:
    """What comes before the scan, the scan, and what comes after it; what is cheap is with a scan
    that goes step by step, so that often there is nothing else."""
    body = loop.body
    needed = needed_by_scans(body)
    depends = {stmt.name for stmt in needed if isinstance(stmt, Accumulate)}
    before: list[Stmt] = []
    for stmt in needed:
        if isinstance(stmt, Accumulate) or read_by((stmt,)) & depends:
            defined = _defined(stmt)
            depends |= {defined.name} if defined is not None else set()
        else:
            before.append(stmt)
    scan = [stmt for stmt in body if stmt in needed and stmt not in before]
    after = [stmt for stmt in body if stmt not in needed]
    if is_sum(scan) and hint(loop.axis.size, SHORTEST_SUM) >= SHORTEST_SUM:
        return tuple(before), tuple(scan), tuple(after)
    if not has_expensive(tuple(before)):
        before, scan = [], [stmt for stmt in body if stmt in needed]
    if not has_expensive(tuple(after)):
        after, scan = [], [stmt for stmt in body if stmt not in before]
    return tuple(before), tuple(scan), tuple(after)


def is_sum(scan: Sequence[Stmt]) -> bool:
    """Are there only sums, each of what is known beforehand, in numbers that have lanes?"""
    names = {stmt.name for stmt in scan if isinstance(stmt, Accumulate)}
    return all(
        isinstance(stmt, Accumulate)
        and stmt.kind == "sum"
        and stmt.value.dtype in (torch.float32, torch.float64, torch.int64)
        and not read_by((stmt,)) & names
        for stmt in scan
    )


def _defined(stmt: Stmt) -> Temp | None:
    match stmt:
        case Let(temp=temp) | When(result=temp):
            return temp
        case _:
            return None


def _crossing(*runs: tuple[Stmt, ...]) -> list[Temp]:
    """Temps that one run defines, or accumulates, and a later one reads."""
    known: dict[str, Temp] = {}
    crossing: dict[Temp, None] = {}
    for run in runs:
        reads = [t for s in walk(run) for t in temps_read(s) if t.name in known]
        crossing.update(dict.fromkeys(reads))
        for stmt in run:
            defined = _defined(stmt)
            if defined is not None:
                known[defined.name] = defined
            elif isinstance(stmt, Accumulate):
                known[stmt.name] = Temp(stmt.name, stmt.value.dtype)
    return list(crossing)
