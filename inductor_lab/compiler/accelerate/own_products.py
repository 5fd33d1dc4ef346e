"""Our own library for products with a packed weight (`codegen/cpp/headers/lab_product.h`).

It is a candidate like oneDNN and MKL, and chosen where it is the fastest (`matmul_libraries.py`).
Its threads take small parts of the work when they are free.  So a thread that shares its processor
with another program does less, while the libraries give each thread an equal part.

Inductor: `CppPackedGemmTemplate` in `codegen/cpp_gemm_template.py`, with parts of equal size.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch

from inductor_lab.compiler.accelerate.packing import LIBRARIES, Library
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.codegen.cpp.header import header_lines
from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.compiler.runtime.memory import empty_strided_cpu
from inductor_lab.compiler.runtime.toolchain.shared_library import build_library

NAME = "inductor_lab"
_TEXT = """
extern "C" LAB_EXPORT int64_t columns() { return lab_panel::known ? lab_panel::columns : 0; }
extern "C" LAB_EXPORT void pack(const float* weight, float* packed, int64_t N, int64_t K) {
    lab_pack_weight(weight, packed, N, K);
}
extern "C" LAB_EXPORT void product(
    const float* x, int64_t x_stride, const float* packed, const float* bias, float* out,
    int64_t M, int64_t N, int64_t K, int64_t threads) {
    lab_product(x, x_stride, packed, bias, out, M, N, K, threads);
}
"""


@cache
def _functions() -> Any:
    """The compiled functions; None if this machine has no compiler, or no vectors that it knows."""
    lines = _TEXT.strip().splitlines()
    unit = Code.of(Line(text) for text in (*header_lines(lines), "", *lines))
    try:
        functions = build_library(unit, "product").handle
    except (LabError, OSError):
        return None
    address, number = ctypes.c_void_p, ctypes.c_int64
    functions.columns.restype = number
    functions.pack.argtypes = (address, address, number, number)
    functions.product.argtypes = (address, number, address, address, address, *[number] * 4)
    functions.pack.restype = functions.product.restype = None
    return functions if functions.columns() else None


def knows(dtype: torch.dtype) -> bool:
    """Does it multiply matrices of this dtype on this machine?"""
    return dtype is torch.float32 and _functions() is not None


def pack(weight: torch.Tensor, rows: int) -> torch.Tensor:
    """The panels of a contiguous weight, flat; the order does not depend on `rows`."""
    functions = _functions()
    count, depth = weight.shape
    width = functions.columns()
    packed = torch.empty(-(-count // width) * width * depth, dtype=weight.dtype)
    functions.pack(weight.data_ptr(), packed.data_ptr(), count, depth)
    return packed


def multiply(
    x: torch.Tensor, packed: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Return `x @ weight.t() + bias`; of `weight` only the shape is used."""
    count, depth = weight.shape
    rows = x.shape[0]
    if x.stride(1) != 1:
        x = x.contiguous()
    out: torch.Tensor = empty_strided_cpu((rows, count), (count, 1), torch.float32)
    begin = None if bias is None else bias.data_ptr()
    _functions().product(x.data_ptr(), x.stride(0), packed.data_ptr(), begin, out.data_ptr(),
                         rows, count, depth, torch.get_num_threads())  # fmt: skip
    return out


LIBRARIES[NAME] = Library(pack, multiply, knows)
