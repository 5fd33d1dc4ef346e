"""Run a cell and replace some of its calls.

Replaced are calls in the cell's own statements (including loops, blocks and expressions, but not
functions that it defines) whose callee is a module or a function that the user wrote.  If the line
of the magic names callees, only their calls are replaced.

    loss = net(x).pow(2).mean()     net(x) becomes `in_place(net, x)`; pow and mean are torch's
    loss.backward()                 torch's
    opt.step()                      torch's, unless the line is `%%compile net opt.step`
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from IPython.core.error import UsageError

from inductor_lab.compiler.capture.span import outside_torch, shown_file

CALLEE = "__lab_callee__"
"""The function that a rewritten cell calls to get the callee of a call."""
NAMES = re.compile(r"[A-Za-z_][\w.]*(\s+[A-Za-z_][\w.]*)*")
OURS = str(Path(__file__).parents[1]) + os.sep
TRIED = tuple(str(Path(OURS, *folder)) + os.sep for folder in (("bench", "demo"), ("course",)))
"""Folders of this package whose functions may be compiled."""


def run_calling(
    shell: Any, cell: str, in_place: Callable[..., Any], arguments: str = ""
) -> Any:
    """Run a cell in which calls of user functions become `in_place(f, *args, **kwargs)`.

    Returns the value of the last expression, or None if the cell does not end with an expression.
    `arguments` names the callees (`net opt.step`), or has arguments for the last function that the
    cell defines.  Line numbers are those of the editor.  Exceptions are passed on.
    """
    __tracebackhide__ = True
    above = _lines_above(shell, cell)
    filename = shell.compile.cache("\n" * above + cell, max(shell.execution_count - 1, 1))
    tree = _parsed(shell, cell, filename, above)
    ast.increment_lineno(tree, above)
    named = names_in(arguments, tree, shell.user_ns)
    if arguments and not named:
        tree.body.append(call_of_last_function(tree, arguments))
    tree = ast.fix_missing_locations(_CalleeLookups().visit(tree))
    asked = _Callees(in_place, named)
    shell.user_ns[CALLEE] = asked.callee
    try:
        return _value_of(shell, tree, filename)
    finally:
        del shell.user_ns[CALLEE]


def _parsed(shell: Any, cell: str, filename: str, above: int) -> ast.Module:
    """The cell's syntax tree; a syntax error raises UsageError, which is shown without frames."""
    try:
        tree: ast.Module = shell.compile.ast_parse(shell.transform_cell(cell), filename)
    except SyntaxError as error:
        error.filename, line = shown_file(filename), (error.lineno or 1) + above
        error.lineno = error.end_lineno = line
        raise UsageError("".join(traceback.format_exception_only(error)).strip()) from None
    return tree


def _value_of(shell: Any, tree: ast.Module, filename: str) -> Any:
    __tracebackhide__ = True
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(shell.compile(tree, filename, "exec"), shell.user_ns)
        return None
    tree.body.pop()
    exec(shell.compile(tree, filename, "exec"), shell.user_ns)
    return eval(shell.compile(ast.Expression(last.value), filename, "eval"), shell.user_ns)


def _lines_above(shell: Any, cell: str) -> int:
    """The number of editor lines above the cell's code: the magic and the lines above it."""
    raw = list(shell.history_manager.input_hist_raw)[-1].rstrip()
    own = cell.rstrip()
    return raw[: len(raw) - len(own)].count("\n") if own and raw.endswith(own) else 1


def names_in(arguments: str, tree: ast.Module, known: dict[str, Any]) -> frozenset[str]:
    """The callees that a line names: `net`, `f g`; empty if it has arguments instead.

    Raises UsageError for a function that the cell never calls.
    """
    if not NAMES.fullmatch(arguments):
        return frozenset()
    names = frozenset(arguments.split())
    called = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    if names <= called:
        return names
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    missing = [name for name in arguments.split() if name not in called]
    if all(name in defined or callable(known.get(name)) for name in missing):
        raise UsageError(f"%%compile: the cell does not call {', '.join(missing)}")
    return frozenset()


def call_of_last_function(tree: ast.Module, arguments: str) -> ast.stmt:
    """`f(arguments)` for the last function that a cell defines; raises UsageError."""
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not names:
        raise UsageError("%%compile with arguments needs a function defined in the cell")
    try:
        call = ast.parse(f"{names[-1]}({arguments})").body[0]
    except SyntaxError as error:
        raise UsageError(f"%%compile: {arguments!r} are not valid arguments: {error.msg}") from None
    for node in ast.walk(call):
        ast.copy_location(node, tree.body[-1])
    return call


class _CalleeLookups(ast.NodeTransformer):
    """`f(x)` → `__lab_callee__("f", f)(x)`, in the cell's own statements.

    Python still makes the call from the cell, so `locals()` and `super()` do not change.
    """

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _leave

    def visit_Call(self, node: ast.Call) -> ast.AST:
        text = ast.Constant(ast.unparse(node.func))
        self.generic_visit(node)
        asking = ast.Call(ast.Name(CALLEE, ast.Load()), [text, node.func], [])
        node.func = ast.copy_location(asking, node.func)
        return node


class _Callees:
    def __init__(self, in_place: Callable[..., Any], named: frozenset[str]) -> None:
        self.in_place, self.named = in_place, named

    def callee(self, text: str, fn: Any) -> Any:
        wanted = text in self.named if self.named else is_of_user(fn)
        if not (wanted and callable(fn)):
            return fn
        return functools.partial(self.in_place, original(fn))


def original(fn: Any) -> Any:
    """The original of a function or module that `torch.compile` returned."""
    fn = getattr(fn, "_torchdynamo_orig_callable", fn)
    return getattr(fn, "_orig_mod", fn) if isinstance(fn, torch.nn.Module) else fn


def is_of_user(fn: Any) -> bool:
    """Is `fn` a module, or a function or method that the user wrote?

    User code is code in a cell or in a file that is not installed.  Generators and coroutines are
    not compiled.
    """
    if isinstance(fn, torch.nn.Module):
        return True
    if isinstance(fn, functools.partial):
        return is_of_user(fn.func)
    if not (inspect.isfunction(fn) or inspect.ismethod(fn)):
        return False
    inner = inspect.unwrap(fn)
    code = getattr(inner, "__code__", None)
    lazy = inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner)
    return code is not None and not lazy and _is_users_file(code.co_filename)


def _is_users_file(file: str) -> bool:
    if file.startswith("<") or not outside_torch(file):
        return shown_file(file).startswith("cell")
    ours = file.startswith(OURS) and not file.startswith(TRIED)
    return not ours and not file.startswith(tuple(_installed()))


@functools.cache
def _installed() -> Sequence[str]:
    return tuple(_folders())


def _folders() -> Iterator[str]:
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield sysconfig.get_path(name)
