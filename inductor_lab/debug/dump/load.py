"""Functions for a dumped `output_code.py`: compile and load its C++ text."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping

from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.compiler.runtime.toolchain.shared_library import build_library

NUMBER = "n"
"""The code of an integer parameter in a signature; `p` is an address."""


def cpp_functions(text: str, signatures: Mapping[str, str]) -> dict[str, Callable[..., int]]:
    """Compile C++ and return its functions; raises CompileFailed.

    `{"cpp_fused_sin_0": "ppn"}` is a function of two addresses and an integer.
    """
    unit = Code.of(Line(line) for line in text.split("\n"))
    library = build_library(unit, "output_code")
    found: dict[str, Callable[..., int]] = {}
    for name, kinds in signatures.items():
        function = getattr(library.handle, name)
        function.argtypes = [ctypes.c_int64 if k == NUMBER else ctypes.c_void_p for k in kinds]
        function.restype = ctypes.c_int
        function.library = library
        function.errcheck = _check
        found[name] = function
    return found


def _check(status: int, function: object, arguments: object) -> int:
    if status:
        raise IndexError(f"a kernel refused its data (status {status}): an index out of range?")
    return status
