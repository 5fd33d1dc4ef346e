"""Our own library for products with a packed weight (`codegen/cpp/headers/lab_product.h`).

It is a candidate like oneDNN and MKL, and chosen where it is the fastest (`matmul_libraries.py`).
Its threads take small parts of the work when they are free.  So a thread that shares its processor
with another program does less, while the libraries give each thread an equal part.

Inductor: `CppPackedGemmTemplate` in `codegen/cpp_gemm_template.py`, with parts of equal size.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from inductor_lab.compiler.accelerate.packing import LIBRARIES, Library, weights_among
from inductor_lab.compiler.accelerate.pool import POOL
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.runtime.toolchain.shared_library import library_of

NAME = "inductor_lab"
KINDS = {torch.float32: "lab_tiles_of_floats", torch.bfloat16: "lab_tiles_of_bfloats"}
"""The part of the header for each dtype."""
_TEXT = """
extern "C" LAB_EXPORT int64_t KIND_columns() {
    return KIND::known ? KIND::lanes * KIND::vectors : 0;
}
extern "C" LAB_EXPORT int64_t KIND_step() { return KIND::step; }
extern "C" LAB_EXPORT void KIND_pack(
    const KIND::element* weight, KIND::element* packed, int64_t N, int64_t K) {
    lab_pack_weight<KIND>(weight, packed, N, K);
}
extern "C" LAB_EXPORT int KIND_product(
    const KIND::element* x, int64_t x_stride, const KIND::element* packed,
    const KIND::element* bias, KIND::element* out, int64_t M, int64_t N, int64_t K,
    int64_t threads) {
    lab_packed_product<KIND>(x, x_stride, packed, bias, out, M, N, K, threads);
    return 0;
}
"""


@dataclass(frozen=True)
class Functions:
    """The compiled functions for one dtype.

    columns  of a panel; 0 if this processor has no vectors for the dtype
    step     elements along k that are together in a panel
    """

    columns: int
    step: int
    pack: Any
    product: Any


@cache
def functions_for(dtype: torch.dtype) -> Functions | None:
    """None without a compiler, or if nothing is known for this dtype on this machine."""
    if dtype not in KINDS:
        return None
    try:
        library = library_of(_TEXT.replace("KIND", KINDS[dtype]), "product").handle
    except (LabError, OSError):
        return None
    columns, step, pack, product = (getattr(library, f"{KINDS[dtype]}_{name}")
                                    for name in ("columns", "step", "pack", "product"))  # fmt: skip
    address, number = ctypes.c_void_p, ctypes.c_int64
    columns.restype = step.restype = number
    pack.argtypes = (address, address, number, number)
    product.argtypes = (address, number, address, address, address, *[number] * 4)
    pack.restype, product.restype = None, ctypes.c_int
    found = Functions(columns(), step(), pack, product)
    return found if found.columns else None


def ahead(inputs: Sequence[Any], options: Options) -> Iterable[tuple[Any, tuple[Any, ...]]]:
    """What products with the weights of a graph need."""
    dtypes = {weight.dtype for weight in weights_among(inputs, options)}
    return [(functions_for, (dtype,)) for dtype in KINDS if dtype in dtypes]


def knows(dtype: torch.dtype) -> bool:
    """Does it multiply matrices of this dtype on this machine?"""
    return functions_for(dtype) is not None


def pack(weight: torch.Tensor, rows: int) -> torch.Tensor:
    """The panels of a contiguous weight, flat; the order does not depend on `rows`."""
    functions = functions_for(weight.dtype)
    assert functions is not None, "see `knows`"
    count, depth = weight.shape
    panels, pairs = -(-count // functions.columns), -(-depth // functions.step)
    size = panels * functions.columns * pairs * functions.step
    packed = torch.empty(size, dtype=weight.dtype)
    functions.pack(weight.data_ptr(), packed.data_ptr(), count, depth)
    return packed


def multiply(
    x: torch.Tensor, packed: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Return `x @ weight.t() + bias`; of `weight` only the shape is used."""
    functions = functions_for(x.dtype)
    assert functions is not None, "see `knows`"
    count, depth = weight.shape
    rows = x.shape[0]
    if x.stride(1) != 1:
        x = x.contiguous()
    out = POOL.empty_result((rows, count), (count, 1), x.dtype)
    begin = None if bias is None else bias.data_ptr()
    functions.product(x.data_ptr(), x.stride(0), packed.data_ptr(), begin, out.data_ptr(),
                      rows, count, depth, torch.get_num_threads())  # fmt: skip
    return out


LIBRARIES[NAME] = Library(pack, multiply, knows)
