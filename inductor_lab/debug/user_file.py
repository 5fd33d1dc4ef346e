"""Load a function and its arguments from a user's file: `path/to/file.py:function`."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Sequence
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from pathlib import Path
from types import ModuleType
from typing import Any

from inductor_lab.compiler.base.errors import BadArguments, NeedsTorch
from inductor_lab.compiler.torch_door.torch_types import INSTALLED, torch

PREFIX = "explained_"
"""Prefix of the module name in `sys.modules`, so that a file `statistics.py` hides no module."""


RUN_LATER = (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)
"""Checks for functions whose call returns an object that runs only when awaited or iterated."""


def load_function(where: str, expression: str | None) -> tuple[Any, tuple[Any, ...]]:
    """Load `FILE:FUNCTION` and its arguments.

    The arguments are the value of `expression`, else those of `example_inputs()` in the file, else
    none if all parameters have defaults.  Every error in the file raises BadArguments.
    """
    if not INSTALLED:
        raise NeedsTorch
    file, _, name = where.rpartition(":")
    if not file or not name:
        raise BadArguments(f"{where!r} does not name a function", todo="write path/to/file.py:name")
    module = _load_file(Path(file))
    fn = getattr(module, name, None)
    if not callable(fn):
        problem = f"{file} has no {name}" if fn is None else f"{name} of {file} cannot be called"
        raise BadArguments(problem, todo="check the name after the colon")
    if any(later(fn) for later in RUN_LATER):
        raise BadArguments(
            f"{name} of {file} is a coroutine or a generator: calling it runs no line of it",
            todo="give a plain function that computes on tensors",
        )
    if expression is not None:
        args = _evaluate(expression, vars(module))
    elif hasattr(module, "example_inputs"):
        args = module.example_inputs()
    elif _needs_nothing(fn):
        args = ()
    else:
        raise BadArguments(
            f"no arguments for {name}",
            todo=f'give --args "(torch.randn(8),)", or define example_inputs() in {file}',
        )
    return fn, args if isinstance(args, tuple) else (args,)


def load_calls(where: str, expressions: Sequence[str]) -> tuple[Any, list[tuple[Any, ...]]]:
    """`FILE:FUNCTION` and the arguments of several calls of it; raises BadArguments."""
    fn, (calls,) = load_function(where, f"[{', '.join(expressions)}]")
    return fn, [args if isinstance(args, tuple) else (args,) for args in calls]


def _needs_nothing(fn: Any) -> bool:
    """Can it be called without arguments?"""
    try:
        signature(fn).bind()
    except (TypeError, ValueError):  # ValueError: a builtin without a signature
        return False
    return True


def _load_file(path: Path) -> ModuleType:
    """Run a file as a module; it can import files in its folder, after installed packages."""
    if not path.is_file():
        raise BadArguments(f"there is no file {path}", todo="write path/to/file.py:name")
    spec = importlib.util.spec_from_file_location(PREFIX + path.stem, path)
    if spec is None or spec.loader is None:
        raise BadArguments(f"{path} is not a Python file", todo="give a file with the suffix .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.append(str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadArguments(
            f"{path} cannot be imported: {_said(error)}",
            place_in(error, path),
            "the whole file must run before one of its functions can be compiled",
        ) from error
    return module


def place_in(error: BaseException, path: Path) -> str:
    """The line of the file in the last frame of a traceback; "" if no frame is in the file."""
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    if isinstance(error, SyntaxError):
        return f"{(error.text or '').strip()}        {path.name}, line {error.lineno}"
    return f"{mine[-1].line}        {path.name}, line {mine[-1].lineno}" if mine else ""


def _evaluate(expression: str, names: dict[str, Any]) -> Any:
    """Evaluate --args with torch and the names of the user's file."""
    try:
        return eval(expression, {"torch": torch, **names})
    except Exception as error:
        raise BadArguments(
            f"--args {expression!r}: {_said(error)}",
            todo='give a Python expression, for example --args "(torch.randn(8),)"',
        ) from error


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
