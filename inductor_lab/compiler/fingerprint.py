"""Computes the contents of a function, or a table of functions, as text for cache keys.

    def double(build, x): return build.op("mul", x, x, FACTOR)
        →   its bytecode, constants, defaults, closed-over values, and FACTOR

The text is the same in every process.  Functions of inductor_lab, torch and Python are represented
by file and line, because a checksum and versions identify their sources.  User functions are
represented by their code and everything that it refers to.
"""

from __future__ import annotations

import enum
import sys
import types
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from inductor_lab.compiler.torch_door.torch_api import OperatorBase, OpOverloadPacket

PACKAGE = str(Path(__file__).parents[1])
KNOWN_FOLDERS = (PACKAGE, str(Path(torch.__file__).parent))
KNOWN_MODULES = {"inductor_lab", "torch", "torchgen", "numpy", "sympy", *sys.stdlib_module_names}
PLAIN = (
    str, int, float, complex, bytes, type(None), type(Ellipsis), torch.dtype, torch.device,
    torch.layout, torch.memory_format, OperatorBase, OpOverloadPacket,
)  # fmt: skip
THEIRS = "function of a user's"
BUILT_IN = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)


class Opaque(Exception):
    """A value cannot be compared between processes."""


def content(value: Any) -> str:
    """Return the contents of a value as text.  Raises Opaque."""
    words: list[str] = []
    _read(value, True, frozenset(), words)
    return "\0".join(words)


def _read(value: Any, strict: bool, within: frozenset[int], words: list[str]) -> None:
    """Add the words of a value.

    `strict` is True for values of a user: unknown values raise Opaque.  `within` has the functions
    that are being read.
    """
    if isinstance(value, PLAIN):
        words.append(f"{type(value).__name__}:{value!r}")
    elif isinstance(value, types.FunctionType):
        _read_function(value, within, words)
    elif isinstance(value, types.CodeType):
        _read_code(value, words)
    elif isinstance(value, set | frozenset):
        words += ("{", *sorted(map(content, value)), "}")
    elif (parts := _parts(value)) is not None:
        words.append(f"{type(value).__name__}(")
        for part in parts:
            _read(part, strict, within, words)
        words.append(")")
    elif (name := _name(value)) is not None:
        words.append(name)
    elif strict:
        raise Opaque(f"a {type(value).__name__}")
    else:
        words.append(f"a {type(value).__module__}.{type(value).__qualname__}")


def _parts(value: Any) -> tuple[Any, ...] | None:
    """Return the values that define `value` completely, or None."""
    match value:
        case tuple() | list():
            return tuple(value)
        case dict():
            return tuple(part for item in value.items() for part in item)
        case types.MethodType():
            return value.__func__, value.__self__
        case partial():
            return value.func, value.args, value.keywords
        case enum.Enum():
            return type(value), value.name
        case _ if is_dataclass(value) and not isinstance(value, type):
            return type(value), *(getattr(value, part.name) for part in fields(value))
    return None


def _name(value: Any) -> str | None:
    """Return the name of a built-in object, or of a module or class that is not the user's."""
    if isinstance(value, types.ModuleType):
        return value.__name__ if _is_known(value.__name__) else None
    if isinstance(value, type):
        known = _is_known(value.__module__)
        return f"{value.__module__}.{value.__qualname__}" if known else None
    if isinstance(value, BUILT_IN):
        return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
    return None


def _is_known(module: str) -> bool:
    return module.split(".")[0] in KNOWN_MODULES


def _read_function(function: types.FunctionType, within: frozenset[int], words: list[str]) -> None:
    code = function.__code__
    if id(function) in within:
        words.append(f"itself {function.__qualname__}")
        return
    within = within | {id(function)}
    known = code.co_filename.startswith(KNOWN_FOLDERS) and _is_known(str(function.__module__))
    if known:
        file = code.co_filename.removeprefix(PACKAGE)
        words += (file, code.co_qualname, str(code.co_firstlineno))
        if function.__module__.startswith("torch."):
            return
    else:
        words.append(THEIRS)
        _read_code(code, words)
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    for value in (function.__defaults__, function.__kwdefaults__, *cells):
        _read(value, not known, within, words)
    for name in () if known else sorted(_names(code)):
        if name in function.__globals__:
            words.append(name)
            _read(function.__globals__[name], True, within, words)


def _names(code: types.CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return {*code.co_names}.union(*map(_names, inner))


def _read_code(code: types.CodeType, words: list[str]) -> None:
    """Add the words of bytecode and its constants, without file and line numbers."""
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    words += (code.co_code.hex(), code.co_exceptiontable.hex(), repr(counts), repr(names))
    _read(code.co_consts, True, frozenset(), words)
