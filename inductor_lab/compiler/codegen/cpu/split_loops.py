"""Remove masks and divisions from loops: split an innermost loop where a comparison of its loop
variable changes, and unroll it by the divisor of its loop variable.

    for i1 in 0 .. 1024:                         for i1 in 0 .. 512:
        t = 0                                        out[i1] = a[i1]
        if i1 < 512:  t = a[i1]            →     for i1 in 0 .. 512:
        if i1 >= 512: t = b[i1 - 512]                out[i1 + 512] = b[i1]
        out[i1] = t

    for i1 in 0 .. 512:                          for i1 in 0 .. 256:
        out[i1] = a[i1 // 2]               →         out[2*i1] = a[i1]
                                                     out[2*i1 + 1] = a[i1]

    for i0 in 0 .. 512:                          for i0 in 0 .. 512:
        for i1 in 0 .. 2:                            out[2*i0] = a[i0]
            out[2*i0 + i1] =               →         out[2*i0 + 1] = b[i0]
                a[i0] if i1 < 1 else b[i0]

Sizes may be symbolic if their order is known: `n//3 <= n <= n + m`.  Then `cat` along the last
dimension, `pad`, writes to slices and padded windows run as fast as copies, and vector loads are
contiguous.  Masks of outer axes stay: they are constant in the inner loop.

Inductor has no counterpart: it leaves the masks to the C++ compiler.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from math import gcd, lcm

import torch

from inductor_lab.compiler.codegen.cpu.compiler_workarounds import is_guarded, is_misread
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.loops import each_loop, fed_by, point_loops
from inductor_lab.compiler.codegen.cpu.plan import GRAIN, Simd
from inductor_lab.compiler.codegen.cpu.sums import accumulate_separately
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Let,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import drop_dead_values, loads_in, temps_read, walk
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Op, SizeValue, Temp, map_expr
from inductor_lab.compiler.ir.index import (
    Atom,
    Axis,
    Index,
    Quotient,
    Remainder,
    Size,
    add_sizes,
    exact_quotient,
    hint,
)
from inductor_lab.compiler.ir.ops import neutral
from inductor_lab.compiler.ir.size_order import at_most, sub_sizes

MOST_PIECES = 6
"""Maximum number of pieces; with more, the code grows more than the time shrinks.  The limits in
this file are chosen, not measured one by one."""

SHORTEST_LOOP = 16
"""For smaller trip counts, a mask costs almost nothing."""

MOST_STEPS = 4
"""Largest unroll factor; with more, the strided loads do not fit in one vector."""

MOST_COPIES = 4
"""Maximum trip count of an innermost loop that is fully unrolled, so that lanes run along the outer
loop: GCC 12 does not vectorize larger groups, except of 8 (softplus of rows of 2 to 9 elements)."""

MOST_PARTS = 16
"""The same if masks select what an iteration does, as in a stacked 4 by 4 matrix."""

COMPARISONS = {
    "lt": (True, slice(0, 1)), "ge": (False, slice(0, 1)),
    "le": (True, slice(1, 2)), "gt": (False, slice(1, 2)),
    "ne": (True, slice(0, 2)), "eq": (False, slice(0, 2)),
}  # fmt: skip
"""For a comparison of an increasing number with a value: its initial result, and whether it changes
when the number reaches the value, when it exceeds the value, or both."""


def split(tree: Tree, facts: Facts) -> Tree:
    """Split and unroll innermost loops; a tree that is tiled stays unchanged.

    If points have rows, the loops over a row are split: for example `cat` of the halves of an
    attention head, or `cat` of the operands of a sum.
    """
    if facts.plan.simd is Simd.COLUMNS or facts.tiled:
        return tree
    if facts.plan.simd is Simd.INNER:
        shared = facts.plan.inner_threads
        return each_loop(tree, lambda loop: _split_row(loop, shared))
    plan = facts.plan
    new = split_loops(tree, plan.threads, hint(plan.work) >= MOST_PIECES * GRAIN)
    return tree if new == tree else new


def _split_row(loop: Loop, shared: bool) -> Tree | None:
    """The pieces of a loop over a row.

    Each piece of a reduction has a separate accumulator; they are combined.  A reduction that
    threads share (`shared`) is not split.
    """
    if loop.kind is LoopKind.SERIAL and _is_plain(loop):
        return _split_innermost(loop)
    plain = all(
        isinstance(stmt, Let | Store | When)
        or (isinstance(stmt, Accumulate) and stmt.position is None and stmt.found is None)
        for stmt in walk(loop.body)
    )
    if loop.kind is not LoopKind.REDUCE or not plain or shared:
        return None
    pieces = _pieces(loop, 1)
    if pieces == [loop]:
        return (loop,)
    rewritten = (
        piece.body if piece.axis.size == 1
        else accumulate_separately(fed_by(piece), piece, f"piece{k}")
        for k, piece in enumerate(pieces)
    )  # fmt: skip
    return tuple(chain.from_iterable(rewritten))


def _is_plain(loop: Loop) -> bool:
    """Does the loop have no accumulator and no inner loop?"""
    return all(isinstance(stmt, Let | Store | When) for stmt in walk(loop.body))


def _split_innermost(loop: Loop) -> Tree:
    """The pieces of an innermost loop; the loop itself if it is not split."""
    pieces = _pieces(loop, _step(loop))
    return (loop,) if pieces == [loop] else tuple(s for piece in pieces for s in _hoisted(piece))


def split_loops(body: Tree, threads: int = 0, large: bool = False) -> Tree:
    """Split each VECTOR loop at the bounds of its masks, or unroll it fully if it is short.

    Outer loops are split too if masks would prevent vectorization.  The outermost `threads` loops,
    which are collapsed, are split only if the work is `large`: each piece then repeats all of them,
    and starts a new parallel region.
    """
    new: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.kind is LoopKind.VECTOR:
            new += _split_innermost(stmt)
        elif isinstance(stmt, Loop) and (copies := _unrolled(stmt)):
            new += copies
        elif isinstance(stmt, Loop):
            cut = (large or threads <= 0) and _has_unvectorizable_masks(stmt)
            for loop in _pieces(stmt, 1) if cut else [stmt]:
                inside = split_loops(loop.body, threads - 1, large)
                made = replace(loop, body=inside)
                new += _distribute(made) if threads > 1 else (made,)
        else:
            new.append(stmt)
    return tuple(new)


def _distribute(loop: Loop) -> Tree:
    """Distribute a loop over its inner loops, if its body contains only loops and values."""
    loops = [stmt for stmt in loop.body if isinstance(stmt, Loop)]
    lets = tuple(stmt for stmt in loop.body if isinstance(stmt, Let))
    if len(loops) < 2 or len(loops) + len(lets) < len(loop.body):
        return (loop,)
    pieces = (Piece(loop.axis, f"{k}", (0, loop.axis.size), {}, {}) for k in range(len(loops)))
    bodies = (piece.body((*lets, one)) for piece, one in zip(pieces, loops, strict=True))
    return tuple(replace(loop, body=drop_dead_values(body)) for body in bodies)


def _has_unvectorizable_masks(loop: Loop) -> bool:
    """Does the innermost loop have a mask that compilers do not vectorize?

    Such a mask guards several values, or a strided load.
    """
    innermost = (loops := point_loops((loop,)))[-1]
    if len(loops) < 2 or innermost.kind is not LoopKind.VECTOR:
        return False
    for when in (s for s in walk(innermost.body) if isinstance(s, When)):
        loads = loads_in(when.body)
        gaps = any(load.index[0].coefficient(innermost.axis) not in (0, 1) for load in loads)
        if gaps or len(when.body) > 1:
            return True
    return False


def _unrolled(loop: Loop) -> Tree:
    """The loop with its inner VECTOR loop fully unrolled; empty if this is not possible.

    The inner loop must have too few iterations for lanes, and the loop must contain nothing else.
    """
    *before, last = loop.body
    if not isinstance(last, Loop) or last.kind is not LoopKind.VECTOR:
        return ()
    if not _is_plain(last):
        return ()
    size, most = last.axis.size, MOST_PARTS if _changes(last) else MOST_COPIES
    only = all(isinstance(stmt, Let) for stmt in before)
    if not isinstance(size, int) or size > most or hint(loop.axis.size, 1024) < SHORTEST_LOOP:
        return ()
    copies = drop_dead_values(
        tuple(s for piece in iterations(last, {}) for s in piece.body(last.body))
    )
    if not only or is_misread(replace(last, body=copies)):
        return ()
    pieces = _split_innermost(Loop(loop.axis, LoopKind.VECTOR, (*before, *copies)))
    return () if size > 1 and any(map(is_guarded, pieces)) else pieces


def _pieces(loop: Loop, step: int) -> list[Loop]:
    size = loop.axis.size
    if isinstance(size, int) and size < SHORTEST_LOOP:
        return [loop]
    bounds = _ordered_cuts(_changes(loop), size)
    if len(bounds) >= MOST_PIECES + 2 or (len(bounds) == 2 and step == 1):
        return [loop]
    pieces = []
    for begin, end in pairwise(bounds):
        length = sub_sizes(end, begin)
        rest = length % step if isinstance(length, int) else 0
        if length != rest:
            pieces.append(_piece(loop, begin, sub_sizes(end, rest), step))
        if rest:
            pieces.append(_piece(loop, sub_sizes(end, rest), end, 1))
    return pieces


def _ordered_cuts(cuts: set[Size], size: Size) -> list[Size]:
    """0, the cuts in order, and the size.  A cut whose order is unknown (symbolic) is left out."""
    found: list[Size] = [0, size]
    for cut in sorted(cuts, key=lambda cut: (hint(cut), str(cut))):
        place = next((n for n, other in enumerate(found) if at_most(cut, other)), 0)
        if place and not at_most(found[place], cut) and at_most(found[place - 1], cut):
            found.insert(place, cut)
    return found


def _changes(loop: Loop) -> set[Size]:
    """The positions at which the result of a comparison changes."""
    found: set[Size] = set()
    places: dict[str, Expr] = {}
    for stmt in walk(loop.body):
        if isinstance(stmt, Let) and isinstance(stmt.value, IndexValue):
            places[stmt.temp.name] = stmt.value
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            known = _compared(stmt.value, loop.axis, places)
            if known:
                found.update(known[1])
    return found


def _compared(
    op: Op, axis: Axis, places: Mapping[str, Expr]
) -> tuple[bool, tuple[Size, ...]] | None:
    """The initial result of a comparison, and the positions at which it changes.

    None unless the operation compares an index that increases with `axis` alone to a size.
    `places` maps temps to the index that they hold.
    """
    match [places.get(a.name, a) if isinstance(a, Temp) else a for a in op.args]:
        case [IndexValue(index), Const(int() as value) | SizeValue(value)]:
            if op.name in COMPARISONS and (switches := _switches(index, value, axis)):
                first, which = COMPARISONS[op.name]
                return first, switches[which]
    return None


def _switches(index: Index, value: Size, axis: Axis) -> tuple[Size, ...] | None:
    """The first position where an index is at least `value`, and the first where it is greater."""
    if index - index.constant == Index.of(axis):
        reached = sub_sizes(value, index.constant)
        return reached, add_sizes(reached, 1)
    known = isinstance(axis.size, int) and isinstance(index.constant, int)
    if known and isinstance(value, int) and index.terms and _rises(index, axis):
        positions, key = range(axis.size), partial(_at, index, axis)
        return bisect_left(positions, value, key=key), bisect_right(positions, value, key=key)
    return None


def _rises(index: Index, axis: Axis) -> bool:
    """Does the index depend only on `axis`, and never decrease?"""
    for atom, factor in index.terms:
        alone = atom == axis or (
            isinstance(atom, Quotient)
            and isinstance(atom.divisor, int)
            and isinstance(atom.dividend.constant, int)
            and _rises(atom.dividend, axis)
        )
        if not (alone and isinstance(factor, int) and factor > 0):
            return False
    return True


def _at(index: Index, axis: Axis, position: int) -> int:
    """The value, at a position, of an index that depends only on `axis`."""
    value = index.substitute({axis: Index.constant_of(position)}).constant
    assert isinstance(value, int), "it depends on a symbol"
    return value


def _step(loop: Loop) -> int:
    """The unroll factor that removes every division of the loop variable; 1 if there is none."""
    size = loop.axis.size
    step = lcm(*{_period(atom, loop.axis) for atom in _divisions(loop.body)} - {0})
    fits = isinstance(size, int) and step * SHORTEST_LOOP <= size
    return step if step <= MOST_STEPS and fits else 1


def _period(atom: Quotient | Remainder, axis: Axis) -> int:
    """The number of iterations after which a quotient has grown by an integer; 0 if invariant."""
    factor = atom.dividend.coefficient(axis)
    if not isinstance(factor, int) or not isinstance(atom.divisor, int):
        return MOST_STEPS + 1
    return atom.divisor // gcd(atom.divisor, factor) if factor else 0


def _divisions(body: Tree) -> list[Quotient | Remainder]:
    """The quotients and remainders in the indices of loads and stores."""
    indices = [stmt.index for stmt in walk(body) if isinstance(stmt, Store)]
    indices.extend(index for load in loads_in(body) for index in load.index)
    atoms: list[Atom] = [atom for index in indices for atom, _ in index.terms]
    return [atom for atom in atoms if isinstance(atom, Quotient | Remainder)]


def _piece(loop: Loop, begin: Size, end: Size, step: int) -> Loop:
    """The piece of a loop from `begin` to `end`, starting at 0, with constants folded.

    It is unrolled by `step`; common subexpressions of the copies are computed once.
    """
    axis = Axis(loop.axis.name, exact_quotient(sub_sizes(end, begin), step))
    made: dict[Expr, Temp] = {}
    body: list[Stmt] = []
    for copy in range(step):
        first = add_sizes(begin, copy)
        shift = {loop.axis: Index.of(axis) * step + first}
        body += Piece(loop.axis, f"{first}", (begin, end), shift, made).body(loop.body)
    return Loop(axis, loop.kind, drop_dead_values(tuple(body)))


def _hoisted(loop: Loop) -> Tree:
    """Hoist loop-invariant values; a value whose mask was removed may be invariant."""
    if loop.axis.size == 1:
        return loop.body
    inside: set[str] = set()
    kept: list[Stmt] = []
    before: list[Stmt] = []
    for stmt in loop.body:
        same = isinstance(stmt, Let) and loop.axis not in stmt.value.axes()
        if same and not inside & {temp.name for temp in temps_read(stmt)}:
            before.append(stmt)
            continue
        inside |= {s.temp.name if isinstance(s, Let) else s.result.name
                   for s in walk((stmt,)) if isinstance(s, Let | When)}  # fmt: skip
        kept.append(stmt)
    return (*before, replace(loop, body=tuple(kept)))


class Piece:
    """Rewrites statements for one piece of a loop.

    `values` maps temps to constants or to other temps.  `made` maps values to the temps of earlier
    copies.
    """

    def __init__(
        self,
        axis: Axis,
        name: str,
        bounds: tuple[Size, Size],
        shift: dict[Axis, Index],
        made: dict[Expr, Temp],
    ) -> None:
        self.axis, self.name, self.shift, self.made = axis, name, shift, made
        self.begin, self.end = bounds
        self.values: dict[str, Expr] = {}
        self.places: dict[str, Expr] = {}
        self.masked = False

    def body(self, stmts: Tree) -> Tree:
        new: list[Stmt] = []
        for stmt in stmts:
            new.extend(self.stmt(stmt))
        return tuple(new)

    def stmt(self, stmt: Stmt) -> Tree:
        match stmt:
            case Let(temp, IndexValue() as value):
                self.places[temp.name] = value
                new = self.renamed(temp)
                return (replace(stmt, temp=new, value=self.expr(value)),)
            case Let(temp, value):
                known = self.expr(value)
                known = self.made.get(known, known)
                if isinstance(known, Const | Temp):
                    self.values[temp.name] = known
                    return ()
                new = self.renamed(temp)
                if not self.masked:
                    self.made[known] = new
                return (replace(stmt, temp=new, value=known),)
            case Loop(body=inside):
                before, self.made = self.made, dict(self.made)  # its temps are not visible outside
                body = self.body(inside)
                self.made = before
                return (replace(stmt, body=body),)
            case Accumulate(value=value):
                return (replace(stmt, value=self.expr(value)),)
            case Store(_, index, value):
                return (replace(stmt, index=self.index(index), value=self.expr(value)),)
            case When(mask=mask):
                return self.when(stmt, self.expr(mask))
            case _:
                raise AssertionError(f"not in a vector loop: {type(stmt).__name__}")

    def when(self, stmt: When, mask: Expr) -> Tree:
        if mask == Const(False, torch.bool):
            self.values[stmt.result.name] = self.expr(stmt.other)
            return ()
        known = mask == Const(True, torch.bool)
        before, self.masked = self.masked, self.masked or not known
        body = self.body(stmt.body)
        value = self.expr(stmt.value)
        self.masked = before
        if known:
            self.values[stmt.result.name] = value
            return body
        other, result = self.expr(stmt.other), self.renamed(stmt.result)
        return (When(mask, body, result, value, other, stmt.origins),)

    def renamed(self, temp: Temp) -> Temp:
        """Each piece has separate temps, so that uses can be counted by name."""
        new = Temp(f"{temp.name} from {self.name}", temp.dtype)
        self.values[temp.name] = new
        return new

    def expr(self, value: Expr) -> Expr:
        if isinstance(value, Temp):
            return self.values.get(value.name, value)
        if isinstance(value, Op) and (known := _compared(value, self.axis, self.places)):
            changed = [at_most(at, self.begin) for at in known[1]]
            if all(was or at_most(self.end, at) for was, at in zip(changed, known[1], strict=True)):
                return Const(known[0] ^ (sum(changed) % 2 == 1), torch.bool)
        return _folded(map_expr(value, self.expr, self.index))

    def index(self, index: Index) -> Index:
        return index.substitute(self.shift, None if index.is_affine else self.expr)


def iterations(loop: Loop, made: dict[Expr, Temp]) -> Iterator[Piece]:
    """One piece per iteration of a short loop; the pieces share the temps in `made`."""
    assert isinstance(loop.axis.size, int), "the loop is short"
    for at in range(loop.axis.size):
        yield Piece(loop.axis, f"{at}", (at, at + 1), {loop.axis: Index.constant_of(at)}, made)


def _folded(value: Expr) -> Expr:
    """Fold logical operations, `where` and extremes that have a constant operand."""
    match value:
        case Op("maximum" | "minimum", (first, second)):
            least = Const(neutral(value.name, value.dtype), value.dtype)
            return second if first == least else first if second == least else value
        case Op("logical_and" | "bitwise_and", args) if value.dtype is torch.bool:
            return _without(args, True, value)
        case Op("logical_or" | "bitwise_or", args) if value.dtype is torch.bool:
            return _without(args, False, value)
        case Op("logical_not", (Const(known),)):
            return Const(not known, torch.bool)
        case Op("isnan", (Const(known),)):
            return Const(known != known, torch.bool)
        case Op("where", (Const(known), chosen, other)):
            return chosen if known else other
    return value


def _without(args: tuple[Expr, ...], neutral: bool, value: Expr) -> Expr:
    """Remove neutral operands of `and` and `or`; the opposite constant decides the result."""
    if Const(not neutral, torch.bool) in args:
        return Const(not neutral, torch.bool)
    rest = [a for a in args if a != Const(neutral, torch.bool)]
    if not rest:
        return Const(neutral, torch.bool)
    return value if len(rest) == len(args) else rest[0]
