"""Check that a loop tree is legal; tests run this after every pass.

A name is defined before it is used, and has one meaning in its scope. Nested loops do not share an
axis. A vector loop contains no loop. Local arrays are declared, and are accessed with one index per
dimension.

Inductor has no such check; it relies on the C++ compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Assign,
    Bound,
    Call,
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
from inductor_lab.compiler.codegen.tree.visit import expressions, places, temps_read
from inductor_lab.compiler.ir.expr import Expr, Load
from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.ir.ops import POSITIONS


class InvalidTree(AssertionError):
    """A pass, or the builder, produced an invalid tree."""


@dataclass(frozen=True)
class _Scope:
    """The names that are defined at a statement: loop variables, temps, accumulators with their
    kinds, arrays with their numbers of dimensions."""

    axes: frozenset[str] = frozenset()
    temps: frozenset[str] = frozenset()
    kinds: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, int] = field(default_factory=dict)


def verify_tree(tree: Tree) -> None:
    """Raise InvalidTree with all errors found."""
    wrong = list(_body(tree, _Scope()))
    if wrong:
        raise InvalidTree("\n".join(wrong))


def _body(body: Tree, scope: _Scope) -> Iterator[str]:
    for stmt in body:
        yield from _uses(stmt, scope)
        match stmt:
            case Loop(axis, body=inside):
                if axis.name in scope.axes:
                    yield f"a loop over {axis.name} inside another loop over {axis.name}"
                if stmt.kind is LoopKind.VECTOR and any(isinstance(s, Loop) for s in inside):
                    yield f"a loop inside the vector loop over {axis.name}"
                yield from _body(inside, replace(scope, axes=scope.axes | {axis.name}))
            case When(body=inside) | If(body=inside):
                yield from _body(inside, scope)
        if isinstance(stmt, When):
            known = {s.temp.name if isinstance(s, Let) else s.result.name
                     for s in stmt.body if isinstance(s, Let | When)}  # fmt: skip
            inner = replace(scope, temps=scope.temps | known)
            yield from _unknown(stmt, (stmt.value,), inner)
        scope = _after(stmt, scope)


def _after(stmt: Stmt, scope: _Scope) -> _Scope:
    """The scope after a statement."""
    match stmt:
        case Let(temp) | When(result=temp):
            return replace(scope, temps=scope.temps | {temp.name})
        case Init(name, kind):
            names = {name, best_of(name)} if kind in POSITIONS else {name}
            return replace(scope, temps=scope.temps | names, kinds={**scope.kinds, name: kind})
        case ElementAlias(name):
            return replace(scope, temps=scope.temps | {name})
        case Local(name, _, shape):
            return replace(scope, arrays={**scope.arrays, name: len(shape)})
        case Bound(name):
            return replace(scope, axes=scope.axes | {name.name})
        case _:
            return scope


def _uses(stmt: Stmt, scope: _Scope) -> Iterator[str]:
    """Errors of this statement: names that it uses and that are not defined."""
    if not isinstance(stmt, When):
        yield from _unknown(stmt, expressions(stmt), scope)
    else:
        yield from _unknown(stmt, (stmt.mask, stmt.other), scope)
    for index in (*places(stmt), *_bounds(stmt)):
        yield from _positions(index, scope)
    match stmt:
        case Accumulate(name) | Assign(name) if name not in scope.temps:
            yield f"accumulator {name} is not initialized"
        case Accumulate(name, kind) if scope.kinds.get(name, kind) != kind:
            yield f"accumulator {name} is a {scope.kinds[name]}, not a {kind}"
        case ElementAlias(name, array, at) if scope.arrays.get(array) != len(at):
            yield f"{name} aliases {array} with {len(at)} indices; local arrays: {scope.arrays}"
        case Store(buffer) if scope.arrays.get(buffer, 1) != 1:
            yield f"a store to {buffer} has one index, but it has {scope.arrays[buffer]} dimensions"


def _unknown(stmt: Stmt, values: tuple[Expr, ...], scope: _Scope) -> Iterator[str]:
    """Errors of values: undefined temps and loop variables, wrong numbers of indices."""
    of_values = {node for value in values for node in value.walk()}
    for temp in temps_read(stmt):
        inside = isinstance(stmt, When) and temp not in of_values
        if temp.name not in scope.temps and not inside:
            yield f"{temp.name} is read but not defined"
    for node in of_values:
        for index in node.indices():
            yield from _positions(index, scope)
        if isinstance(node, Load) and scope.arrays.get(node.buffer, 1) != len(node.index):
            yield f"{node.buffer} is read with the wrong number of indices: {len(node.index)}"


def _positions(index: Index, scope: _Scope) -> Iterator[str]:
    for axis in index.axes():
        if axis.name not in scope.axes:
            yield f"the loop variable {axis.name} is used outside its loop"


def _bounds(stmt: Stmt) -> tuple[Index, ...]:
    """The indices in a statement's loop bounds and arguments."""
    match stmt:
        case Loop(begin=begin):
            return (begin, stmt.stop)
        case Bound(value=Index() as value):
            return (value,)
        case Bound(value=Minimum(first, second) | LastFullBlock(first, second)):
            return (first, second)
        case Bound(value=PartBound(part=part)):
            return (Index.of(part),)
        case Call(args=args):
            return tuple(a for a in args if isinstance(a, Index))
        case _:
            return ()
