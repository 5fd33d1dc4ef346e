"""`%%compile`: run a cell, compile the call that ends it, show what the compiler did.

The call keeps its meaning: its value is computed by the compiled function and goes where it went.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from typing import Any

from inductor_lab.compilation import Compilation

CALL = "__lab_call__"
"""The name that stands for the compiled call in a rewritten cell."""


def register(shell: Any) -> None:
    """Add the magics to an IPython shell."""
    shell.register_magic_function(lambda line, cell: compile_cell(shell, cell), "cell", "compile")


def compile_cell(shell: Any, cell: str) -> Compilation | None:
    """Run the cell; if its last statement is a call, inspect that call, display and return it.

    The compilation is kept in the notebook's variable `_lab`.  A cell that does not end in a call
    of a Python function or a module just runs, and says so.
    """
    filename = shell.compile.cache(cell, shell.execution_count)
    tree = ast.parse(cell, filename)
    found: list[Compilation] = []
    call = last_call(tree)
    if call is not None:
        call.args.insert(0, call.func)
        call.func = ast.copy_location(ast.Name(CALL, ast.Load()), call.func)
        ast.fix_missing_locations(tree)
    shell.user_ns[CALL] = _inspecting(found)
    try:
        exec(compile(tree, filename, "exec"), shell.user_ns)
    finally:
        del shell.user_ns[CALL]
    if not found:
        print("%%compile: nothing was compiled; end the cell with a call such as f(x)")
        return None
    shell.user_ns["_lab"] = found[-1]
    _show(found[-1])
    return None


def last_call(tree: ast.Module) -> ast.Call | None:
    """The call that is the last statement, alone (`f(x)`) or assigned (`y = f(x)`)."""
    if not tree.body:
        return None
    last = tree.body[-1]
    value = last.value if isinstance(last, ast.Expr | ast.Assign | ast.AnnAssign) else None
    return value if isinstance(value, ast.Call) else None


def _inspecting(found: list[Compilation]) -> Callable[..., Any]:
    """A call that goes through `lab.inspect` and leaves the compilation in `found`."""
    from inductor_lab.backend import inspect

    def call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not hasattr(fn, "__code__") and not hasattr(fn, "forward"):
            return fn(*args, **kwargs)
        found.append(inspect(fn, *args, **kwargs))
        return found[-1].result

    return call


def _show(compilation: Compilation) -> None:
    importlib.import_module("IPython.display").display(compilation)
