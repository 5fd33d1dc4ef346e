"""From the text of a Triton kernel to a Python function that Triton can compile or interpret.

`@triton.jit` decides once, when it decorates, whether a function is compiled or interpreted, by an
environment variable.  Here the caller decides: the text is executed, the decorator taken off,
and the bare function given to Triton's compiler (`jit_function`) or interpreter.

Nothing but Triton is imported: a process that only compiles starts quickly.
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
    """A function of a module of this text, not yet compiled or interpreted.

    Triton reads the source of what it compiles, so the text is registered with `linecache` under a
    name of its own.
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
    assert isinstance(function, FunctionType), f"{name} is no function"
    return function


def parts_of(function: FunctionType) -> dict[str, FunctionType]:
    """The other functions of a kernel's module, which it calls."""
    return {
        name: value
        for name, value in function.__globals__.items()
        if isinstance(value, FunctionType)
        and value is not function
        and value.__globals__ is function.__globals__
    }


def undecorated(function: object) -> FunctionType:
    """What `@triton.jit` was put on."""
    inner = getattr(function, "fn", function)
    assert isinstance(inner, FunctionType), f"{function} is no function"
    return inner


def device_copy(name: str) -> ModuleType:
    """A fresh copy of `device_functions`, whose functions can be replaced."""
    path = device_functions.__file__
    spec = importlib.util.spec_from_file_location(f"{device_functions.__name__}_{name}", path)
    assert spec is not None and spec.loader is not None, f"cannot read {path}"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def compiled_device() -> ModuleType:
    """`device_functions` for Triton's compiler; TRITON_INTERPRET does not matter."""
    module = device_copy("compiled")
    for name, value in list(vars(module).items()):
        if hasattr(value, "fn"):
            setattr(module, name, JITFunction(undecorated(value)))
    return module


def jit_function(text: str, name: str) -> JITFunction[FunctionType]:
    """A function of a module of this text, for Triton's compiler; TRITON_INTERPRET does not
    matter."""
    function = bare_function(text, name)
    for part_name, part in parts_of(function).items():
        function.__globals__[part_name] = JITFunction(part)
    function.__globals__["lab"] = compiled_device()
    return JITFunction(function)


def source(
    function: JITFunction[FunctionType], types: Mapping[str, str], constants: Mapping[str, Any]
) -> ASTSource:
    """What Triton compiles: a function with the types of its arguments, pointers aligned to 16
    bytes as torch's are."""
    aligned = [position for position, of in enumerate(types.values()) if of.startswith("*")]
    attributes = {(position,): [["tt.divisibility", 16]] for position in aligned}
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    return ASTSource(function, signature, dict(constants), attributes)


def description_of(compiled: Any) -> Path:
    """The file in which Triton describes what it has compiled, beside the machine code."""
    files = compiled.metadata_group.items()
    return next(Path(path) for name, path in files if name.endswith(".json"))
