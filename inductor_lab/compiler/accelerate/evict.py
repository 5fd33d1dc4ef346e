"""Removes a weight from the processor's caches before a product is timed.

A model reads each weight once in a call, and all of its weights are larger than the caches.  With a
weight in the cache, libraries that wait for memory look as fast as those that fetch it ahead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import torch

from inductor_lab.compiler.accelerate.packing import weights_among
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.library_ops import packed_address, packed_bytes
from inductor_lab.compiler.runtime.toolchain.shared_library import library_of

_TEXT = """
extern "C" LAB_EXPORT void evict(const void* from, int64_t bytes) { lab_evict(from, bytes); }
"""


def evict(weight: torch.Tensor) -> None:
    """Remove a weight, also one that a library has packed, from all caches.

    Nothing is done without a compiler, or on processors other than x86.
    """
    if weight.is_mkldnn and (packed_address is None or packed_bytes is None):
        return
    address, count = (packed_address, packed_bytes) if weight.is_mkldnn else (_address, _bytes)
    _function()(address(weight), count(weight))


def ahead(inputs: Sequence[Any], options: Options) -> Iterable[tuple[Any, tuple[Any, ...]]]:
    """What is needed to time the products of a graph."""
    return [(_function, ())] if weights_among(inputs, options) else []


def _address(weight: torch.Tensor) -> int:
    return weight.data_ptr()


def _bytes(weight: torch.Tensor) -> int:
    return weight.nbytes


@cache
def _function() -> Callable[[int, int], Any]:
    try:
        found = library_of(_TEXT, "evict").handle.evict
    except (LabError, OSError):
        return lambda address, count: None
    found.argtypes, found.restype = (ctypes.c_void_p, ctypes.c_int64), None
    call: Callable[[int, int], Any] = found
    return call
