"""What a legal loop tree is; run after every pass in tests.

A name is known before it is used and has one meaning in its scope; loops do not take an axis twice;
vector lanes have no loops inside; local arrays are there, with as many indices as dimensions.

Inductor has none; C++ compilers tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Assign,
    Bound,
    Call,
    Held,
    If,
    Init,
    Least,
    Let,
    Local,
    Loop,
    LoopKind,
    Share,
    Stmt,
    Store,
    Tree,
    When,
    Whole,
    best_of,
)
from inductor_lab.compiler.codegen.tree.visit import expressions, places, temps_read
from inductor_lab.compiler.ir.expr import Expr, Load
from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.ir.ops import POSITIONS


class InvalidTree(AssertionError):
    """A pass, or the builder, made a tree that means nothing."""


@dataclass(frozen=True)
class _Scope:
    """What is known at a statement: positions, temps, accumulators with their kinds, arrays with
    their numbers of dimensions."""

    axes: frozenset[str] = frozenset()
    temps: frozenset[str] = frozenset()
    kinds: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, int] = field(default_factory=dict)


def verify_tree(tree: Tree) -> None:
    """Raise InvalidTree with all that is wrong."""
    wrong = list(_body(tree, _Scope()))
    if wrong:
        raise InvalidTree("\n".join(wrong))


def _body(body: Tree, scope: _Scope) -> Iterator[str]:
    for stmt in body:
        yield from _uses(stmt, scope)
        match stmt:
            case Loop(axis, body=inside):
                if axis.name in scope.axes:
                    yield f"two loops over {axis.name}, one in the other"
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
    """What is known after a statement."""
    match stmt:
        case Let(temp) | When(result=temp):
            return replace(scope, temps=scope.temps | {temp.name})
        case Init(name, kind):
            names = {name, best_of(name)} if kind in POSITIONS else {name}
            return replace(scope, temps=scope.temps | names, kinds={**scope.kinds, name: kind})
        case Held(name):
            return replace(scope, temps=scope.temps | {name})
        case Local(name, _, shape):
            return replace(scope, arrays={**scope.arrays, name: len(shape)})
        case Bound(name):
            return replace(scope, axes=scope.axes | {name.name})
        case _:
            return scope


def _uses(stmt: Stmt, scope: _Scope) -> Iterator[str]:
    """What a statement itself uses and is not there."""
    if not isinstance(stmt, When):
        yield from _unknown(stmt, expressions(stmt), scope)
    else:
        yield from _unknown(stmt, (stmt.mask, stmt.other), scope)
    for index in (*places(stmt), *_bounds(stmt)):
        yield from _positions(index, scope)
    match stmt:
        case Accumulate(name) | Assign(name) if name not in scope.temps:
            yield f"{name} was not started"
        case Accumulate(name, kind) if scope.kinds.get(name, kind) != kind:
            yield f"{name} is a {scope.kinds[name]} and takes a {kind}"
        case Held(name, array, at) if scope.arrays.get(array) != len(at):
            yield f"{name} is held in {array} at {len(at)} indices; there is {scope.arrays}"
        case Store(buffer) if scope.arrays.get(buffer, 1) != 1:
            yield f"{buffer} is stored to with one index"


def _unknown(stmt: Stmt, values: tuple[Expr, ...], scope: _Scope) -> Iterator[str]:
    """Temps, positions and elements of values that are not there."""
    of_values = {node for value in values for node in value.walk()}
    for temp in temps_read(stmt):
        inside = isinstance(stmt, When) and temp not in of_values
        if temp.name not in scope.temps and not inside:
            yield f"{temp.name} is read and not known"
    for node in of_values:
        for index in node.indices():
            yield from _positions(index, scope)
        if isinstance(node, Load) and scope.arrays.get(node.buffer, 1) != len(node.index):
            yield f"{node.buffer} is read with {len(node.index)} indices"


def _positions(index: Index, scope: _Scope) -> Iterator[str]:
    for axis in index.axes():
        if axis.name not in scope.axes:
            yield f"the position {axis.name} is used outside of its loop"


def _bounds(stmt: Stmt) -> tuple[Index, ...]:
    """The indices that loops and their bounds are made of."""
    match stmt:
        case Loop(begin=begin):
            return (begin, stmt.stop)
        case Bound(value=Index() as value):
            return (value,)
        case Bound(value=Least(first, second) | Whole(first, second)):
            return (first, second)
        case Bound(value=Share(part=part)):
            return (Index.of(part),)
        case Call(args=args):
            return tuple(a for a in args if isinstance(a, Index))
        case _:
            return ()
