"""The text of a candidate: what the process that runs it gets.

A function of a notebook or a file becomes text: its source, and the source or the import of every
global name that it uses.  Nothing else of the process that judges goes to the other process.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from inductor_lab.compiler.base.errors import BadArguments

DEFAULT_NAME = "candidate"
TODO = "give the text of a file that defines the function, or its path"


@dataclass(frozen=True)
class Candidate:
    """A function as text.

    name      of the function in the text
    language  "python", also for Triton kernels and the function that launches them; or "cpp":
              `extern "C" void NAME(const T* x, ..., R* result, ..., const int64_t* sizes)` with
              pointers to the contiguous elements of each tensor and result, and the sizes of all
              tensors
    """

    text: str
    name: str = DEFAULT_NAME
    language: Literal["python", "cpp"] = "python"

    def as_data(self) -> dict[str, str]:
        """The candidate as plain values, for the other process."""
        return asdict(self)


def candidate_of(given: Any, name: str = "") -> Candidate:
    """A candidate from a text, a path (`.py`, `.cpp`) or a function.  Raises BadArguments.

    `name` is the name of the function in a text or a file; `"candidate"` if it is empty.
    """
    if isinstance(given, Candidate):
        return given
    if isinstance(given, Path):
        try:
            text = given.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadArguments(f"{given} cannot be read: {error}", todo=TODO) from None
        cpp = given.suffix in (".cpp", ".cc", ".cxx")
        return Candidate(text, name or DEFAULT_NAME, "cpp" if cpp else "python")
    if isinstance(given, str):
        return Candidate(given, name or DEFAULT_NAME)
    if isinstance(given, types.FunctionType):
        return Candidate(text_of(given), given.__name__)
    raise BadArguments(f"a {type(given).__name__} is not a candidate", todo=TODO)


def text_of(function: types.FunctionType) -> str:
    """The source of a function with everything that it uses.  Raises BadArguments."""
    parts: dict[str, str] = {}
    _add(function.__name__, function, parts)
    imports = [text for text in parts.values() if text.startswith(("import ", "from "))]
    others = [text for text in parts.values() if not text.startswith(("import ", "from "))]
    return "\n".join([*dict.fromkeys(imports), *others]) + "\n"


def _add(name: str, value: Any, parts: dict[str, str]) -> None:
    """Add the text that defines a global name, after what that text uses."""
    if name in parts:
        return
    if isinstance(value, types.ModuleType):
        parts[name] = f"import {value.__name__} as {name}"
    elif _is_installed(value):
        parts[name] = f"from {value.__module__} import {value.__name__} as {name}"
    elif isinstance(value, torch.dtype | bool | int | float | str | bytes | type(None)):
        parts[name] = f"{name} = {value!r}"
        if isinstance(value, torch.dtype):
            _add("torch", torch, parts)
    else:
        _add_source(name, value, parts)


def _add_source(name: str, value: Any, parts: dict[str, str]) -> None:
    own = getattr(value, "fn", value)  # of a kernel with @triton.jit
    if not isinstance(own, types.FunctionType | type):
        raise BadArguments(f"{name} is a {type(value).__name__}, which has no source", todo=TODO)
    if isinstance(own, types.FunctionType) and own.__closure__:
        what = f"{name} uses variables of the function that made it"
        raise BadArguments(what, todo=TODO)
    try:
        source = textwrap.dedent(inspect.getsource(own))
    except (OSError, TypeError):
        raise BadArguments(f"the source of {name} is unknown", todo=TODO) from None
    parts[name] = ""  # a function may call itself
    for used, found in _globals_of(own, source):
        _add(used, found, parts)
    del parts[name]
    parts[name] = source


def _globals_of(own: Any, source: str) -> Iterator[tuple[str, Any]]:
    """The global names in a source, with their values."""
    functions = [own] if isinstance(own, types.FunctionType) else [
        one for one in vars(own).values() if isinstance(one, types.FunctionType)
    ]  # fmt: skip
    known: dict[str, Any] = {}
    for function in functions:
        known |= function.__globals__
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id in known:
            yield node.id, known[node.id]


def _is_installed(value: Any) -> bool:
    """Can another process import this function or class by its name?"""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    found = inspect.getmodule(value) if module else None
    if found is None or name is None or getattr(found, name, None) is not value:
        return False
    file = getattr(found, "__file__", None) or ""
    return not file or "site-packages" in file or f"{Path(types.__file__).parent}/" in file
