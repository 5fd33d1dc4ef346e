"""Blocks of float16 that are widened before a loop and narrowed after it.

    float block_t0[256], block_out0[256];
    lab_widen(block_t0, in0 + i0_block, i0_end - i0_block);
    for (...) block_out0[i0 - i0_block] = block_t0[i0 - i0_block] + 1.0f;
    lab_narrow(out0 + i0_block, block_out0, i0_end - i0_block);

Machines convert whole registers of halves at once, but GCC does not make such code of a loop.
What is rounded to 16 bits inside a loop, and computed with further, stays a float meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from inductor_lab.codegen.tidy import expressions, nodes_in, walk
from inductor_lab.codegen.tree import Accumulate, Let, Loop, Stmt, Store, When
from inductor_lab.ir.expr import Expr, Load, Op, Temp, map_expr
from inductor_lab.ir.index import Axis, Index, is_int

SHORT = (torch.float16, torch.bfloat16)


def widened_loads(loop: Loop) -> list[Let]:
    """Halves that a loop reads side by side and uses as floats only."""
    other = {t.name for stmt in walk(loop.body) for e in expressions(stmt) for t in _halves(e)}
    return [
        stmt
        for stmt in loop.body
        if isinstance(stmt, Let)
        and isinstance(stmt.value, Load)
        and stmt.temp.dtype is torch.float16
        and stmt.temp.name not in other
        and side_by_side(stmt.value.index[0], loop.axis)
    ]


def narrowed_stores(loop: Loop) -> list[Store]:
    """Floats that a loop rounds to halves and writes side by side."""
    stores = [stmt for stmt in walk(loop.body) if isinstance(stmt, Store)]
    names = [store.buffer for store in stores]
    return [
        stmt
        for stmt in loop.body
        if isinstance(stmt, Store)
        and stmt.kind == "store"
        and names.count(stmt.buffer) == 1
        and rounds(stmt.value)
        and stmt.value.dtype is torch.float16
        and side_by_side(stmt.index, loop.axis)
    ]


def side_by_side(index: Index, axis: Axis) -> bool:
    """Do consecutive turns of the loop over `axis` meet neighbours in memory?"""
    return index.is_affine and is_int(index.coefficient(axis), 1)


def in_floats(
    body: tuple[Stmt, ...], widened: Sequence[Let], narrowed: Sequence[Store]
) -> tuple[Stmt, ...]:
    """The body without the loads that were widened, and with stores that do not round."""
    return tuple(
        replace(stmt, value=stmt.value.args[0])
        if isinstance(stmt, Store) and stmt in narrowed and isinstance(stmt.value, Op)
        else stmt
        for stmt in body
        if stmt not in widened
    )


def rounded_as_floats(tree: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Temps that are rounded to 16 bits and widened again, as floats.

    t1 = half(t0 * 2)               t1 = float(half(t0 * 2))
    out0[i0] = float(t1) + 1    →   out0[i0] = t1 + 1
    """
    rounded = [s.temp for s in walk(tree) if isinstance(s, Let) and rounds(s.value)]
    if not rounded:
        return tree
    widened = set(map(_widened, nodes_in(tree)))
    floats = {temp: Temp(temp.name, torch.float32) for temp in rounded if temp in widened}

    def value(node: Expr) -> Expr:
        if (temp := _widened(node)) in floats:
            return floats[temp]
        if isinstance(node, Temp) and node in floats:
            return Op("convert", (floats[node],), node.dtype)
        return map_expr(node, value, lambda index: index)

    def statement(stmt: Stmt) -> Stmt:
        match stmt:
            case Let(temp) if temp in floats:
                wide = Op("convert", (value(stmt.value),), torch.float32)
                return replace(stmt, temp=floats[temp], value=wide)
            case Let() | Store() | Accumulate():
                return replace(stmt, value=value(stmt.value))
            case When(mask, body, _, result, other):
                inside = tuple(map(statement, body))
                mask, other, result = value(mask), value(other), value(result)
                return replace(stmt, mask=mask, body=inside, value=result, other=other)
            case Loop(body=body):
                return replace(stmt, body=tuple(map(statement, body)))
            case _:
                return stmt

    return tuple(map(statement, tree)) if floats else tree


def rounds(value: Expr) -> bool:
    """Is it a float that is rounded to 16 bits?"""
    if not isinstance(value, Op) or value.name != "convert" or value.dtype not in SHORT:
        return False
    return value.args[0].dtype is torch.float32


def _widened(value: Expr) -> Temp | None:
    """The 16 bits of which an expression makes a float."""
    match value:
        case Op("convert", (Temp() as temp,), torch.float32) if temp.dtype in SHORT:
            return temp
    return None


def _halves(value: Expr) -> Iterator[Temp]:
    """Temps that are used as something else than what is to be a float."""
    match value:
        case Temp():
            yield value
        case Op("convert", (Temp(),), torch.float32):
            return
        case Op(args=args):
            for arg in args:
                yield from _halves(arg)
        case _:
            yield from (node for node in value.walk() if isinstance(node, Temp))
