"""From the text of a Triton kernel to a Python function that Triton can compile or interpret.

`@triton.jit` decides once, when it decorates, whether a function is compiled or interpreted, by an
environment variable.  Here the caller decides: the text is executed, the decorator taken off,
and the bare function given to Triton's compiler (`jit_function`) or interpreter.
"""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import torch
import triton.language as tl
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from inductor_lab.codegen import triton_device
from inductor_lab.codegen.kernel import Kernel
from inductor_lab.codegen.triton_ops import POINTER_TYPES

HEADER = f"""\
import triton
import triton.language as tl
from triton.language.extra import libdevice

from {triton_device.__name__.rpartition(".")[0]} import triton_device as lab


"""


def module_text(kernel: Kernel) -> str:
    """The whole text of a module that holds the kernel: imports, then the kernel."""
    return HEADER + str(kernel.code)


def bare_function(kernel: Kernel) -> FunctionType:
    """The kernel as a plain Python function, not yet compiled or interpreted.

    Triton reads the source of what it compiles, so the text is registered with `linecache` under a
    name of its own.
    """
    text = module_text(kernel)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    filename = f"<{kernel.name}-{digest}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, object] = {"__name__": f"inductor_lab.generated.{kernel.name}"}
    exec(compile(text, filename, "exec"), namespace)
    for name, value in list(namespace.items()):
        if hasattr(value, "fn"):
            namespace[name] = undecorated(value)
    function = namespace[kernel.name]
    assert isinstance(function, FunctionType), f"{kernel.name} is no function"
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
    """A fresh copy of `triton_device`; its functions see one another, so they can be replaced."""
    path = triton_device.__file__
    spec = importlib.util.spec_from_file_location(f"{triton_device.__name__}_{name}", path)
    assert spec is not None and spec.loader is not None, f"cannot read {path}"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def compiled_device() -> ModuleType:
    """`triton_device` for Triton's compiler; TRITON_INTERPRET does not matter."""
    module = device_copy("compiled")
    for name, value in list(vars(module).items()):
        if hasattr(value, "fn"):
            setattr(module, name, JITFunction(undecorated(value)))
    return module


def compile_options(kernel: Kernel) -> dict[str, Any]:
    """What Triton's compiler is asked for; assertions only where there are some, and none of its
    own about integers that wrap."""
    options = {"num_warps": kernel.launch["num_warps"], "enable_fp_fusion": True}
    if "asserts" in kernel.launch:
        options |= {"debug": True, "sanitize_overflow": False}
    return options


def jit_function(kernel: Kernel) -> JITFunction[FunctionType]:
    """The kernel for Triton's compiler; TRITON_INTERPRET does not matter."""
    function = bare_function(kernel)
    for name, part in parts_of(function).items():
        function.__globals__[name] = JITFunction(part)
    function.__globals__["lab"] = compiled_device()
    return JITFunction(function)


def source(kernel: Kernel, function: JITFunction[FunctionType]) -> ASTSource:
    """What Triton compiles: the kernel with the types of its arguments, pointers aligned to 16
    bytes as torch's are."""
    signature: dict[str, str] = {}
    attributes: dict[tuple[int], list[list[object]]] = {}
    for position, parameter in enumerate(kernel.parameters):
        if parameter.dtype is None:
            signature[parameter.name] = "i32"
        else:
            signature[parameter.name] = POINTER_TYPES[parameter.dtype]
            attributes[(position,)] = [["tt.divisibility", 16]]
    if "shared" in kernel.launch:
        attributes[(len(signature),)] = [["tt.divisibility", 16]]
        signature["exchange"] = POINTER_TYPES[torch.int64]
    constants: dict[str, Any] = dict(kernel.launch["constants"])
    if "reach" in kernel.launch:
        constants["INDEX"] = tl.int32
    signature.update(dict.fromkeys(constants, "constexpr"))
    return ASTSource(function, signature, constants, attributes)
