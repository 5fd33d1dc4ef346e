"""Converts the text of a Triton kernel to a Python function that Triton can compile or interpret.

`@triton.jit` reads an environment variable to decide whether a function is compiled or interpreted.
Here the caller decides.  The text is executed, the decorator is removed, and the bare function is
passed to Triton's compiler (`jit_function`) or interpreter.

This module imports only Triton, so that a process that only compiles starts quickly.
"""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from inductor_lab.compiler.codegen.triton import device_functions


def bare_function(text: str, name: str) -> FunctionType:
    """Execute `text` as a module, and return its function `name`, neither compiled nor interpreted.

    Triton reads the source of the functions that it compiles.  Therefore the text is registered
    with `linecache` under a unique name.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    filename = f"<{name}-{digest}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, object] = {"__name__": f"inductor_lab.generated.{name}"}
    exec(compile(text, filename, "exec"), namespace)
    for defined, value in list(namespace.items()):
        if hasattr(value, "fn"):
            namespace[defined] = undecorated(value)
    function = namespace[name]
    assert isinstance(function, FunctionType), f"{name} is not a function"
    return function


def parts_of(function: FunctionType) -> dict[str, FunctionType]:
    """Return the other functions of a kernel's module, which the kernel calls."""
    return {
        name: value
        for name, value in function.__globals__.items()
        if isinstance(value, FunctionType)
        and value is not function
        and value.__globals__ is function.__globals__
    }


def undecorated(function: object) -> FunctionType:
    """Return the Python function inside a `@triton.jit` function."""
    inner = getattr(function, "fn", function)
    assert isinstance(inner, FunctionType), f"{function} is not a function"
    return inner


def device_copy(name: str) -> ModuleType:
    """Return a new copy of `device_functions`, whose functions can be replaced."""
    path = device_functions.__file__
    spec = importlib.util.spec_from_file_location(f"{device_functions.__name__}_{name}", path)
    assert spec is not None and spec.loader is not None, f"cannot read {path}"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def compiled_device() -> ModuleType:
    """Return `device_functions` for Triton's compiler, whatever TRITON_INTERPRET says."""
    module = device_copy("compiled")
    for name, value in list(vars(module).items()):
        if hasattr(value, "fn"):
            setattr(module, name, JITFunction(undecorated(value)))
    return module


def jit_function(text: str, name: str) -> JITFunction[FunctionType]:
    """Execute `text` as a module, and return its function `name` for Triton's compiler.

    The variable TRITON_INTERPRET has no effect.
    """
    function = bare_function(text, name)
    for part_name, part in parts_of(function).items():
        function.__globals__[part_name] = JITFunction(part)
    function.__globals__["lab"] = compiled_device()
    return JITFunction(function)


def source(
    function: JITFunction[FunctionType], types: Mapping[str, str], constants: Mapping[str, Any]
) -> ASTSource:
    """Return what Triton compiles: a function with the types of its arguments.

    Pointers are aligned to 16 bytes, as torch allocates them.
    """
    aligned = [position for position, of in enumerate(types.values()) if of.startswith("*")]
    attributes = {(position,): [["tt.divisibility", 16]] for position in aligned}
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    return ASTSource(function, signature, dict(constants), attributes)


def metadata_file(compiled: Any) -> Path:
    """Return the path of Triton's metadata for a compiled kernel, next to the machine code."""
    files = compiled.metadata_group.items()
    return next(Path(path) for name, path in files if name.endswith(".json"))
