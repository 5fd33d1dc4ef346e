"""Which temps deserve a name: a value used once, for the same FX node, becomes part of its user.

    t0 = in0[i0]                   t0 = in0[i0]
    t1 = neg(t0)      # sigmoid
    t2 = exp(t1)      # sigmoid →
    t3 = add(t2, 1)   # sigmoid
    t4 = 1 / t3       # sigmoid    t1 = 1 / add(exp(neg(t0)), 1)     # sigmoid

So a line of code computes one FX node.  Loads keep their line: they must stay before the stores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from inductor_lab.codegen.tree import Accumulate, Init, Let, Loop, Stmt, Store, When
from inductor_lab.ir.expr import Expr, IndexValue, Op, Origins, Temp, map_expr, values_in
from inductor_lab.ir.index import Index
from inductor_lab.ir.ops import EXPENSIVE_FLOPS, OPS

LONGEST = 6
"""Operations in one expression; more than that reads better as two lines."""


def tidy(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Join single-use values with their user, then number the temps in the order they appear."""
    uses = Counter(temp.name for stmt in walk(body) for temp in temps_read(stmt))
    return _Renumber().body(_join(body, uses))


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement of a tree, outermost and first ones first."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Loop | When):
            yield from walk(stmt.body)


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The values of this very statement (not of the statements inside it)."""
    match stmt:
        case Let(value=value) | Store(value=value) | Accumulate(value=value):
            return (value,)
        case When(mask=mask, value=value, other=other):
            return (mask, value, other)
        case Init() | Loop():
            return ()


def nodes_in(body: tuple[Stmt, ...]) -> Iterator[Expr]:
    """Every node of the values in a tree."""
    return (node for stmt in walk(body) for value in expressions(stmt) for node in value.walk())


def has_expensive(body: tuple[Stmt, ...]) -> bool:
    """Is there an operation in a tree that takes much longer than an addition?"""
    ops = (node.name for node in nodes_in(body) if isinstance(node, Op))
    return any(OPS[name].flops >= EXPENSIVE_FLOPS for name in ops)


def places(stmt: Stmt) -> tuple[Index, ...]:
    """The indices of this very statement that are not inside its values."""
    match stmt:
        case Store(index=index):
            return (index,)
        case Accumulate(position=Index() as position):
            return (position,)
        case _:
            return ()


def temps_read(stmt: Stmt) -> Iterator[Temp]:
    """Temps that this very statement reads, in values and in gathered indices.

    Each use counts, so a value that an expression holds twice comes twice (`walk` would not).
    """
    waiting, indices = list(expressions(stmt)), list(places(stmt))
    while waiting:
        value = waiting.pop()
        if isinstance(value, Temp):
            yield value
        waiting += value.children()
        indices += value.indices()
    for index in indices:
        yield from (node for node in values_in(index) if isinstance(node, Temp))


def _join(body: tuple[Stmt, ...], uses: Counter[str]) -> tuple[Stmt, ...]:
    lets = {
        s.temp.name: s
        for s in body
        if isinstance(s, Let) and uses[s.temp.name] == 1 and isinstance(s.value, Op | IndexValue)
    }
    joined: set[str] = set()

    def expand(value: Expr, origins: Origins) -> Expr:
        room = LONGEST - _operations(value)

        def inline(node: Expr) -> Expr:
            nonlocal room
            if not isinstance(node, Temp):
                return map_expr(node, inline, lambda index: index)
            let = lets.get(node.name)
            if let is None or not let.origins <= origins:
                return node
            taken = _operations(let.value)
            if taken > room:
                return node
            room -= taken
            joined.add(node.name)
            return let.value

        return inline(value)

    kept: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Let(temp, value, origins):
                new = replace(stmt, value=expand(value, origins))
                kept.append(new)
                if temp.name in lets:
                    lets[temp.name] = new
            case Store(value=value, origins=origins) | Accumulate(value=value, origins=origins):
                kept.append(replace(stmt, value=expand(value, origins)))
            case When() | Loop():
                kept.append(replace(stmt, body=_join(stmt.body, uses)))
            case Init():
                kept.append(stmt)
    return tuple(s for s in kept if not (isinstance(s, Let) and s.temp.name in joined))


def _operations(value: Expr) -> int:
    return sum(isinstance(node, Op) for node in value.walk())


class _Renumber:
    """Names temps t0, t1, .. and accumulators acc0, acc1, .. in the order of their definition."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.counts: Counter[str] = Counter()

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(self.stmt(stmt) for stmt in body)

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Let(temp, value):
                value = self.expr(value)
                return replace(stmt, value=value, temp=self.define(temp, "t"))
            case Store(_, index, value):
                return replace(stmt, index=self.index(index), value=self.expr(value))
            case Init(name):
                self.names[name] = self.next("acc")
                return replace(stmt, name=self.names[name])
            case Accumulate(name, _, value, position):
                place = None if position is None else self.index(position)
                return replace(stmt, name=self.names[name], value=self.expr(value), position=place)
            case When(mask, body, result, value, other):
                mask, other = self.expr(mask), self.expr(other)
                body = self.body(body)
                value = self.expr(value)
                defined = self.define(result, "t")
                return replace(stmt, mask=mask, body=body, value=value, other=other, result=defined)
            case Loop(body=body):
                return replace(stmt, body=self.body(body))

    def define(self, temp: Temp, prefix: str) -> Temp:
        self.names[temp.name] = self.next(prefix)
        return Temp(self.names[temp.name], temp.dtype)

    def next(self, prefix: str) -> str:
        self.counts[prefix] += 1
        return f"{prefix}{self.counts[prefix] - 1}"

    def expr(self, value: Expr) -> Expr:
        if isinstance(value, Temp):
            return Temp(self.names.get(value.name, value.name), value.dtype)
        return map_expr(value, self.expr, self.index)

    def index(self, index: Index) -> Index:
        return index if index.is_affine else index.substitute({}, self.expr)
