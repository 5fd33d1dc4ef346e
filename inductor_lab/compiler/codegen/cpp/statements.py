"""Prints the statements of a loop tree as lines of C++.

Each kind of statement has one form.  The passes in `codegen/cpu/` have already put blocks, vector
lanes and threads into the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from inductor_lab.compiler.codegen.cpp.cpp_ops import CTYPES, ROUNDED
from inductor_lab.compiler.codegen.cpp.expressions import Writer
from inductor_lab.compiler.codegen.kernel import Line
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Address,
    Assign,
    Bound,
    Call,
    Check,
    ElementAlias,
    Execution,
    If,
    Init,
    LastFullBlock,
    Let,
    Local,
    Loop,
    LoopKind,
    Minimum,
    PartBound,
    Stmt,
    Store,
    Tree,
    When,
    best_of,
)
from inductor_lab.compiler.codegen.tree.visit import walk
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Expr, Origins, Temp
from inductor_lab.compiler.ir.index import ZERO, Index, Size, gathered_in, is_int
from inductor_lab.compiler.ir.ops import POSITIONS

STATUS = "bad"
OUTSIDE, BY_ZERO = 1, 2
"""The bits that a kernel returns: OUTSIDE if a loaded index was out of range, BY_ZERO if integers
were divided by zero."""

COMBINED = {
    "sum": "{0} + {1}",
    "prod": "{0} * {1}",
    "any": "{0} | {1}",
    "all": "{0} & {1}",
    "max": "lab_maximum<{T}>({0}, {1})",
    "min": "lab_minimum<{T}>({0}, {1})",
    "logsumexp": "lab_logaddexp<{T}>({0}, {1})",
    "greatest": "{1} > {0} ? {1} : {0}",
    "least": "{1} < {0} ? {1} : {0}",
}
"""How an accumulator `{0}` and a value `{1}` are combined."""
HIGHEST = {"min", "argmin", "argmin_last", "least"}
NEUTRAL = {"sum": "0", "prod": "1", "any": "false", "all": "true", "nan": "0"}
"""The initial value of an accumulator.  Minima start at the highest number (`HIGHEST`), maxima at
the lowest."""
FLAGS = {"any", "all", "nan"}
"""Accumulators of type int.  Vector code would pack a bool into a byte in each iteration."""


class Printer:
    """Prints a tree and collects its lines."""

    def __init__(self, tree: Tree, writer: Writer) -> None:
        self.writer = writer
        self.lines: list[Line] = []
        self.depth = 0
        self.checked = any(isinstance(stmt, Check) for stmt in walk(tree))

    def line(self, text: str, origins: Origins = NO_ORIGINS, *, statement: bool = False) -> None:
        self.lines.append(Line("    " * self.depth + text, origins, statement))

    @contextmanager
    def block(self, header: str, origins: Origins = NO_ORIGINS) -> Iterator[None]:
        self.line(header + " {", origins)
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def body(self, stmts: Tree) -> None:
        """Print a body.  Aliases that it declares are only valid inside it."""
        outside = (
            dict(self.writer.places) if any(isinstance(s, ElementAlias) for s in stmts) else None
        )
        for stmt in stmts:
            self.stmt(stmt)
        if outside is not None:
            self.writer.places = outside

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let(temp, value, origins):
                self.define(temp, self.writer.expr(value), origins)
            case Store():
                self.store(stmt)
            case Init():
                self.start(stmt)
            case Accumulate():
                self.accumulate(stmt)
            case When():
                self.when(stmt)
            case Loop():
                self.search(stmt) if stmt.kind is LoopKind.BISECT else self.loop(stmt)
            case If(mask, body, origins):
                with self.block(f"if ({self.writer.expr(mask)})", origins):
                    self.body(body)
            case _:
                self.pass_statement(stmt)

    def pass_statement(self, stmt: Local | ElementAlias | Assign | Call | Bound | Check) -> None:
        match stmt:
            case Local(name, dtype, shape, origins, zero):
                sizes = "".join(f"[{size}]" for size in shape)
                start = " = {}" if zero else ""
                self.line(f"{CTYPES[dtype]} {name}{sizes}{start};", origins)
            case ElementAlias(name, array, at):
                self.writer.places[name] = self.writer.element(array, at)
            case Assign(name, value, origins):
                place = self.writer.temp(name)
                self.line(f"{place} = {self.writer.expr(value)};", origins, statement=True)
            case Call(function, args, result, origins):
                call = f"{function}({', '.join(map(self.argument, args))});"
                taken = f"{self.writer.temp(result)} = " if result else ""
                self.line(taken + call, origins, statement=True)
            case Bound(name):
                self.line(f"const int64_t {name.name} = {self.bound(stmt)};")
            case Check(value, size, origins):
                self.line(f"{STATUS} |= {self.test(value, size)};", origins)

    # ---- loops -------------------------------------------------------------------------------

    def loop(self, loop: Loop) -> None:
        self.pragma(loop)
        at, index = loop.axis.name, self.writer.index
        advance = f"{at} += {loop.step}" if loop.step > 1 else f"{at}++"
        header = f"for (int64_t {at} = {index(loop.begin)}; {at} < {index(loop.stop)}; {advance})"
        table = self.writer.table
        if loop.execution.rounds_differences:
            self.writer.table = {**table, **ROUNDED}
        with self.block(header):
            self.body(loop.body)
        self.writer.table = table

    def pragma(self, loop: Loop) -> None:
        """Print the OpenMP directive that says which threads and lanes run the iterations."""
        execution = loop.execution
        words = [] if not execution.threads else ["for"] if execution.team else ["parallel for"]
        words += ["simd"] if execution.simd else []
        if execution.threads > 1:
            words.append(f"collapse({execution.threads})")
        if execution.team:
            words.append("nowait")
        if not is_int(execution.work, 0):
            words.append(f"if ({self.writer.size(execution.work)} >= {execution.grain})")
        text = " ".join(["#pragma omp", *words, *self.clauses(loop, execution)]) if words else ""
        text = "#pragma GCC unroll 1" if execution.rolled else text
        if text:
            self.lines.append(Line("    " * self.depth + text, statement=False))

    def clauses(self, loop: Loop, execution: Execution) -> list[str]:
        """Return the clauses for accumulators that are private to each thread or lane."""
        found = [(sign, self.writer.temp(name)) for sign, name in execution.reductions]
        if not execution.team and any(isinstance(stmt, Check) for stmt in walk(loop.body)):
            found.insert(0, ("|", STATUS))
        return [f"reduction({sign} : {name})" for sign, name in found]

    def bound(self, bound: Bound) -> str:
        match bound.value:
            case Index() as index:
                return self.writer.index(index)
            case Minimum(first, second):
                one, other = self.writer.index(first), self.writer.index(second)
                return f"{one} < {other} ? {one} : {other}"
            case LastFullBlock(begin, end, width):
                start = self.writer.index(begin)
                return f"{start} + ({self.writer.index(end)} - {start}) / {width} * {width}"
            case PartBound(size, part, count, line, end):
                whole = f" / {line} * {line}" if line > 1 else ""
                length, number = self.writer.size(size), part.name
                number = f"({number} + 1)" if end else number
                text = f"{length} * {number} / {count}{whole}"
                return f"{part.name} < {count - 1} ? {text} : {length}" if end and whole else text

    def search(self, loop: Loop) -> None:
        """Print a binary search, which halves the interval from the accumulator to `end_`."""
        (acc,) = (stmt for stmt in loop.body if isinstance(stmt, Accumulate))
        low, high, at = acc.name, f"end_{acc.name}", loop.axis.name
        self.line(f"int64_t {high} = {self.writer.size(loop.axis.size)};", acc.origins)
        with self.block(f"while ({low} < {high})", acc.origins):
            self.line(f"const int64_t {at} = {low} + ({high} - {low}) / 2;", acc.origins)
            self.body(loop.body)

    # ---- statements --------------------------------------------------------------------------

    def store(self, stmt: Store) -> None:
        """Print an assignment, guarded if a symbolic dimension that it gathers from can be empty.

        An index into an empty dimension cannot be clamped to a valid one.
        """
        place = self.writer.element(stmt.buffer, (stmt.index,))
        text = self.writer.expr(stmt.value)
        if stmt.kind != "store":
            text = self.writer.combined(stmt.kind, place, stmt.value)
        unknown = [atom.size for atom in gathered_in(stmt.index)]
        unknown = [size for size in unknown if not isinstance(size, int)]
        tests = dict.fromkeys(f"{self.writer.size(size)} > 0" for size in unknown)
        guard = f"if ({' && '.join(tests)}) " if tests else ""
        self.line(f"{guard}{place} = {text};", stmt.origins, statement=True)

    def define(self, temp: Temp, text: str, origins: Origins) -> None:
        self.declare(temp.name, CTYPES[temp.dtype], text, origins)

    def declare(self, name: str, ctype: str, text: str, origins: Origins) -> None:
        """Declare a variable with a value, or assign to the array element that replaces it."""
        place = self.writer.temp(name)
        declared = f"{ctype} {place}" if place == name else place
        self.line(f"{declared} = {text};", origins, statement=True)

    def start(self, init: Init) -> None:
        kind, ctype, is_place = init.kind, CTYPES[init.dtype], init.kind in POSITIONS
        end = "lab_highest" if kind in HIGHEST else "lab_lowest"
        values = [NEUTRAL.get(kind, f"{end}<{ctype}>()")]
        values = ["0", *values] if is_place else values
        if init.start:
            values = [self.writer.expr(value) for value in init.start]
        own = "int64_t" if is_place else "int" if kind in FLAGS else ctype
        self.declare(init.name, own, values[0], init.origins)
        if is_place and kind != "bisect":
            self.declare(best_of(init.name), ctype, values[1], init.origins)

    def accumulate(self, stmt: Accumulate) -> None:
        place, origins = self.writer.temp(stmt.name), stmt.origins
        value = self.writer.operand(stmt.value)
        if stmt.kind == "bisect":
            assert stmt.position is not None, "a binary search needs a position"
            self.halve(stmt, self.writer.expr(stmt.value), self.writer.index(stmt.position))
        elif stmt.kind in POSITIONS:
            self.accumulate_extreme(stmt)
        elif stmt.kind == "nan":
            self.line(f"{place} |= {value} != {value};", origins, statement=True)
        else:
            text = COMBINED[stmt.kind].format(place, value, T=CTYPES[stmt.value.dtype])
            self.line(f"{place} = {text};", origins, statement=True)

    def halve(self, stmt: Accumulate, holds: str, at: str) -> None:
        low, high, found = stmt.name, f"end_{stmt.name}", f"found_{stmt.name}"
        self.line(f"const bool {found} = {holds};", stmt.origins, statement=True)
        self.line(f"{high} = {found} ? {at} : {high};", stmt.origins, statement=True)
        self.line(f"{low} = {found} ? {low} : {at} + 1;", stmt.origins, statement=True)

    def accumulate_extreme(self, stmt: Accumulate) -> None:
        """Replace the extreme and its position if the new element is better."""
        place, best = self.writer.temp(stmt.name), self.writer.temp(best_of(stmt.name))
        value, ctype = self.writer.expr(stmt.value), CTYPES[stmt.value.dtype]
        found = stmt.found
        assert found is not None or stmt.position is not None, "argmax and argmin need a position"
        at = self.writer.expr(found) if found is not None else ""
        at = at or self.writer.index(stmt.position or ZERO)
        with self.block(f"if (lab_{stmt.kind}_beats<{ctype}>({value}, {best}))", stmt.origins):
            self.line(f"{best} = {value};", stmt.origins, statement=True)
            self.line(f"{place} = {at};", stmt.origins, statement=True)

    def when(self, stmt: When) -> None:
        """Print a guarded value: a ternary if it is a single load, otherwise an `if`."""
        mask, other = self.writer.operand(stmt.mask), self.writer.expr(stmt.other)
        match stmt.body:
            case (Let(temp, value, origins),) if stmt.value == temp:
                text = f"{mask} ? {self.writer.operand(value)} : {self.writer.operand(stmt.other)}"
                self.define(stmt.result, text, stmt.origins | origins)
                return
        self.define(stmt.result, other, stmt.origins)
        with self.block(f"if ({self.writer.expr(stmt.mask)})", stmt.origins):
            self.body(stmt.body)
            place = self.writer.temp(stmt.result.name)
            self.line(f"{place} = {self.writer.expr(stmt.value)};", stmt.origins, statement=True)

    # ---- values ------------------------------------------------------------------------------

    def argument(self, given: Address | Index | Temp) -> str:
        match given:
            case Address(buffer, index):
                if buffer not in self.writer.buffers:
                    return buffer
                return f"{self.writer.buffers[buffer]} + {self.writer.index(index)}"
            case Index():
                return self.writer.distance(given)
            case Temp(name):
                return name

    def test(self, value: Expr, size: tuple[Size, ...]) -> str:
        if not size:
            return f"{BY_ZERO} * ({self.writer.operand(value)} == 0)"
        return f"lab_outside({self.writer.expr(value)}, {self.writer.size(size[0])})"
