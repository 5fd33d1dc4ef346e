"""Overlapping windows share column results: each column is reduced once, not once per window.

    for i in 0 .. 55:                                    for j in 0 .. 111:
        t = max(x[2*i], x[2*i + 1], x[2*i + 2])              row0[j] = max(x[j], x[j + 112])
        out[i] = max(t, x[2*i + 112],               →    for i in 0 .. 55:
                     x[2*i + 113], x[2*i + 114])             out[i] = max(row0[2*i], row0[2*i + 1],
                                                                          row0[2*i + 2])

The first loop reads contiguous memory for every stride of the windows, and a window of 3 by 3 takes
four maxima instead of eight.  This applies only to maximum and minimum: their result does not
depend on the order.  A row of a window may have a mask that is constant in the loop, as at the
upper and lower border of an image.

Inductor has no counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import reduce

from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import at_points
from inductor_lab.compiler.codegen.cpu.plan import Simd
from inductor_lab.compiler.codegen.cpu.row_residency import LONGEST_ROW
from inductor_lab.compiler.codegen.cpu.split_loops import SHORTEST_LOOP
from inductor_lab.compiler.codegen.cpu.stack import fits_on_stack
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Let,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import drop_dead_values, temps_read, walk
from inductor_lab.compiler.ir.expr import Expr, Load, Masked, Op, Temp, map_expr
from inductor_lab.compiler.ir.index import Axis, Index

CHOICES = ("maximum", "minimum")


@dataclass(frozen=True, slots=True)
class Window:
    """The maximum or minimum of the elements at offsets `start + 0 .. width`, and of the `others`.

    `rows` are the elements with their starts.  An element has one load; its index is the common
    part of all its offsets, and advances by `step` in each iteration.  `root` computes the result,
    `inner` are the names of intermediate results.
    """

    root: Let
    op: Op
    step: int
    rows: tuple[tuple[Expr, int], ...]
    width: int
    others: tuple[Expr, ...]
    inner: frozenset[str]

    def row(self, number: int, loop: Loop) -> Local:
        assert isinstance(loop.axis.size, int)
        length = self.step * (loop.axis.size - 1) + self.width
        return Local(f"row{number}", self.op.dtype, (length,))


def windows(tree: Tree, facts: Facts) -> Tree:
    """Compute a row of column results before each VECTOR loop of overlapping windows.

    Not if the loop is one of the collapsed outer loops that threads share.  Rows with the same name
    are one array, with the length of the longest.
    """
    if facts.plan.simd is not Simd.POINTS or facts.tiled:
        return tree
    rows: dict[str, Local] = {}

    def inside(stmts: Tree, level: int) -> Tree:
        new: list[Stmt] = []
        for stmt in stmts:
            if not isinstance(stmt, Loop):
                new.append(stmt)
            elif stmt.kind is LoopKind.PARALLEL:
                new.append(replace(stmt, body=inside(stmt.body, level + 1)))
            elif stmt.kind is LoopKind.VECTOR and 0 < level >= facts.plan.threads:
                new += _share_columns(stmt, rows)
            else:
                new.append(stmt)
        return tuple(new)

    new = inside(tree, 0)
    return at_points(new, lambda body: (*rows.values(), *body)) if rows else tree


def _share_columns(loop: Loop, rows: dict[str, Local]) -> Iterator[Stmt]:
    """The loops that fill the rows, then the loop that reads them."""
    body: list[Stmt] = list(loop.body)
    for number, window in enumerate(_windows(loop)):
        row = window.row(number, loop)
        known = rows.get(row.name, row)
        longest = max(row, known, key=lambda r: r.shape)
        if known.dtype == row.dtype and fits_on_stack({**rows, row.name: longest}.values()):
            rows[row.name] = longest
            at = body.index(window.root)
            body[at : at + 1] = _reading(window, row, loop)
            yield _filling(window, row)
    yield replace(loop, body=drop_dead_values(tuple(body)))


def _filling(window: Window, row: Local) -> Loop:
    """The loop that reduces each column into the row."""
    axis, origins = Axis("j0", row.shape[0]), window.root.origins
    name = f"{row.name} of {window.root.temp.name}"
    loads: list[Stmt] = []

    def loaded(value: Expr, start: int) -> Expr:
        if not isinstance(value, Load | Masked):
            return map_expr(value, lambda inner: loaded(inner, start), lambda index: index)
        temp = Temp(f"{name}, load {len(loads)}", value.dtype)
        moved = _moved(value, Index.of(axis) + start)
        if isinstance(moved, Masked):
            inside = Let(replace(temp, name=f"{temp.name}, inside"), moved.body, origins)
            loads.append(When(moved.mask, (inside,), temp, inside.temp, moved.other, origins))
        else:
            loads.append(Let(temp, moved, origins))
        return temp

    value = _chosen(window.op, [loaded(element, start) for element, start in window.rows])
    made = Let(Temp(name, row.dtype), value, origins)
    store = Store(row.name, Index.of(axis), made.temp, origins)
    return Loop(axis, LoopKind.VECTOR, (*loads, made, store))


def _reading(window: Window, row: Local, loop: Loop) -> Iterator[Let]:
    """Compute the window's result from `width` elements of its row."""
    columns: list[Expr] = []
    for k in range(window.width):
        temp = Temp(f"{window.root.temp.name} column {k}", row.dtype)
        place = Index.of(loop.axis) * window.step + k
        columns.append(temp)
        yield Let(temp, Load(row.name, (place,), row.dtype), window.root.origins)
    yield replace(window.root, value=_chosen(window.op, [*window.others, *columns]))


def _chosen(op: Op, values: list[Expr]) -> Expr:
    return reduce(lambda a, b: replace(op, args=(a, b)), values)


def _moved(value: Expr, offset: Index) -> Expr:
    """The value with the index of its loads increased by `offset`."""
    if isinstance(value, Load):
        return replace(value, index=(value.index[0] + offset,))
    return map_expr(value, lambda inner: _moved(inner, offset), lambda index: index)


# ---- finding windows --------------------------------------------------------------------------


def _windows(loop: Loop) -> Iterator[Window]:
    """The windows of a loop, last first; `own` are the temps that the loop defines."""
    size = loop.axis.size
    if not isinstance(size, int) or size < SHORTEST_LOOP:
        return
    uses = Counter(temp.name for stmt in walk(loop.body) for temp in temps_read(stmt))
    values = {let.temp.name: let for let in _lets(loop.body)}
    own = {*values, *(s.result.name for s in walk(loop.body) if isinstance(s, When))}
    once = {name: let for name, let in values.items() if uses[name] == 1}
    taken: set[str] = set()
    for let in reversed([stmt for stmt in loop.body if isinstance(stmt, Let)]):
        if isinstance(let.value, Op) and let.value.name in CHOICES and let.temp.name not in taken:
            window = _window(let, let.value, loop.axis, once, own)
            if window and window.row(0, loop).shape[0] <= LONGEST_ROW:
                taken |= window.inner
                yield window


def _lets(body: Tree) -> Iterator[Let]:
    """The values of a loop; masked values as `Masked` expressions."""
    for stmt in body:
        if isinstance(stmt, Let):
            yield stmt
        elif isinstance(stmt, When) and all(isinstance(inside, Let) for inside in stmt.body):
            yield from _lets(stmt.body)
            masked = Masked(stmt.mask, stmt.value, stmt.other, stmt.origins)
            yield Let(stmt.result, masked, stmt.origins)


def _window(root: Let, op: Op, axis: Axis, once: Mapping[str, Let], own: Set[str]) -> Window | None:
    """The window whose maximum or minimum `root` computes, if it is a grid of rows and columns."""
    inner: set[str] = set()
    others: list[Expr] = []
    found: dict[tuple[Expr, int], set[int]] = {}
    for leaf in _leaves(op, op.name, once, inner):
        place = _place(_expanded(leaf, once), axis, own)
        if place is None:
            others.append(leaf)
        else:
            element, step, constant = place
            found.setdefault((element, step), set()).add(constant)
    grids = [(element, _runs(places)) for (element, _), places in found.items()]
    rows = tuple((element, start) for element, grid in grids if grid for start in grid[0])
    shapes = {(step, grid and grid[1]) for (_, step), (_, grid) in zip(found, grids, strict=True)}
    step, width = shapes.pop() if len(shapes) == 1 else (0, None)
    if width is None or len(rows) < 2 or width <= step:
        return None
    return Window(root, op, step, rows, width, tuple(others), frozenset(inner))


def _leaves(value: Expr, name: str, once: Mapping[str, Let], inner: set[str]) -> Iterator[Expr]:
    """The operands of a chain of maxima or minima; temps inside the chain are added to `inner`."""
    if isinstance(value, Op) and value.name == name:
        for arg in value.args:
            yield from _leaves(arg, name, once, inner)
        return
    made = once.get(value.name) if isinstance(value, Temp) else None
    if made is not None and isinstance(made.value, Op) and made.value.name == name:
        inner.add(made.temp.name)
        yield from _leaves(made.value, name, once, inner)
    else:
        yield value


def _expanded(value: Expr, once: Mapping[str, Let]) -> Expr:
    """The value with its single-use temps inlined."""
    if isinstance(value, Temp) and value.name in once:
        return _expanded(once[value.name].value, once)
    return map_expr(value, lambda inner: _expanded(inner, once), lambda index: index)


def _place(value: Expr, axis: Axis, own: Set[str]) -> tuple[Expr, int, int] | None:
    """The value without its offset along the loop, its stride, and its offset in the first
    iteration; None unless exactly one load depends on the loop variable."""
    nodes = list(value.walk())
    loads = [node for node in nodes if isinstance(node, Load)]
    inside = any(isinstance(node, Temp) and node.name in own for node in nodes)
    if inside or len(loads) != 1 or any(n.indices() for n in nodes if n is not loads[0]):
        return None
    index = loads[0].index[0]
    step, constant = index.coefficient(axis), index.constant
    if not (index.is_affine and isinstance(step, int) and step > 0 and isinstance(constant, int)):
        return None
    return _moved(value, Index.of(axis) * -step - constant), step, constant


def _runs(places: set[int]) -> tuple[tuple[int, ...], int] | None:
    """The starts of runs of consecutive offsets, and their common length; None if they differ."""
    starts = tuple(sorted(place for place in places if place - 1 not in places))
    width = len(places) // len(starts)
    grid = {start + k for start in starts for k in range(width)}
    return (starts, width) if grid == places else None
