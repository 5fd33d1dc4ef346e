"""Captured graphs that run unchanged, with the operators of eager mode.

Some graphs have no functional form, and for others AOTAutograd's form is wrong: `eager_rules.py`
has a rule for each kind.  `why_as_captured` applies them before anything is compiled.  Graphs that
AOTAutograd rejects itself also run in eager mode (`refused`).

Inductor: it rejects some of these graphs and computes wrong results for others.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch

from inductor_lab.compiler.base.errors import LabError, RunsUncompiled
from inductor_lab.compiler.capture.capture import AsCaptured
from inductor_lab.compiler.capture.eager_rules import RULES, Graph
from inductor_lab.compiler.capture.span import innermost, outside_torch
from inductor_lab.compiler.torch_door import torch_aot
from inductor_lab.compiler.torch_door.torch_names import optional

_OfDynamo: Any = optional("torch._dynamo.exc.TorchDynamoException", Exception)
_REFUSALS = (RuntimeError, AssertionError, NotImplementedError, ValueError, TypeError)


def why_as_captured(module: torch.nn.Module, inputs: Sequence[Any]) -> AsCaptured | None:
    """The first rule that refuses to compile this graph; None if all accept it."""
    graph = Graph(module, inputs)
    for name, ask in RULES.items():
        reason = ask(graph)
        if reason is not None:
            trace = reason.node.meta.get("stack_trace", "") if reason.node is not None else ""
            return AsCaptured(name, reason.text, innermost(trace or ""))
    return None


def refused(error: Exception) -> AsCaptured | None:
    """An error of AOTAutograd about a graph, as a reason.

    None for an error of one of our phases or of a user's function, and for exceptions that
    TorchDynamo handles.
    """
    if isinstance(error, (LabError, _OfDynamo)) or not isinstance(error, _REFUSALS):
        return None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    files = [frame.f_code.co_filename for frame in frames]
    if torch_aot.__file__ not in files:
        return None
    below = frames[len(files) - files[::-1].index(torch_aot.__file__) :]
    if any(map(_is_users, below)):
        return None
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    return AsCaptured("refused_by_torch", f"AOTAutograd rejects it: {said}", None)


def _is_users(frame: FrameType) -> bool:
    """Is its code outside torch and Python's own modules?"""
    file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
    own = module.partition(".")[0] in sys.stdlib_module_names
    return outside_torch(file) and not file.startswith("<") and not own


def warn_eager_fallback(why: AsCaptured) -> None:
    """Warn that a graph runs in eager mode; Python prints each warning once."""
    warnings.warn(str(why), RunsUncompiled, stacklevel=2)
