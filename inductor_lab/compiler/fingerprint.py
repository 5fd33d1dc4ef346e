"""What a function, or a table of functions, consists of, as text that is equal in every process.

    def double(build, x): return build.op("mul", x, x, FACTOR)
        →   its bytecode, constants, defaults, closed-over values, and FACTOR

Functions of ours, of torch and of Python are named by their place: their sources are known by a
checksum and a version.  Those of a user are taken apart, with all that they refer to.
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
    """Something consists of what cannot be compared with another process."""


def content(value: Any) -> str:
    """All that a value consists of; raises Opaque."""
    words: list[str] = []
    _read(value, True, frozenset(), words)
    return "\0".join(words)


def _read(value: Any, strict: bool, within: frozenset[int], words: list[str]) -> None:
    """Add the words of a value.

    `strict` holds for what a user has made: what is not known is refused.  `within` are the
    functions that are being read.
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
    """The values that one consists of, if that is all there is to it."""
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
    """The name of a module or class that is not the user's, or of something built in."""
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
    """Bytecode and what it refers to, without the file and the lines that it stands in."""
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    words += (code.co_code.hex(), code.co_exceptiontable.hex(), repr(counts), repr(names))
    _read(code.co_consts, True, frozenset(), words)
