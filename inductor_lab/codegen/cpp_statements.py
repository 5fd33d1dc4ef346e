"""Statements of a loop tree as lines of C++.

What is common to both ways of running a reduction: rows (`cpp_rows.py`) and columns
(`cpp_columns.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from inductor_lab.codegen.cpp_ops import CTYPES
from inductor_lab.codegen.cpp_text import Writer
from inductor_lab.codegen.cpu_plan import GRAIN, CpuPlan
from inductor_lab.codegen.kernel import Line
from inductor_lab.codegen.tidy import expressions, places, walk
from inductor_lab.codegen.tree import Accumulate, Init, Let, Loop, LoopKind, Stmt, Store, When
from inductor_lab.ir.expr import NO_ORIGINS, Expr, Origins, Temp, integer_divisors
from inductor_lab.ir.index import Atom, Axis, Gathered, Index, Size
from inductor_lab.ir.ops import POSITIONS

STATUS = "bad"
OUTSIDE, BY_ZERO = 1, 2
"""The kernel's result: OUTSIDE if an index that it loaded was out of range, BY_ZERO if it divided
integers by zero, both, or 0."""


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One running reduction.  `best` is the value that goes with the position of an argmax."""

    name: str
    kind: str
    dtype: torch.dtype
    origins: Origins

    @property
    def is_arg(self) -> bool:
        return self.kind in POSITIONS

    @property
    def best(self) -> str:
        return f"best_{self.name}"

    @property
    def ctype(self) -> str:
        return "int64_t" if self.is_arg else CTYPES[self.dtype]

    @property
    def sums_floats(self) -> bool:
        return self.kind == "sum" and self.dtype.is_floating_point

    @property
    def neutral(self) -> str:
        """Where the running value starts; for argmax that of `best`."""
        plain = {"sum": "0", "prod": "1", "any": "false", "all": "true"}
        end = "lab_highest" if "min" in self.kind else "lab_lowest"
        return plain.get(self.kind) or f"{end}<{CTYPES[self.dtype]}>()"

    def combined(self, first: str, second: str) -> str:
        """Two running values (not of an argmax) as one."""
        sign = {"sum": "+", "prod": "*", "any": "|", "all": "&"}.get(self.kind)
        if sign:
            return f"{first} {sign} {second}"
        function = {"max": "lab_maximum", "min": "lab_minimum"}.get(self.kind, "lab_logaddexp")
        return f"{function}<{self.ctype}>({first}, {second})"

    def beats(self, value: str, best: str) -> str:
        """Is `value` a better candidate of an argmax than what came before it?"""
        return f"lab_{self.kind}_beats<{CTYPES[self.dtype]}>({value}, {best})"


class Statements:
    """Collects lines; subclasses say what a loop inside a point looks like."""

    def __init__(self, tree: tuple[Stmt, ...], writer: Writer, plan: CpuPlan) -> None:
        self.tree, self.writer, self.plan = tree, writer, plan
        self.lines: list[Line] = []
        self.depth = 0
        self.inside_threads = False
        self.checks = gathered_checks(tree)
        self.checked = bool(self.checks) or any(map(divisors, walk(tree)))
        self.accumulators = {
            s.name: Accumulator(s.name, s.kind, s.dtype, s.origins)
            for s in walk(tree)
            if isinstance(s, Init)
        }

    # ---- text --------------------------------------------------------------------------------

    def line(self, text: str, origins: Origins = NO_ORIGINS, *, statement: bool = False) -> None:
        margin = "" if text.startswith("#") else "    " * self.depth
        self.lines.append(Line(margin + text, origins, statement))

    def pragma(self, text: str) -> None:
        """An OpenMP pragma at the depth of its loop."""
        self.lines.append(Line("    " * self.depth + f"#pragma omp {text}", statement=False))

    @contextmanager
    def block(self, header: str, origins: Origins = NO_ORIGINS) -> Iterator[None]:
        self.line(header + " {", origins)
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    @contextmanager
    def loop(self, name: str, begin: str, end: str, step: str = "") -> Iterator[None]:
        advance = f"{name} += {step}" if step else f"{name}++"
        with self.block(f"for (int64_t {name} = {begin}; {name} < {end}; {advance})"):
            yield

    @contextmanager
    def threaded(self) -> Iterator[None]:
        before, self.inside_threads = self.inside_threads, True
        yield
        self.inside_threads = before

    def clauses(self, body: tuple[Stmt, ...]) -> str:
        """What a pragma before a loop over `body` must say of the status."""
        if not self.checked:
            return ""
        stmts = list(walk(body))
        checked = any(isinstance(s, Let) and s.temp in self.checks for s in stmts)
        checked = checked or any(map(divisors, stmts))
        return f" reduction(| : {STATUS})" if checked else ""

    def condition(self) -> str:
        if self.plan.condition is None:
            return ""
        return f" if ({self.writer.size(self.plan.condition)} >= {GRAIN})"

    # ---- statements --------------------------------------------------------------------------

    def whole(self) -> None:
        """All of the tree."""
        self.body(self.tree)

    def body(self, stmts: tuple[Stmt, ...]) -> None:
        for stmt in stmts:
            self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> None:
        if self.checked and not isinstance(stmt, When):
            for divisor, origins in divisors(stmt):
                test = f"({self.writer.operand(divisor)} == 0)"
                self.line(f"{STATUS} |= {BY_ZERO} * {test};", origins)
        match stmt:
            case Let(temp, value, origins):
                self.define(temp, self.writer.expr(value), origins)
            case Store():
                self.store(stmt)
            case Init(name):
                self.start(self.accumulators[name])
            case Accumulate(name, _, value, position, origins):
                self.accumulate(self.accumulators[name], value, position, origins)
            case When():
                self.when(stmt)
            case Loop():
                self.point_loop(stmt) if _is_point(stmt) else self.inner_loop(stmt)

    def store(self, stmt: Store) -> None:
        """An assignment.  Where a dimension is empty, no index into it can be made harmless."""
        place = self.place(stmt)
        text = self.writer.expr(stmt.value)
        if stmt.kind != "store":
            text = self.writer.combined(stmt.kind, place, stmt.value)
        unknown = [a.size for a in _atoms(stmt.index) if isinstance(a, Gathered)]
        unknown = [size for size in unknown if not isinstance(size, int)]
        tests = dict.fromkeys(f"{self.writer.size(size)} > 0" for size in unknown)
        guard = f"if ({' && '.join(tests)}) " if tests else ""
        self.line(f"{guard}{place} = {text};", stmt.origins, statement=True)

    def place(self, stmt: Store) -> str:
        """Where a store writes."""
        return f"{self.writer.buffers[stmt.buffer]}[{self.writer.index(stmt.index)}]"

    def tested(self, stmt: Stmt) -> bool:
        """Is a value of the statement looked at, before or after it is used?"""
        index = isinstance(stmt, Let) and stmt.temp in self.checks
        return index or bool(divisors(stmt))

    def point_loop(self, loop: Loop) -> None:
        raise NotImplementedError

    def inner_loop(self, loop: Loop) -> None:
        raise NotImplementedError

    def define(self, temp: Temp, text: str, origins: Origins) -> None:
        place = self.writer.temp(temp.name)
        declared = f"{CTYPES[temp.dtype]} {place}" if place == temp.name else place
        self.line(f"{declared} = {text};", origins, statement=True)
        for size in self.checks.get(temp, ()):
            self.line(f"{STATUS} |= lab_outside({place}, {self.writer.size(size)});", origins)

    def start(self, acc: Accumulator) -> None:
        """Declare an accumulator (or reset its element of a strip) with its neutral value."""
        self._set(acc.name, acc.ctype, "0" if acc.is_arg else acc.neutral, acc.origins)
        if acc.is_arg and acc.kind != "bisect":
            self._set(acc.best, CTYPES[acc.dtype], acc.neutral, acc.origins)

    def _set(self, name: str, ctype: str, value: str, origins: Origins) -> None:
        place = self.writer.temp(name)
        declared = f"{ctype} {place}" if place == name else place
        self.line(f"{declared} = {value};", origins, statement=True)

    def accumulate(
        self, acc: Accumulator, value: Expr, position: Index | None, origins: Origins
    ) -> None:
        place = self.writer.temp(acc.name)
        if acc.kind == "bisect":
            assert position is not None, "a search is for a position"
            self.halve(acc, self.writer.expr(value), self.writer.index(position), origins)
        elif position is not None:
            self.take_better(acc, self.writer.expr(value), self.writer.index(position), origins)
        else:
            text = acc.combined(place, self.writer.operand(value))
            self.line(f"{place} = {text};", origins, statement=True)

    def bisect(self, loop: Loop) -> None:
        """A binary search: the place is between the accumulator and `end_`, and is halved."""
        (acc,) = (self.accumulators[s.name] for s in loop.body if isinstance(s, Accumulate))
        low, high, at = acc.name, f"end_{acc.name}", loop.axis.name
        self.line(f"int64_t {high} = {self.writer.size(loop.axis.size)};", acc.origins)
        with self.block(f"while ({low} < {high})", acc.origins):
            self.line(f"const int64_t {at} = {low} + ({high} - {low}) / 2;", acc.origins)
            self.body(loop.body)

    def halve(self, acc: Accumulator, holds: str, at: str, origins: Origins) -> None:
        low, high, found = acc.name, f"end_{acc.name}", f"found_{acc.name}"
        self.line(f"const bool {found} = {holds};", origins, statement=True)
        self.line(f"{high} = {found} ? {at} : {high};", origins, statement=True)
        self.line(f"{low} = {found} ? {low} : {at} + 1;", origins, statement=True)

    def take_better(self, acc: Accumulator, value: str, position: str, origins: Origins) -> None:
        place, best = self.writer.temp(acc.name), self.writer.temp(acc.best)
        with self.block(f"if ({acc.beats(value, best)})", origins):
            self.line(f"{best} = {value};", origins, statement=True)
            self.line(f"{place} = {position};", origins, statement=True)

    def when(self, stmt: When) -> None:
        """A guarded value: a ternary if it is one load, an `if` if it takes more."""
        mask, other = self.writer.operand(stmt.mask), self.writer.expr(stmt.other)
        match stmt.body:
            case (Let(temp, value, origins) as let,) if stmt.value == temp and not self.tested(let):
                text = f"{mask} ? {self.writer.operand(value)} : {self.writer.operand(stmt.other)}"
                self.define(stmt.result, text, stmt.origins | origins)
                return
        self.define(stmt.result, other, stmt.origins)
        with self.block(f"if ({self.writer.expr(stmt.mask)})", stmt.origins):
            self.body(stmt.body)
            place = self.writer.temp(stmt.result.name)
            self.line(f"{place} = {self.writer.expr(stmt.value)};", stmt.origins, statement=True)


def _is_point(loop: Loop) -> bool:
    return loop.kind in (LoopKind.PARALLEL, LoopKind.VECTOR)


def divisors(stmt: Stmt) -> list[tuple[Expr, Origins]]:
    """What this very statement divides integers by."""
    return [found for value in expressions(stmt) for found in integer_divisors(value)]


def gathered_checks(tree: tuple[Stmt, ...]) -> dict[Temp, list[Size]]:
    """Temps that are used as an index, each with the lengths it must stay below.

    A load under a mask may have an index out of range where the mask does not hold, so only
    indices that were made under that same mask are checked; the others are clamped in silence.
    """
    found: dict[Temp, list[Size]] = {}

    def visit(stmts: tuple[Stmt, ...], visible: set[Temp]) -> None:
        for stmt in stmts:
            nodes = (node for value in expressions(stmt) for node in value.walk())
            for index in (*(i for node in nodes for i in node.indices()), *places(stmt)):
                for atom in _atoms(index):
                    if isinstance(atom, Gathered) and atom.value in visible:
                        assert isinstance(atom.value, Temp)
                        sizes = found.setdefault(atom.value, [])
                        sizes.extend(() if atom.size in sizes else (atom.size,))
            if isinstance(stmt, Let):
                visible.add(stmt.temp)
            elif isinstance(stmt, When):
                visit(stmt.body, set())
                visible.add(stmt.result)
            elif isinstance(stmt, Loop):
                visit(stmt.body, visible)

    visit(tree, set())
    return found


def _atoms(index: Index) -> Iterator[Atom]:
    for atom, _ in index.terms:
        yield atom
        if not isinstance(atom, Axis | Gathered):
            yield from _atoms(atom.dividend)
