"""Print an error while compiling as one sentence and the user's line.

    RuntimeError: shape mismatch: [4, 8] @ [9, 3]: a and b must have same reduction dim
      return y @ w        cell 3, line 4

The graph so far and the full traceback are collapsed below it (`SoFar`).
"""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from typing import Any

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.capture.span import outside_torch, shown_file

SIGNS = {"matmul": "@", "mm": "@", "bmm": "@", "add": "+", "sub": "-", "mul": "*", "truediv": "/"}
_OPERATION = re.compile(r"call_\w+ <?(?:built-in (?:function|method) )?([\w.]+)")
_SIZES = re.compile(r"size=\(([^)]*)\)")
_OF_A_NODE = "Dynamo failed to run FX node"
_READER = "torch._dynamo.convert_frame"
_OURS = re.compile(r"[/\\]inductor_lab[/\\]")
_PYTHON = os.path.join(sysconfig.get_path("stdlib"), "")


def torch_failed(error: BaseException) -> bool:
    """Was the error raised while TorchDynamo traced a function?

    It may come from TorchDynamo, from an operation that it ran, or from an interrupt by the user.
    """
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    modules = (frame.f_globals.get("__name__") for frame in frames)
    return _is_of_dynamo(error) or _READER in modules


def _is_of_dynamo(error: BaseException) -> bool:
    return type(error).__module__.startswith("torch._dynamo")


def shorten(error: BaseException) -> None:
    """Make IPython print the sentence and the line instead of the traceback."""
    lines = [sentence(error), *(f"  {line}" for line in (where(error), _todo(error)) if line)]
    lines.append("  see below for the graph so far and the full traceback")
    error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]


def sentence(error: BaseException) -> str:
    """`RuntimeError: shape mismatch: [4, 8] @ [9, 3]: a and b must have same reduction dim ...`."""
    if isinstance(error, LabError):
        return f"{type(error).__name__}: {error.what}"
    root = _root(error)
    if isinstance(root, KeyboardInterrupt):
        return "KeyboardInterrupt: interrupted while compiling (Python loops are unrolled)"
    said = " ".join(str(root).split("\n\n")[0].split())
    return ": ".join(part for part in (type(root).__name__, _operands(str(error)), said) if part)


def where(error: BaseException) -> str:
    """`return y @ w        cell 3, line 4`: the innermost line of user code."""
    if isinstance(error, LabError):
        return error.where
    stack = getattr(error, "real_stack", None) or traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in stack if frame.line and _is_of_the_user(frame.filename)]
    if not mine:
        return ""
    return f"{mine[-1].line}        {shown_file(mine[-1].filename)}, line {mine[-1].lineno}"


def _is_of_the_user(file: str) -> bool:
    return outside_torch(file) and not _OURS.search(file) and not file.startswith(_PYTHON)


def _todo(error: Any) -> str:
    return error.todo if isinstance(error, LabError) else ""


def _root(error: BaseException) -> BaseException:
    """The original error that torch has wrapped.

    Since torch 2.14, an error of a node is raised a second time as the same built-in type, with
    TorchDynamo's message about the node.
    """
    while _is_of_dynamo(error) or str(error).startswith(_OF_A_NODE):
        inner = error.__cause__ or error.__context__
        if inner is None:
            break
        error = inner
    return error


def _operands(said: str) -> str:
    """The operation and its shapes, from TorchDynamo's message about the node that it added."""
    operation = _OPERATION.search(said)
    if operation is None:
        return ""
    sizes = [f"[{size.rstrip(',')}]" for size in _SIZES.findall(said[operation.end() :])]
    name = operation[1].rsplit(".", 1)[-1]
    if name in SIGNS and len(sizes) == 2:
        return f"shape mismatch: {sizes[0]} {SIGNS[name]} {sizes[1]}"
    return f"{name} of {', '.join(sizes)}" if sizes else name
