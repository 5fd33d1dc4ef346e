"""Interpret a loop tree with torch: compute what a kernel computes, without a C++ compiler.

Loops are Python loops.  An innermost loop with independent iterations is vectorized: its values are
tensors with one element per iteration.  An innermost loop that only accumulates is vectorized too;
its values are then reduced.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Address,
    Assign,
    Bound,
    Call,
    Check,
    ElementAlias,
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
from inductor_lab.compiler.codegen.tree.visit import is_innermost
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Load, Op, SizeValue, Temp
from inductor_lab.compiler.ir.index import Axis, Gathered, Index, Quotient, Size
from inductor_lab.compiler.ir.interpret import Run, Symbols, concrete, empty_for
from inductor_lab.compiler.ir.ops import POSITIONS, neutral
from inductor_lab.compiler.ir.ops_torch import OPERATIONS, REDUCERS, nonzero_divisor, scatter_into
from inductor_lab.compiler.ir.program import Buffer, ExternCall, Scatter
from inductor_lab.compiler.schedule.schedule import Group, Schedule

AT_ONCE = (LoopKind.VECTOR, LoopKind.SERIAL, LoopKind.PARALLEL)
NEUTRAL = {"greatest": "max", "least": "min", "nan": "any", "logsumexp": "max"}
"""Kinds that have the same neutral value as another kind."""
WIDTH = "iterations at once"
"""The key, in `positions`, of the number of iterations of a vectorized loop. No axis has this
name."""


def run_trees(
    schedule: Schedule, tree_of: Callable[[Group], Tree], inputs: Sequence[Any]
) -> tuple[Any, ...]:
    """The graph's outputs; `tree_of` gives the tree that computes each group."""
    with torch.no_grad():
        run = Run(schedule.program, inputs)
        for step in schedule.steps:
            if isinstance(step, ExternCall):
                run.call(step)
            else:
                for group in step.parts:
                    _run_group(run, group, tree_of(group))
        return tuple(run.output(output) for output in schedule.program.outputs)


def _run_group(run: Run, group: Group, tree: Tree) -> None:
    """Allocate the buffers that the group stores, then run the tree."""
    buffers = run.program.buffers
    flat = {name: storage_of(t, buffers[name], run.symbols) for name, t in run.env.items()
            if name in buffers and t.layout is torch.strided}  # fmt: skip
    for nest in group.nests:
        if nest.buffer in group.stored:
            result = empty_for(buffers[nest.buffer], run.symbols)
            if isinstance(nest, Scatter):
                result.copy_(run.env[nest.base])
            run.env[nest.buffer] = result
            flat[nest.buffer] = storage_of(result, buffers[nest.buffer], run.symbols)
    run_tree(tree, flat, run.symbols)


def storage_of(tensor: torch.Tensor, buffer: Buffer, symbols: Symbols) -> torch.Tensor:
    """The storage of a buffer as a flat tensor; flat indices start at its first element."""
    start = tensor.storage_offset() - concrete(buffer.layout.offset, symbols)
    room = tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1) - start
    return tensor.as_strided((max(room, 0),), (1,), start)


def run_tree(
    tree: Tree,
    buffers: Mapping[str, torch.Tensor],
    symbols: Symbols,
    on_iteration: Callable[[], None] = lambda: None,
) -> None:
    """Run the tree on flat buffers, and write to them.

    `on_iteration` is called before each iteration that is not vectorized; it may raise.
    """
    _State(symbols, on_iteration, ChainMap(dict(buffers))).body(tree)


@dataclass
class _State:
    """The state of a running body: arrays, values, aliases of array elements, loop variables."""

    symbols: Symbols
    on_iteration: Callable[[], None]
    arrays: ChainMap[str, torch.Tensor]
    values: ChainMap[str, torch.Tensor] = field(default_factory=ChainMap)
    held: ChainMap[str, ElementAlias | None] = field(default_factory=ChainMap)
    positions: ChainMap[str, Any] = field(default_factory=ChainMap)
    masked: bool = False

    def inside(self, **here: Any) -> _State:
        """The state for a nested body, with these loop variables."""
        names = ("arrays", "values", "held", "positions")
        inner = replace(self, **{name: getattr(self, name).new_child() for name in names})
        inner.positions.update(here)
        return inner

    def body(self, body: Tree) -> None:
        for stmt in body:
            self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let(temp, value):
                self.define(temp.name, self.value(value))
            case Store():
                self.store(stmt)
            case Init():
                self.start(stmt)
            case Accumulate():
                self.accumulate(stmt)
            case When():
                self.when(stmt)
            case Loop():
                self.loop(stmt)
            case If(mask, body):
                if bool(self.value(mask)):
                    self.inside().body(body)
            case _:
                self.pass_statement(stmt)

    def pass_statement(self, stmt: Local | ElementAlias | Assign | Call | Bound | Check) -> None:
        match stmt:
            case Local(name, dtype, shape):
                self.arrays[name] = torch.zeros(shape, dtype=dtype)
                self.held[name] = None
            case ElementAlias(name):
                self.held[name] = stmt
            case Assign(name, value):
                self.set(name, self.value(value))
            case Call():
                self.call(stmt)
            case Bound(name):
                self.positions[name.name] = self.bound(stmt)
            case Check(value, size):
                self.check(self.value(value), size)

    # ---- names -------------------------------------------------------------------------------

    def define(self, name: str, value: torch.Tensor) -> None:
        """Define a name in the innermost body; if it is an alias, set the array element."""
        if self.held.get(name) is not None:
            self.set(name, value)
        else:
            self.values[name] = value

    def set(self, name: str, value: torch.Tensor) -> None:
        held = self.held.get(name)
        if held is not None:
            array = self.arrays[held.array]
            array[self.at(held.at)] = value.to(array.dtype)
            return
        scope = next((m for m in self.values.maps if name in m), self.values.maps[0])
        scope[name] = value

    def get(self, name: str) -> torch.Tensor:
        held = self.held.get(name)
        return self.values[name] if held is None else self.arrays[held.array][self.at(held.at)]

    def at(self, index: tuple[Index, ...]) -> tuple[Any, ...]:
        return tuple(self.index(i) for i in index)

    # ---- values ------------------------------------------------------------------------------

    def value(self, expr: Expr) -> torch.Tensor:
        match expr:
            case Temp(name):
                return self.get(name)
            case Const(value, dtype):
                return torch.tensor(value, dtype=dtype)
            case SizeValue(size, dtype):
                return torch.tensor(concrete(size, self.symbols), dtype=dtype)
            case IndexValue(index, dtype):
                return torch.as_tensor(self.index(index)).to(dtype)
            case Load(buffer, index):
                return self.load(self.arrays[buffer], index)
            case Op(name, args, dtype):
                values = [self.value(arg) for arg in args]
                values = nonzero_divisor(name, values) if self.masked else values
                found = OPERATIONS[name](dtype, *values)
                return found.to(dtype) if found.dtype is not dtype else found
            case _:
                raise AssertionError(f"not in a loop tree: {type(expr).__name__}")

    def load(self, array: torch.Tensor, index: tuple[Index, ...]) -> torch.Tensor:
        places = self.at(index)
        if self.masked and len(places) == 1:
            if array.numel() == 0:
                return torch.zeros((), dtype=array.dtype)
            return array[torch.as_tensor(places[0]).clamp(0, array.numel() - 1)]
        return array[places]

    def index(self, index: Index) -> Any:
        total: Any = concrete(index.constant, self.symbols)
        for atom, factor in index.terms:
            total = total + self.atom(atom) * concrete(factor, self.symbols)
        return total

    def atom(self, atom: Any) -> Any:
        if isinstance(atom, Axis):
            return self.positions[atom.name]
        if isinstance(atom, Gathered):
            place = self.value(atom.value).to(torch.int64)
            inside = (place >= 0) & (place < concrete(atom.size, self.symbols))
            return torch.where(inside, place, torch.zeros_like(place))
        dividend, divisor = self.index(atom.dividend), concrete(atom.divisor, self.symbols)
        return dividend // divisor if isinstance(atom, Quotient) else dividend % divisor

    # ---- statements --------------------------------------------------------------------------

    def store(self, stmt: Store) -> None:
        array, place = self.arrays[stmt.buffer], self.index(stmt.index)
        value = self.value(stmt.value)
        if array.numel() == 0:
            return
        if stmt.kind == "store":
            array[place] = value.to(array.dtype)
            return
        places = torch.as_tensor(place).reshape(-1)
        scatter_into(array, places, value.expand(places.shape).to(array.dtype), stmt.kind)

    def when(self, stmt: When) -> None:
        mask, inside = self.value(stmt.mask), self.inside()
        inside.masked = True
        inside.body(stmt.body)
        value = torch.where(mask, inside.value(stmt.value), self.value(stmt.other))
        self.define(stmt.result.name, value)

    def check(self, value: torch.Tensor, size: tuple[Size, ...]) -> None:
        if self.masked:
            return
        if not size and bool((value == 0).any()):
            raise ZeroDivisionError("an integer is divided by zero")
        outside = [(value < 0) | (value >= concrete(length, self.symbols)) for length in size]
        if any(bool(found.any()) for found in outside):
            raise IndexError(f"index out of range in a dimension of size {size[0]}")

    def bound(self, bound: Bound) -> Any:
        match bound.value:
            case Index() as index:
                return self.index(index)
            case Minimum(first, second):
                return min(self.index(first), self.index(second))
            case LastFullBlock(begin, end, width):
                start = self.index(begin)
                return start + (self.index(end) - start) // width * width
            case PartBound(size, part, count, line, end):
                length, number = concrete(size, self.symbols), self.positions[part.name]
                if end and number == count - 1:
                    return length
                return length * (number + end) // count // line * line

    # ---- accumulators ------------------------------------------------------------------------

    def start(self, init: Init) -> None:
        kind = init.kind
        first = torch.tensor(neutral(NEUTRAL.get(kind, kind), init.dtype), dtype=init.dtype)
        values = [torch.tensor(0), first] if kind in POSITIONS else [first]
        values = [self.value(value) for value in init.start] or values
        for name, value in zip((init.name, best_of(init.name)), values, strict=False):
            self.define(name, value)

    def accumulate(self, stmt: Accumulate) -> None:
        """One value, or the values of all iterations of a vectorized loop."""
        value = self.value(stmt.value)
        if stmt.kind in POSITIONS:
            self.accumulate_extreme(stmt, value)
            return
        value = value != value if stmt.kind == "nan" else value
        along = self.width if self.held.get(stmt.name) is None else None
        if along is not None:
            value = _reduced(stmt.kind, value.expand(along))
        self.set(stmt.name, _combined(stmt.kind, self.get(stmt.name), value))

    @property
    def width(self) -> int | None:
        """The number of iterations of the current vectorized loop."""
        found = self.positions.get(WIDTH)
        return None if found is None else int(found)

    def accumulate_extreme(self, stmt: Accumulate, value: torch.Tensor) -> None:
        if stmt.found is not None:
            place = self.value(stmt.found)
        else:
            assert stmt.position is not None, "an extreme has a position"
            place = torch.as_tensor(self.index(stmt.position))
        if self.width is not None and self.held.get(stmt.name) is None:
            first = REDUCERS[stmt.kind](value.expand(self.width))
            value, place = value.expand(self.width)[first], place.expand(self.width)[first]
        self.update_extreme(stmt, value, place)

    def update_extreme(self, stmt: Accumulate, value: torch.Tensor, place: torch.Tensor) -> None:
        best = self.get(best_of(stmt.name))
        better = value < best if stmt.kind in ("argmin", "argmin_last") else value > best
        last = stmt.kind in ("argmax_last", "argmin_last")
        better = better | (value == best) if last else better
        new, old = value != value, best != best
        better = (better & ~old) | (new & (~old | last))
        self.set(best_of(stmt.name), torch.where(better, value, best))
        self.set(stmt.name, torch.where(better, place, self.get(stmt.name)))

    # ---- loops -------------------------------------------------------------------------------

    def loop(self, loop: Loop) -> None:
        begin, end = int(self.index(loop.begin)), int(self.index(loop.stop))
        if begin >= end:
            return
        if loop.kind is LoopKind.BISECT:
            self.search(loop, end)
        elif is_innermost(loop) and loop.kind in (*AT_ONCE, LoopKind.REDUCE):
            places = torch.arange(begin, end, loop.step)
            self.inside(**{loop.axis.name: places, WIDTH: len(places)}).body(loop.body)
        else:
            for position in range(begin, end, loop.step):
                self.on_iteration()
                self.inside(**{loop.axis.name: position}).body(loop.body)

    def search(self, loop: Loop, high: int) -> None:
        low = 0
        (acc,) = (stmt for stmt in loop.body if isinstance(stmt, Accumulate))
        while low < high:
            middle = low + (high - low) // 2
            inside = self.inside(**{loop.axis.name: middle})
            inside.body(tuple(stmt for stmt in loop.body if stmt is not acc))
            holds = bool(inside.value(acc.value))
            low, high = (low, middle) if holds else (middle + 1, high)
        self.set(acc.name, torch.tensor(low))

    # ---- header functions --------------------------------------------------------------------

    def call(self, stmt: Call) -> None:
        match stmt.function, stmt.args:
            case "lab_fetch", _:
                return
            case ("lab_stream" | "lab_stream_lines" | "lab_widen" | "lab_narrow"), (to, source, n):
                count = int(self.index(n)) if isinstance(n, Index) else 0
                self.memory(to)[:count] = self.memory(source)[:count].to(self.memory(to).dtype)
            case "lab_transpose", (to, width, source, stride, columns, rows):
                array, memory = self.memory(to), self.memory(source)
                given = (width, stride, columns, rows)
                lengths = (self.index(n) for n in given if isinstance(n, Index))
                wide, step, across, down = map(int, lengths)
                taken = memory.as_strided((down, across), (1, step), memory.storage_offset())
                array.as_strided((down, across), (wide, 1), array.storage_offset()).copy_(taken)
            case "lab_running_sum", (Temp(name), to, n):
                count = int(self.index(n)) if isinstance(n, Index) else 0
                memory = self.memory(to)
                memory[:count] = memory[:count].cumsum(0) + self.get(name)
                self.set(stmt.result, memory[count - 1].clone())
            case _:
                raise AssertionError(f"unknown header function: {stmt.function}")

    def memory(self, given: Address | Index | Temp) -> torch.Tensor:
        assert isinstance(given, Address), "memory has an address"
        return self.arrays[given.buffer][int(self.index(given.index)) :]


def _reduced(kind: str, values: torch.Tensor) -> torch.Tensor:
    """Reduce the values along the last dimension."""
    match kind:
        case "nan":
            return values.any(-1)
        case "greatest" | "least":  # ignoring NaN
            end = neutral(NEUTRAL[kind], values.dtype)
            return REDUCERS[NEUTRAL[kind]](torch.where(values == values, values, end))
        case "logsumexp":
            return torch.logsumexp(values, -1)
    return REDUCERS[kind](values)


def _combined(kind: str, old: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    both = torch.broadcast_tensors(old, value.to(old.dtype))
    return _reduced(kind, torch.stack(both, -1))
