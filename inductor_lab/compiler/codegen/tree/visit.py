"""Functions that visit or rebuild loop trees, shared by all passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Address,
    Assign,
    Call,
    Check,
    If,
    Init,
    Let,
    Loop,
    Stmt,
    Store,
    Tree,
    When,
)
from inductor_lab.compiler.ir.expr import Expr, Load, Temp, values_in
from inductor_lab.compiler.ir.index import Index


def walk(body: Tree) -> Iterator[Stmt]:
    """Every statement of a tree, in preorder."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Loop | When | If):
            yield from walk(stmt.body)


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The values of this statement itself (not of the statements inside it)."""
    match stmt:
        case Accumulate(value=value, found=found):
            return (value,) if found is None else (value, found)
        case Let(value=value) | Store(value=value):
            return (value,)
        case When(mask=mask, value=value, other=other):
            return (mask, value, other)
        case Assign(value=value) | Check(value=value) | If(mask=value):
            return (value,)
        case Init(start=start):
            return start
        case Call(args=args):
            return tuple(arg for arg in args if isinstance(arg, Temp))
        case _:
            return ()


def places(stmt: Stmt) -> tuple[Index, ...]:
    """The indices of this statement itself that are not inside its values."""
    match stmt:
        case Store(index=index):
            return (index,)
        case Accumulate(position=Index() as position):
            return (position,)
        case Call(args=args):
            return tuple(arg.index for arg in args if isinstance(arg, Address))
        case _:
            return ()


def nodes_in(body: Tree) -> Iterator[Expr]:
    """Every node of the values in a tree."""
    return (node for stmt in walk(body) for value in expressions(stmt) for node in value.walk())


def loads_in(body: Tree) -> Iterator[Load]:
    """Every load of a tree."""
    return (node for node in nodes_in(body) if isinstance(node, Load))


def temps_read(stmt: Stmt) -> Iterator[Temp]:
    """The temps that this statement itself reads, in values and in gathered indices.

    Each use is yielded: a temp that an expression contains twice comes twice (unlike in `walk`).
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


def read_by(stmts: Iterable[Stmt]) -> set[str]:
    """The names of the temps that the statements, and the statements inside them, read."""
    return {temp.name for stmt in walk(tuple(stmts)) for temp in temps_read(stmt)}


def defined_by(stmt: Stmt) -> Temp | None:
    """The temp that this statement itself defines."""
    match stmt:
        case Let(temp=temp) | When(result=temp):
            return temp
        case _:
            return None


def drop_dead_values(body: Tree) -> Tree:
    """The tree without dead values."""
    read: set[str] = set()
    kept: list[Stmt] = []
    for stmt in reversed(body):
        made = defined_by(stmt)
        plain = not isinstance(stmt, When) or all(isinstance(s, Let) for s in stmt.body)
        if made is not None and made.name not in read and plain:
            continue
        read |= read_by((stmt,))
        kept.append(stmt)
    return tuple(reversed(kept))


# ---- loops -------------------------------------------------------------------------------------


def is_innermost(loop: Loop) -> bool:
    return not any(isinstance(stmt, Loop) for stmt in walk(loop.body))


def with_body(loop: Loop, body: Tree) -> Loop:
    """The loop with a new body; the same object if the statements are the same."""
    return loop if same_statements(body, loop.body) else replace(loop, body=body)


def old_if_same(new: Tree, old: Tree) -> Tree:
    """The old tree object if the new tree has the same statement objects, else the new one."""
    return old if same_statements(new, old) else new


def same_statements(new: Tree, old: Tree) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


# ---- values ------------------------------------------------------------------------------------


def with_values(stmt: Stmt, value: Callable[[Expr], Expr], index: Callable[[Index], Index]) -> Stmt:
    """Map every value and every index of a statement and of the statements inside it."""

    def inside(body: Tree) -> Tree:
        return tuple(with_values(s, value, index) for s in body)

    match stmt:
        case Let() | Assign() | Check():
            return replace(stmt, value=value(stmt.value))
        case Store():
            return replace(stmt, index=index(stmt.index), value=value(stmt.value))
        case Accumulate(position=position, found=found):
            at = None if position is None else index(position)
            other = None if found is None else value(found)
            return replace(stmt, value=value(stmt.value), position=at, found=other)
        case Init(start=start) if start:
            return replace(stmt, start=tuple(map(value, start)))
        case When(mask, body, _, result, other):
            mask, body, other = value(mask), inside(body), value(other)
            return replace(stmt, mask=mask, body=body, value=value(result), other=other)
        case Loop(body=body):
            return replace(stmt, body=inside(body))
        case If(mask, body):
            return replace(stmt, mask=value(mask), body=inside(body))
        case _:
            return stmt


def rename_accumulators(body: Tree, names: dict[str, str]) -> Tree:
    """Rename accumulators that the tree feeds."""

    def statement(stmt: Stmt) -> Stmt:
        match stmt:
            case Accumulate(name=name):
                return replace(stmt, name=names.get(name, name))
            case Loop(body=inside) | If(body=inside):
                return replace(stmt, body=tuple(map(statement, inside)))
            case _:
                return stmt

    return tuple(map(statement, body))
