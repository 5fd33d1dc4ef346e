"""The exact expression of a line, and possibly of a start column.

Dynamo knows where an op's expression starts but not on which line it ends, so its `^^^` marks
extend to the end of the line; before torch 2.13 it knows only the line.  Python's own parser knows
the extent.  Of the expressions that start there, the right one calls what the FX node calls.

    y = torch.sin(x) ** 2        callee "sin"   →   torch.sin(x)
                                 callee "pow"   →   torch.sin(x) ** 2
"""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift", ast.USub: "neg", ast.UAdd: "pos",
    ast.Invert: "invert", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt",
    ast.GtE: "ge",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Extent:
    """The callee of an expression, and its location; lines and columns from 1, the end
    exclusive."""

    callee: str
    line: int
    column: int
    end_line: int
    end_column: int


def find_expression(file: str, line: int, column: int, callee: str) -> Extent | None:
    """The expression with that callee that starts there; None if it cannot be found.

    Without a column (0), exactly one expression in the line must call `callee`.
    """
    starting = _by_line("".join(linecache.getlines(file))).get(line, [])
    if not column:
        same = [extent for extent in starting if extent.callee == callee]
        return same[0] if len(same) == 1 else None
    here = [extent for extent in starting if extent.column == column]
    same = [extent for extent in here if extent.callee == callee]
    calls = [extent for extent in here if extent.callee not in _OPERATORS.values()]
    found = same or (calls if len(calls) == 1 else [])
    return min(found, key=lambda extent: (extent.end_line, extent.end_column), default=None)


@lru_cache(maxsize=32)
def _by_line(text: str) -> Mapping[int, list[Extent]]:
    """The expressions that compute something, by their first line."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    lines = text.splitlines()
    found: dict[int, list[Extent]] = defaultdict(list)
    for node in ast.walk(tree):
        name = _callee(node)
        if name and isinstance(node, ast.expr) and node.end_lineno and node.end_col_offset:
            column = _characters(lines[node.lineno - 1], node.col_offset) + 1
            end = _characters(lines[node.end_lineno - 1], node.end_col_offset) + 1
            found[node.lineno].append(Extent(name, node.lineno, column, node.end_lineno, end))
    return found


def _characters(line: str, utf8_bytes: int) -> int:
    """Convert a column in UTF-8 bytes, as the parser counts, to characters."""
    return utf8_bytes if line.isascii() else len(line.encode()[:utf8_bytes].decode())


def _callee(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
        case ast.Call():
            return "call"
        case ast.BinOp(op=op) | ast.UnaryOp(op=op) | ast.Compare(ops=[op]):
            return _OPERATORS.get(type(op), "")
        case ast.Subscript():
            return "getitem"
        case ast.Attribute():
            return "getattr"
    return ""
