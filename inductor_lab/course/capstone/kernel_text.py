"""Is a text nothing but Triton kernels?

In Triton's interpreter a kernel is Python code, so a text could do anything there.  Allowed are
assignments, loops over `range`, expressions, and calls of `tl`; no other name, import or attribute.
"""

from __future__ import annotations

import ast

from inductor_lab.course.language import say

STATEMENTS = (ast.Assign, ast.AugAssign, ast.For, ast.If, ast.Expr)
EXPRESSIONS = (
    ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.keyword, ast.BinOp, ast.UnaryOp,
    ast.Compare, ast.Subscript, ast.Slice, ast.List, ast.Tuple, ast.IfExp, ast.operator,
    ast.unaryop, ast.cmpop, ast.expr_context,
)  # fmt: skip
GIVEN = {"tl", "range", "float"}
METHODS = {"to"}
"""Attributes of a value.  `tl` has modules, so `tl.a.b` is not allowed."""


def unexpected(text: str) -> str | None:
    """A sentence about the first thing that does not belong in a kernel; None if there is none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return say("the kernels are not Python: {e}", e=error)
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) \
                or [ast.unparse(one) for one in function.decorator_list] != ["triton.jit"]:
            return say("`{t}` is not a function with @triton.jit", t=ast.unparse(function)[:80])
        wrong = _in_kernel(function)
        if wrong is not None:
            return say("a kernel has no `{t}`: assignments, loops over range and calls of tl are "
                       "enough", t=ast.unparse(wrong)[:80])  # fmt: skip
    return None


def _in_kernel(function: ast.FunctionDef) -> ast.AST | None:
    given = function.args
    plain = ast.arguments([], given.args, None, [], [], None, [])
    notes = {ast.unparse(arg.annotation) for arg in given.args if arg.annotation}
    if ast.dump(given) != ast.dump(plain) or notes - {"tl.constexpr"} or function.returns:
        return function
    parameters = {arg.arg for arg in given.args}
    assigned = {node.id for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip
    if GIVEN & (parameters | assigned):
        return function
    known = parameters | assigned | GIVEN
    for statement in function.body:
        for node in ast.walk(statement):
            if not isinstance(node, STATEMENTS + EXPRESSIONS) or _strange(node, known):
                return node
    return None


def _strange(node: ast.AST, known: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name not in known or name.startswith("_")
        case ast.Attribute(value=ast.Name(id="tl"), attr=name):
            return name.startswith("_")
        case ast.Attribute(attr=name):
            return name not in METHODS
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
            return False
        case ast.For():
            return True
        case ast.Call(func=function):
            return isinstance(function, ast.Name) and function.id not in GIVEN
    return False
