"""Evict memory from the caches of the processor, so that the next call reads it from memory.

`clflush` (x86) and `dc civac` (64-bit Arm) evict a line from all caches of all cores.  They work
in a shared mapping too: the other process finds the same physical line in memory.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import torch

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.compiler.runtime.toolchain.shared_library import build_library

Evict = Callable[[torch.Tensor], None]
_TEXT = """
#include <cstdint>
#if defined(__x86_64__)
#include <emmintrin.h>
static void evict_line(const char* at) { _mm_clflush(at); }
static void wait() { _mm_mfence(); }
#define KNOWN 1
#elif defined(__aarch64__) && defined(__linux__)
static void evict_line(const char* at) { asm volatile("dc civac, %0" ::"r"(at) : "memory"); }
static void wait() { asm volatile("dsb sy" ::: "memory"); }
#define KNOWN 1
#else
static void evict_line(const char*) {}
static void wait() {}
#define KNOWN 0
#endif
extern "C" int known() { return KNOWN; }
extern "C" void evict(const char* from, int64_t count) {
    const int64_t line = 64;
    for (int64_t at = 0; at < count; at += line) evict_line(from + at);
    if (count > 0) evict_line(from + count - 1);
    wait();
}
"""


@functools.cache
def evictor() -> Evict | None:
    """A function that evicts the elements of a contiguous tensor; None where there is none, which
    needs a C++ compiler."""
    unit = Code.of(Line(text) for text in _TEXT.strip().splitlines())
    try:
        library = build_library(unit, "evict")
    except (LabError, OSError):
        return None
    if not library.handle.known():
        return None

    def evict(one: torch.Tensor) -> None:
        count = one.numel() * one.element_size()
        library.handle.evict(ctypes.c_void_p(one.data_ptr()), ctypes.c_int64(count))

    return evict
