"""The module text of a Triton kernel, and the options, types and constants for its compilation."""

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
    """Return the text of a module with the kernel: imports, then the kernel."""
    return HEADER + str(kernel.code)


def bare_function(kernel: Kernel) -> FunctionType:
    """Return the kernel as a plain Python function, neither compiled nor interpreted."""
    return triton_function.bare_function(module_text(kernel), kernel.name)


def jit_function(kernel: Kernel) -> JITFunction[FunctionType]:
    """Return the kernel for Triton's compiler, whatever TRITON_INTERPRET says."""
    return triton_function.jit_function(module_text(kernel), kernel.name)


def compile_options(kernel: Kernel) -> dict[str, Any]:
    """Return the options for Triton's compiler.

    Assertions are compiled only if the kernel has some.  Triton's checks of integer overflow stay
    off.
    """
    options = {"num_warps": kernel.launch["num_warps"], "enable_fp_fusion": True}
    if "num_stages" in kernel.launch:
        options["num_stages"] = kernel.launch["num_stages"]
    if "asserts" in kernel.launch:
        options |= {"debug": True, "sanitize_overflow": False}
    return options


def source(kernel: Kernel, function: JITFunction[FunctionType]) -> ASTSource:
    """Return what Triton compiles: the kernel with the types of its arguments."""
    return triton_function.source(function, types_of(kernel), constants_of(kernel))


def types_of(kernel: Kernel) -> dict[str, str]:
    """Return the type of each argument in Triton's notation."""
    types = {
        parameter.name: "i32" if parameter.dtype is None else POINTER_TYPES[parameter.dtype]
        for parameter in kernel.parameters
    }
    if "shared" in kernel.launch:
        types["exchange"] = POINTER_TYPES[torch.int64]
    return types


def constants_of(kernel: Kernel) -> dict[str, Any]:
    """Return the compile-time constants of a launch with 32-bit indices."""
    index = {"INDEX": tl.int32} if "reach" in kernel.launch else {}
    return {**kernel.launch["constants"], **index}
