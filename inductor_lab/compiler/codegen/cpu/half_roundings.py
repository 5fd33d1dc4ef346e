"""Keep a value in float32 if it is rounded to 16 bits and then widened again.

    t1 = half(t0 * 2)               t1 = float(half(t0 * 2))
    out0[i0] = float(t1) + 1    →   out0[i0] = t1 + 1

A `where` of two such values also stays in float32.  Rounding to 16 bits and back stays in a vector
register; a 16-bit variable would not.  A value that is equal to a rounded value except for its sign
is not rounded again.

Inductor: its vector types of float16 are also floats.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import torch

from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.tree.loop_tree import Let, Loop, Stmt, Tree, When
from inductor_lab.compiler.codegen.tree.visit import nodes_in, walk, with_values
from inductor_lab.compiler.ir.expr import Expr, Op, Temp, map_expr
from inductor_lab.compiler.ir.rules import HALF

FLOAT = torch.float32
SAME_DIGITS = ("neg", "abs", "relu", "maximum", "minimum")
"""Operations whose result is one of their operands, except for the sign."""


def keep_floats(tree: Tree, facts: Facts) -> Tree:
    """Store temps that are rounded to 16 bits and widened again as float32."""
    made = [s for s in walk(tree) if isinstance(s, Let) and (rounds(s.value) or _is_where(s.value))]
    if not made:
        return tree
    widened: set[Expr | None] = set(map(_widened, nodes_in(tree)))
    for let in reversed(made):
        if let.temp in widened and isinstance(let.value, Op) and _is_where(let.value):
            widened.update(let.value.args[1:])
    floats = {s.temp: Temp(s.temp.name, FLOAT) for s in made if s.temp in widened}
    held = {wide: half.dtype for half, wide in floats.items()}

    def value(node: Expr) -> Expr:
        if (temp := _widened(node)) in floats:
            return floats[temp]
        if isinstance(node, Temp) and node in floats:
            return Op("convert", (floats[node],), node.dtype)
        return map_expr(node, value, lambda index: index)

    def wide(stmt: Stmt) -> Stmt:
        """The statement with float32 instead of 16-bit temps; its values are already mapped."""
        match stmt:
            case Let(temp, Op("where", (mask, *choices))) if temp in floats:
                both = (_as_float(choice, held) for choice in choices)
                return replace(stmt, temp=floats[temp], value=Op("where", (mask, *both), FLOAT))
            case Let(temp) if temp in floats:
                return replace(stmt, temp=floats[temp], value=_rounded(stmt.value, held))
            case Loop(body=body) | When(body=body):
                return replace(stmt, body=tuple(map(wide, body)))
            case _:
                return stmt

    if not floats:
        return tree
    return tuple(wide(with_values(stmt, value, lambda index: index)) for stmt in tree)


def rounds(value: Expr) -> bool:
    """Is it a float32 that is rounded to 16 bits?"""
    if not isinstance(value, Op) or value.name != "convert" or value.dtype not in HALF:
        return False
    return value.args[0].dtype is torch.float32


def _is_where(value: Expr) -> bool:
    """Is it a `where` of 16-bit values?"""
    return isinstance(value, Op) and value.name == "where" and value.dtype in HALF


def _rounded(value: Expr, held: Mapping[Temp, torch.dtype]) -> Expr:
    """A 16-bit value as float32, rounded if necessary."""
    match value:
        case Op("convert", (number,)) if _is_exact(number, value.dtype, held):
            return number
    return Op("convert", (value,), FLOAT)


def _is_exact(number: Expr, dtype: torch.dtype, held: Mapping[Temp, torch.dtype]) -> bool:
    """Can this 16-bit dtype represent the float32 value exactly?"""
    match number:
        case Temp():
            return held.get(number) is dtype
        case Op("convert", (narrow,)):
            return narrow.dtype is dtype
        case Op(name, args):
            return name in SAME_DIGITS and all(_is_exact(arg, dtype, held) for arg in args)
    return False


def _as_float(value: Expr, held: Collection[Temp]) -> Expr:
    """The same value as float32; a temp in `held` already is float32 and is not rounded again."""
    match value:
        case Op("convert", (Temp() as known,)) if known in held:
            return known
    return Op("convert", (value,), FLOAT)


def _widened(value: Expr) -> Temp | None:
    """The 16-bit temp that an expression widens to float32."""
    match value:
        case Op("convert", (Temp() as temp,), torch.float32) if temp.dtype in HALF:
            return temp
    return None


def unwidened_temps(value: Expr) -> Iterator[Temp]:
    """Temps that an expression uses without widening them to float32."""
    match value:
        case Temp():
            yield value
        case Op("convert", (Temp(),), torch.float32):
            return
        case Op(args=args):
            for arg in args:
                yield from unwidened_temps(arg)
        case _:
            yield from (node for node in value.walk() if isinstance(node, Temp))
