"""Inline a temp that is used once, by a statement of the same FX node.

    t0 = in0[i0]                   t0 = in0[i0]
    t1 = neg(t0)      # sigmoid
    t2 = exp(t1)      # sigmoid →
    t3 = add(t2, 1)   # sigmoid
    t4 = 1 / t3       # sigmoid    t1 = 1 / add(exp(neg(t0)), 1)     # sigmoid

Then a line of code computes one FX node.  Loads are not inlined: they must stay before the stores.
An unused operation is removed, unless it may raise.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Init,
    Let,
    Loop,
    Stmt,
    Store,
    Tree,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import temps_read, walk, with_values
from inductor_lab.compiler.ir.expr import (
    Expr,
    IndexValue,
    Op,
    Origins,
    Temp,
    integer_divisors,
    map_expr,
)
from inductor_lab.compiler.ir.index import Index

LONGEST = 6
"""Maximum operations in one expression; longer expressions are easier to read as two lines."""


def tidy(body: Tree) -> Tree:
    """Inline single-use values, then renumber the temps in order of appearance."""
    return renumber(inline_single_use(body))


def inline_single_use(body: Tree) -> Tree:
    """Inline single-use values."""
    uses = Counter(temp.name for stmt in walk(body) for temp in temps_read(stmt))
    return _join(body, uses)


def renumber(body: Tree) -> Tree:
    """Renumber the temps in order of appearance."""
    return _Renumber().body(body)


def _join(body: Tree, uses: Counter[str]) -> Tree:
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
            case Let(temp, Op() as value) if not (uses[temp.name] or any(integer_divisors(value))):
                continue
            case Let(temp, value, origins):
                new = replace(stmt, value=expand(value, origins))
                kept.append(new)
                if temp.name in lets:
                    lets[temp.name] = new
            case Store(value=value, origins=origins) | Accumulate(value=value, origins=origins):
                kept.append(replace(stmt, value=expand(value, origins)))
            case When() | Loop():
                kept.append(replace(stmt, body=_join(stmt.body, uses)))
            case _:
                kept.append(stmt)
    return tuple(s for s in kept if not (isinstance(s, Let) and s.temp.name in joined))


def _operations(value: Expr) -> int:
    return sum(isinstance(node, Op) for node in value.walk())


class _Renumber:
    """Names temps t0, t1, .. and accumulators acc0, acc1, .. in the order of their definition."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.counts: Counter[str] = Counter()

    def body(self, body: Tree) -> Tree:
        return tuple(self.stmt(stmt) for stmt in body)

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Let(temp, value):
                value = self.expr(value)
                return replace(stmt, value=value, temp=self.define(temp, "t"))
            case Init(name):
                self.names[name] = self.next("acc")
                return replace(stmt, name=self.names[name])
            case Accumulate(name):
                return self.values(replace(stmt, name=self.names[name]))
            case When(mask, body, result, value, other):
                mask, other = self.expr(mask), self.expr(other)
                body = self.body(body)
                value = self.expr(value)
                defined = self.define(result, "t")
                return replace(stmt, mask=mask, body=body, value=value, other=other, result=defined)
            case Loop(body=body):
                return replace(stmt, body=self.body(body))
            case _:
                return self.values(stmt)

    def values(self, stmt: Stmt) -> Stmt:
        return with_values(stmt, self.expr, self.index)

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
