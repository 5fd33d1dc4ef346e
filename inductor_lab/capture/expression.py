"""The exact expression behind a line and a start column.

Dynamo knows where an op's expression starts but not on which line it ends, so its `^^^` marks run
to the end of the line.  Python's own parser knows: of the expressions that start there, the right
one is that which calls what the FX node calls.

    y = torch.sin(x) ** 2        column 9, callee "sin"   →   torch.sin(x)
                                 column 9, callee "pow"   →   torch.sin(x) ** 2
"""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Invert: "invert",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_Ends = list[tuple[str, int, int]]


def expression_end(file: str, line: int, column: int, callee: str) -> tuple[int, int]:
    """Line and column (from 1) just after the expression; (0, 0) if it cannot be told."""
    ends = _ends_by_start("".join(linecache.getlines(file))).get((line, column), [])
    same = [(end_line, end) for name, end_line, end in ends if name == callee]
    calls = [(end_line, end) for name, end_line, end in ends if name not in _OPERATORS.values()]
    return min(same or (calls if len(calls) == 1 else []), default=(0, 0))


@lru_cache(maxsize=32)
def _ends_by_start(text: str) -> Mapping[tuple[int, int], _Ends]:
    """For each start, the expressions there that compute: what they call, and where they end."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    lines = text.splitlines()
    found: dict[tuple[int, int], _Ends] = defaultdict(list)
    for node in ast.walk(tree):
        name = _callee(node)
        if name and isinstance(node, ast.expr) and node.end_lineno and node.end_col_offset:
            start = (node.lineno, _characters(lines[node.lineno - 1], node.col_offset) + 1)
            end = _characters(lines[node.end_lineno - 1], node.end_col_offset) + 1
            found[start].append((name, node.end_lineno, end))
    return found


def _characters(line: str, utf8_bytes: int) -> int:
    """The parser counts UTF-8 bytes, people count characters."""
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
