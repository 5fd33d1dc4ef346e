"""Finds the OpenMP runtime of the process.

torch has loaded an OpenMP runtime, and kernels must use the same one.  A second runtime would have
its own threads, which compete for the cores, and would ignore `torch.set_num_threads`.  Therefore
kernel libraries are linked to the file that is already loaded, whatever its name is.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch

RUNTIMES = ("libgomp", "libiomp5", "libomp")
"""The names of OpenMP runtimes, without version and suffix."""


def loaded_runtimes() -> tuple[Path, ...]:
    """Return the OpenMP runtimes in this process, torch's first (outside Linux: torch's files)."""
    if sys.platform != "linux":
        return _torch_files()
    paths = sorted({Path(os.path.realpath(name)) for name in _loaded_libraries()
                    if name.startswith("/") and _is_runtime(name)})  # fmt: skip
    return tuple(sorted(paths, key=lambda path: "torch" not in path.parts))


class _Library(ctypes.Structure):
    """The beginning of `struct dl_phdr_info`."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def _loaded_libraries() -> list[str]:
    """The shared libraries of this process, by dl_iterate_phdr(3): a confined process cannot read
    /proc/self/maps."""
    names: list[str] = []

    def note(library: Any, size: int, data: Any) -> int:
        names.append(os.fsdecode(library.contents.name or b""))
        return 0

    called = (ctypes.c_int, ctypes.POINTER(_Library), ctypes.c_size_t, ctypes.c_void_p)
    ctypes.CDLL(None).dl_iterate_phdr(ctypes.CFUNCTYPE(*called)(note), None)
    return names


@cache
def torch_runtime() -> Path | None:
    """Return the runtime that torch uses, or None if it is unknown."""
    found = loaded_runtimes()
    return found[0] if found else None


def _is_runtime(path: str) -> bool:
    stem = Path(path).name.split(".")[0].split("-")[0]
    return stem in RUNTIMES


def _torch_files() -> tuple[Path, ...]:
    folder = Path(torch.__file__).parent / "lib"
    return tuple(sorted(p for p in folder.glob("lib*omp*.dylib") if _is_runtime(p.name)))
