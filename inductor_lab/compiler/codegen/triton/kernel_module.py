"""A Triton kernel's module as text, and what Triton's compiler is told about the kernel."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch
import triton.language as tl
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.triton import device_functions
from inductor_lab.compiler.codegen.triton import function as triton_function
from inductor_lab.compiler.codegen.triton.triton_ops import POINTER_TYPES

HEADER = f"""\
import triton
import triton.language as tl
from triton.language.extra import libdevice

from {device_functions.__name__.rpartition(".")[0]} import device_functions as lab


"""


def module_text(kernel: Kernel) -> str:
    """The whole text of a module that holds the kernel: imports, then the kernel."""
    return HEADER + str(kernel.code)


def bare_function(kernel: Kernel) -> FunctionType:
    """The kernel as a plain Python function, not yet compiled or interpreted."""
    return triton_function.bare_function(module_text(kernel), kernel.name)


def jit_function(kernel: Kernel) -> JITFunction[FunctionType]:
    """The kernel for Triton's compiler; TRITON_INTERPRET does not matter."""
    return triton_function.jit_function(module_text(kernel), kernel.name)


def compile_options(kernel: Kernel) -> dict[str, Any]:
    """What Triton's compiler is asked for; assertions only where there are some, and none of its
    own about integers that wrap."""
    options = {"num_warps": kernel.launch["num_warps"], "enable_fp_fusion": True}
    if "num_stages" in kernel.launch:
        options["num_stages"] = kernel.launch["num_stages"]
    if "asserts" in kernel.launch:
        options |= {"debug": True, "sanitize_overflow": False}
    return options


def source(kernel: Kernel, function: JITFunction[FunctionType]) -> ASTSource:
    """What Triton compiles: the kernel with the types of its arguments."""
    return triton_function.source(function, types_of(kernel), constants_of(kernel))


def types_of(kernel: Kernel) -> dict[str, str]:
    """The type of each argument, as Triton writes it."""
    types = {
        parameter.name: "i32" if parameter.dtype is None else POINTER_TYPES[parameter.dtype]
        for parameter in kernel.parameters
    }
    if "shared" in kernel.launch:
        types["exchange"] = POINTER_TYPES[torch.int64]
    return types


def constants_of(kernel: Kernel) -> dict[str, Any]:
    """The compile-time constants of a launch with small indices."""
    index = {"INDEX": tl.int32} if "reach" in kernel.launch else {}
    return {**kernel.launch["constants"], **index}
