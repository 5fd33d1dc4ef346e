"""Loops without masks: an innermost loop is cut where a comparison of its position changes.

    for i1 in 0 .. 1024:                         for i1 in 0 .. 512:
        t = 0                                        out[i1] = a[i1]
        if i1 < 512:  t = a[i1]            →     for i1 in 0 .. 512:
        if i1 >= 512: t = b[i1 - 512]                out[i1 + 512] = b[i1]
        out[i1] = t

So `cat` along the last dimension, `pad` and slices that are written to run at the speed of copies.
Masks of outer axes stay: they are the same for a whole inner loop.

Inductor has no counterpart: it leaves the masks to the C++ compiler.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from inductor_lab.codegen.tidy import temps_read, walk
from inductor_lab.codegen.tree import Let, Loop, LoopKind, Stmt, Store, When
from inductor_lab.ir.expr import Const, Expr, IndexValue, Op, Temp, map_expr
from inductor_lab.ir.index import Axis, Index

MOST_PIECES = 6
"""Beyond this the text grows more than the time shrinks."""

SHORTEST_LOOP = 64
"""Turns below which a mask costs next to nothing."""

FIRST_CHANGE = {"lt": (0,), "ge": (0,), "le": (1,), "gt": (1,), "eq": (0, 1), "ne": (0, 1)}
"""Where `position <op> v` changes its value, as distances from v."""


def split_loops(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The tree with every VECTOR loop cut at the constant bounds of its masks."""
    new: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.kind is LoopKind.VECTOR:
            new.extend(_pieces(stmt))
        elif isinstance(stmt, Loop):
            new.append(replace(stmt, body=split_loops(stmt.body)))
        else:
            new.append(stmt)
    return tuple(new)


def _pieces(loop: Loop) -> list[Loop]:
    size = loop.axis.size
    if not isinstance(size, int) or size < SHORTEST_LOOP:
        return [loop]
    cuts = sorted({cut for cut in _changes(loop) if 0 < cut < size})
    if not cuts or len(cuts) >= MOST_PIECES:
        return [loop]
    ends = [*cuts, size]
    return [_piece(loop, begin, end) for begin, end in zip([0, *cuts], ends, strict=True)]


def _changes(loop: Loop) -> set[int]:
    """Positions where a comparison has another value than one before."""
    found: set[int] = set()
    for stmt in walk(loop.body):
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            bound = _bound(stmt.value, loop.axis)
            if bound is not None:
                found |= {bound + step for step in FIRST_CHANGE[stmt.value.name]}
    return found


def _bound(op: Op, axis: Axis) -> int | None:
    """`v - k` if the operation compares `axis + k` with a constant v."""
    match op.args:
        case (IndexValue(index), Const(int() as value)) if op.name in FIRST_CHANGE:
            offset = index + Index.of(axis) * -1
            if not offset.terms and isinstance(offset.constant, int):
                return value - offset.constant
    return None


def _piece(loop: Loop, begin: int, end: int) -> Loop:
    """The loop from `begin` to `end`, counted from 0, with what is constant there put in."""
    axis = Axis(loop.axis.name, end - begin)
    shift = {loop.axis: Index.of(axis) + Index.constant_of(begin)}
    body = _Piece(loop.axis, begin, shift).body(loop.body)
    return Loop(axis, loop.kind, _needed(body))


class _Piece:
    """Rewrites statements for one piece; `values` are temps that are constants or other temps."""

    def __init__(self, axis: Axis, begin: int, shift: dict[Axis, Index]) -> None:
        self.axis, self.begin, self.shift = axis, begin, shift
        self.values: dict[str, Expr] = {}

    def body(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        new: list[Stmt] = []
        for stmt in stmts:
            new.extend(self.stmt(stmt))
        return tuple(new)

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Let(temp, value):
                known = self.expr(value)
                if isinstance(known, Const | Temp):
                    self.values[temp.name] = known
                    return ()
                return (replace(stmt, temp=self.renamed(temp), value=known),)
            case Store(_, index, value):
                return (replace(stmt, index=self.index(index), value=self.expr(value)),)
            case When(mask=mask):
                return self.when(stmt, self.expr(mask))
            case _:
                raise AssertionError(f"not in a vector loop: {type(stmt).__name__}")

    def when(self, stmt: When, mask: Expr) -> tuple[Stmt, ...]:
        if mask == Const(False, torch.bool):
            self.values[stmt.result.name] = self.expr(stmt.other)
            return ()
        body = self.body(stmt.body)
        value = self.expr(stmt.value)
        if mask == Const(True, torch.bool):
            self.values[stmt.result.name] = value
            return body
        other, result = self.expr(stmt.other), self.renamed(stmt.result)
        return (When(mask, body, result, value, other, stmt.origins),)

    def renamed(self, temp: Temp) -> Temp:
        """Each piece has temps of its own, so that uses can be counted by name."""
        new = Temp(f"{temp.name} from {self.begin}", temp.dtype)
        self.values[temp.name] = new
        return new

    def expr(self, value: Expr) -> Expr:
        if isinstance(value, Temp):
            return self.values.get(value.name, value)
        if isinstance(value, Op) and (bound := _bound(value, self.axis)) is not None:
            return Const(_holds(value.name, self.begin, bound), torch.bool)
        return _folded(map_expr(value, self.expr, self.index))

    def index(self, index: Index) -> Index:
        return index.substitute(self.shift, None if index.is_affine else self.expr)


def _holds(name: str, position: int, bound: int) -> bool:
    """Does the comparison hold at the first, and so at every position of a piece?"""
    return {
        "lt": position < bound,
        "ge": position >= bound,
        "le": position <= bound,
        "gt": position > bound,
        "eq": position == bound,
        "ne": position != bound,
    }[name]


def _folded(value: Expr) -> Expr:
    """Logic and choices with a constant in them."""
    match value:
        case Op("logical_and" | "bitwise_and", args) if value.dtype is torch.bool:
            return _without(args, True, value)
        case Op("logical_or" | "bitwise_or", args) if value.dtype is torch.bool:
            return _without(args, False, value)
        case Op("logical_not", (Const(known),)):
            return Const(not known, torch.bool)
        case Op("where", (Const(known), chosen, other)):
            return chosen if known else other
    return value


def _without(args: tuple[Expr, ...], neutral: bool, value: Expr) -> Expr:
    """An `and` without its True, an `or` without its False; decided by the opposite."""
    if Const(not neutral, torch.bool) in args:
        return Const(not neutral, torch.bool)
    rest = [a for a in args if a != Const(neutral, torch.bool)]
    if not rest:
        return Const(neutral, torch.bool)
    return value if len(rest) == len(args) else rest[0]


def _needed(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Without the values that nobody reads any more."""
    read: set[str] = set()
    kept: list[Stmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, Let) and stmt.temp.name not in read:
            continue
        read |= {temp.name for inner in walk((stmt,)) for temp in temps_read(inner)}
        kept.append(stmt)
    return tuple(reversed(kept))
