"""Rows whose largest or smallest element is looked for: first which, then where.

    #pragma omp simd reduction(max : max_best_acc0)
    for (j0 = 0; j0 < 1024; j0++) max_best_acc0 = t0 > max_best_acc0 ? t0 : max_best_acc0;
    #pragma omp simd reduction(min : first_acc0)
    for (j0 = 0; j0 < 1024; j0++) first_acc0 = min(first_acc0, t0 == best_acc0 ? j0 : INT32_MAX);

A loop that keeps a value and its place has no vector lanes.  The value alone has, and so has the
least of the places where it is; the second loop reads what the first one brought into the cache.
Inductor keeps a place for each lane.
"""

from __future__ import annotations

from dataclasses import replace

from inductor_lab.codegen.cpp_rows import Rows
from inductor_lab.codegen.cpp_statements import Accumulator
from inductor_lab.codegen.tidy import has_expensive
from inductor_lab.codegen.tree import Accumulate, Let, Loop
from inductor_lab.ir.index import Index

EXTREMES = {"argmax": "max", "argmin": "min"}
"""The reduction that gives the element at the first such place."""


class RowSearches(Rows):
    """Rows, and the places of their extremes."""

    def lanes(self, loop: Loop, begin: str, end: str) -> None:
        sought = [s for s in loop.body if isinstance(s, Accumulate) and s.kind in EXTREMES]
        if not sought or not self.is_searched(loop):
            super().lanes(loop, begin, end)
            return
        first = []
        for stmt in loop.body:
            if isinstance(stmt, Accumulate) and stmt.kind in EXTREMES:
                acc, kind = self.accumulators[stmt.name], EXTREMES[stmt.kind]
                self.accumulators[acc.best] = Accumulator(acc.best, kind, acc.dtype, acc.origins)
                stmt = replace(stmt, name=acc.best, kind=kind, position=None)
            first.append(stmt)
        super().lanes(replace(loop, body=tuple(first)), begin, end)
        for stmt in sought:
            self.first_place(loop, stmt, begin, end)

    def is_searched(self, loop: Loop) -> bool:
        """May the loop run twice, and does nothing come from an earlier one?"""
        once = {s.kind for s in loop.body if isinstance(s, Accumulate)} <= {"max", "min", *EXTREMES}
        plain = all(isinstance(stmt, Let | Accumulate) for stmt in loop.body)
        wide = all(acc.dtype.itemsize >= 4 for acc in self.fed_by(loop))
        again = not self.nesting and not self.checked and not has_expensive(loop.body)
        return once and plain and wide and again

    def first_place(self, loop: Loop, found: Accumulate, begin: str, end: str) -> None:
        """If the best is a NaN, the first NaN; if it is not, there is none."""
        acc, value = self.accumulators[found.name], self.writer.operand(found.value)
        assert found.position is not None, "a search is for a position"
        position, size = found.position, loop.axis.size
        short = position == Index.of(loop.axis) and isinstance(size, int) and size < 2**31
        word, first = ("int32" if short else "int64"), f"first_{acc.name}"
        nan = f" | ({value} != {value})" if acc.dtype.is_floating_point else ""
        test = f"({value} == {self.writer.temp(acc.best)}){nan}"
        here = f"{test} ? ({word}_t)({self.writer.index(position)}) : {word.upper()}_MAX"
        self.line(f"{word}_t {first} = {word.upper()}_MAX;", acc.origins)
        self.pragma(f"simd reduction(min : {first})")
        with self.loop(loop.axis.name, begin, end):
            self.body(tuple(stmt for stmt in loop.body if isinstance(stmt, Let)))
            self.line(f"const {word}_t here = {here};", acc.origins, statement=True)
            self.line(f"{first} = here < {first} ? here : {first};", acc.origins, statement=True)
        self.line(f"{self.writer.temp(acc.name)} = {first};", acc.origins, statement=True)
