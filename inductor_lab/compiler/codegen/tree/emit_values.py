"""Emit the statements that compute a nest's expression.

Each value is computed once, and hoisted to the outermost loop where it is invariant. A `Load` of an
inlined producer becomes the producer's body at that index. Memo tables, by (buffer, index) and by
operation, keep the result a sequence of small `Let`s; without them its size doubles at every use.

Inductor: `CSEProxy` and `CSE` in `codegen/common.py`; it leaves hoisting to the C++ compiler.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import torch

from inductor_lab.compiler.codegen.tree.flat_offsets import recomputable
from inductor_lab.compiler.codegen.tree.loop_tree import Let, Stmt, When
from inductor_lab.compiler.codegen.tree.value_ranges import fold_by_range, index_of
from inductor_lab.compiler.codegen.tree.visit import expressions, read_by, walk
from inductor_lab.compiler.ir.expr import (
    NO_ORIGINS,
    Const,
    Expr,
    IndexValue,
    Load,
    Masked,
    Op,
    Origins,
    SizeValue,
    Temp,
    integer_divisors,
    values_in,
)
from inductor_lab.compiler.ir.index import (
    Axis,
    Index,
    add_sizes,
    gathered_in,
    is_nonnegative,
    within,
)
from inductor_lab.compiler.ir.interpret import evaluate
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group


@dataclass
class Scope:
    """A body under construction.  `guard` marks the body of a When: its loads must stay inside."""

    axes: tuple[Axis, ...]
    guard: bool = False
    body: list[Stmt] = field(default_factory=list)
    memo: dict[Hashable, Expr] = field(default_factory=dict)


class ValueEmitter:
    """Converts expressions over buffers to temps, and emits the statements that compute them."""

    def __init__(self, group: Group, buffers: Mapping[str, Buffer]) -> None:
        self.group = group
        self.buffers = buffers
        self.recomputed = recomputable(group)
        self.scopes: list[Scope] = []
        self.registers: dict[str, Temp] = {}
        self._depth: dict[str, int] = {}
        self._count = 0

    # ---- scopes ------------------------------------------------------------------------------

    def open(self, *axes: Axis, guard: bool = False) -> None:
        self.scopes.append(Scope(axes, guard))

    def close(self) -> tuple[Stmt, ...]:
        return tuple(self.scopes.pop().body)

    def emit(self, stmt: Stmt) -> None:
        self.scopes[-1].body.append(stmt)

    def fresh(self, dtype: torch.dtype, prefix: str = "t") -> Temp:
        self._count += 1
        return Temp(f"{prefix}{self._count - 1}", dtype)

    def bind_register(self, buffer: str, temp: Temp) -> None:
        """From here to the end of this scope, `temp` holds the value of the reduction `buffer`."""
        self.registers[buffer] = temp
        self._depth[temp.name] = len(self.scopes) - 1

    # ---- values ------------------------------------------------------------------------------

    def value(self, expr: Expr, origins: Origins = NO_ORIGINS) -> Expr:
        """An atom (temp, constant, size, affine position) that holds the value of `expr`.

        `origins` are the origins of the nest of `expr`, for operations that have none themselves.
        """
        match expr:
            case Const() | SizeValue() | Temp():
                return expr
            case Load(buffer, index):
                return self._load(expr, buffer, index, origins)
            case IndexValue(index, dtype):
                place = self.resolved(index, origins)
                if isinstance(place.constant, int) and not (place.terms or dtype.is_floating_point):
                    return Const(place.constant, dtype)
                if place.is_affine:
                    return IndexValue(place, dtype)
                depth = max(self._index_depth(place), self._guard_depth())  # it may be out of range
                return self._bind(IndexValue(place, dtype), depth, origins)
            case Op():
                return self._find(("op", expr)) or self._op(expr, expr.origins or origins)
            case Masked():
                return self._masked(expr, expr.origins or origins)

    def _op(self, expr: Op, origins: Origins) -> Expr:
        atoms = tuple(self.value(a, origins) for a in expr.args)
        operation = Op(expr.name, atoms, expr.dtype, origins)
        divides = any(integer_divisors(operation))
        if not divides and all(isinstance(atom, Const) for atom in atoms):
            return Const(evaluate(operation, (), {}).item(), expr.dtype)
        known = fold_by_range(operation)
        if known is not None:
            return known
        depth = max((self._trap_depth() if divides else 0, *map(self._atom_depth, atoms)))
        atom = self._bind(operation, depth, origins)
        self.scopes[depth].memo["op", expr] = atom
        return atom

    def value_at(self, buffer: str, index: tuple[Index, ...]) -> Expr:
        """The value of a recomputable producer at `index`.

        The values it reads are computed first, with an explicit stack: a chain of a thousand
        operations must not exceed Python's recursion limit.
        """
        stack = [(buffer, index)]
        bodies: dict[tuple[str, tuple[Index, ...]], Expr] = {}
        while stack:
            key = stack[-1]
            if self._find(key) is not None:
                stack.pop()
                continue
            producer = self.recomputed[key[0]]
            first_visit = key not in bodies
            if first_visit:
                bodies[key] = producer.at(key[1])
                used = (place for node in bodies[key].walk() for place in node.indices())
                self._name_unused(key[1], used, producer.origins)
                missing = [k for k in self._unmasked_reads(bodies[key]) if self._find(k) is None]
                stack.extend(reversed(missing))
                if missing:
                    continue
            atom = self.value(bodies[key], producer.origins)
            self.scopes[self._atom_depth(atom)].memo[key] = atom
            stack.pop()
        found = self._find((buffer, index))
        assert found is not None, f"{buffer} has no value"
        return found

    def _name_unused(
        self, index: tuple[Index, ...], used: Iterable[Index], origins: Origins
    ) -> None:
        """Bind the gathered positions of `index` that are not in `used` to temps.

        Temps are bounds-checked, so these positions are checked although nothing uses them.
        """
        places = {atom for place in index for atom in gathered_in(place)}
        if places:
            for atom in places.difference(*map(gathered_in, used)):
                self.value(IndexValue(Index.of(atom), torch.int64), origins)

    def _unmasked_reads(self, expr: Expr) -> list[tuple[str, tuple[Index, ...]]]:
        """The recomputable values that `expr` reads unconditionally."""
        found: list[tuple[str, tuple[Index, ...]]] = []
        waiting = [expr]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Load) and node.buffer in self.recomputed:
                found.append((node.buffer, node.index))
            if isinstance(node, Masked):
                waiting.extend((node.mask, node.other))
            else:
                waiting.extend(node.children())
        return found

    def _load(self, load: Load, buffer: str, index: tuple[Index, ...], origins: Origins) -> Expr:
        if buffer in self.registers:
            return self.registers[buffer]
        if buffer in self.recomputed:
            return self.value_at(buffer, index)
        layout = self.buffers[buffer].layout
        flat = layout.element(index)
        self._name_unused(index, (flat,), origins)  # a stride may be 0
        place = self.resolved(flat, origins)
        depth = self._index_depth(place)
        loop = max((d for d, scope in enumerate(self.scopes) if scope.axes), default=0)
        sure = within(place, layout.storage_size) and not any(gathered_in(place))
        # a loop-invariant load that cannot be out of range is also hoisted out of guards
        stays = self._guard_depth(loop if depth < loop else None) if sure else self._trap_depth()
        depth = max(depth, stays)
        own = load.origins or self.buffers[buffer].origins
        return self._bind(Load(buffer, (place,), load.dtype, own), depth, own)

    def _masked(self, expr: Masked, origins: Origins) -> Expr:
        mask = self.value(expr.mask, origins)
        other = self.value(expr.other, origins)
        if isinstance(mask, Const):
            return self.value(expr.body, origins) if mask.value else other
        known = self._find(("masked", mask, expr.body, other))
        if known is not None:
            return known
        self.open(guard=True)
        value = self.value(expr.body, origins)
        body = self.close()
        if not body:
            chosen = Op("where", (mask, value, other), expr.dtype, origins)
            depth = max(map(self._atom_depth, chosen.args))
            return self._bind(chosen, depth, origins)
        result = self.fresh(expr.dtype)
        when = When(mask, body, result, value, other, origins)
        depth = self._depth[result.name] = max(self._guard_depth(), self._needs(when))
        self.scopes[depth].body.append(when)
        self.scopes[depth].memo["masked", mask, expr.body, other] = result
        return result

    def _needs(self, when: When) -> int:
        """The depth of the innermost scope from which a When reads."""
        values = (value for stmt in walk((when,)) for value in expressions(stmt))
        depths = [self._axis_depth(axis) for value in values for axis in value.axes()]
        depths += map(self._depth.__getitem__, read_by((when,)))
        return max((d for d in depths if d < len(self.scopes)), default=0)

    def resolved(self, index: Index, origins: Origins) -> Index:
        """The index, with the values inside its gathered atoms computed."""
        if index.is_affine:
            return index
        sizes = {atom.value: atom.size for atom in gathered_in(index)}

        def position(inner: Expr) -> Expr | Index:
            atom = self.value(inner, origins)
            if isinstance(atom, Temp):
                return atom
            place = index_of(atom)
            if place is not None and within(place, sizes[inner]):
                return place
            depth = max(self._atom_depth(atom), self._guard_depth())
            return self._bind(atom, depth, origins)  # temps are bounds-checked

        return index.substitute({}, position)

    # ---- the scope of a value ----------------------------------------------------------------

    def _bind(self, value: Expr, depth: int, origins: Origins) -> Expr:
        known = self._find(value)
        if known is not None:
            return known
        temp = self.fresh(value.dtype)
        self._depth[temp.name] = depth
        self.scopes[depth].body.append(Let(temp, value, origins))
        self.scopes[depth].memo[value] = temp
        return temp

    def _find(self, key: Hashable) -> Expr | None:
        for scope in reversed(self.scopes):
            if key in scope.memo:
                return scope.memo[key]
        return None

    def _guard_depth(self, within: int | None = None) -> int:
        """The depth of the innermost guard (among the first `within` scopes)."""
        scopes = self.scopes[:within]
        return max((d for d, scope in enumerate(scopes) if scope.guard), default=0)

    def _trap_depth(self) -> int:
        """The depth of the innermost guard or possibly empty loop.

        Operations that may fail must stay inside it: outside, an unneeded division by zero would
        raise, and an unneeded load could be out of range.
        """
        axes = ((d, axis) for d, scope in enumerate(self.scopes) for axis in scope.axes)
        empty = (d for d, axis in axes if not is_nonnegative(add_sizes(axis.size, -1)))
        return max((self._guard_depth(), *empty))

    def _atom_depth(self, atom: Expr) -> int:
        match atom:
            case Temp(name):
                return self._depth[name]
            case IndexValue(index):
                return self._index_depth(index)
            case _:
                return 0

    def _index_depth(self, index: Index) -> int:
        depths = [self._axis_depth(axis) for axis in index.axes()]
        depths.extend(map(self._atom_depth, values_in(index)))
        return max(depths, default=0)

    def _axis_depth(self, axis: Axis) -> int:
        for depth, scope in enumerate(self.scopes):
            if axis in scope.axes:
                return depth
        raise AssertionError(f"axis {axis.name} is used outside its loop")
