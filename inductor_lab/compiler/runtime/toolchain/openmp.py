"""Finds the OpenMP runtime of the process.

torch has loaded an OpenMP runtime, and kernels must use the same one.  A second runtime would have
its own threads, which compete for the cores, and would ignore `torch.set_num_threads`.  Therefore
kernel libraries are linked to the file that is already loaded, whatever its name is.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import torch

RUNTIMES = ("libgomp", "libiomp5", "libomp")
"""The names of OpenMP runtimes, without version and suffix."""


def loaded_runtimes() -> tuple[Path, ...]:
    """Return the OpenMP runtimes in this process, torch's first (outside Linux: torch's files)."""
    if sys.platform != "linux":
        return _torch_files()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        names = {line.split(maxsplit=5)[-1].strip() for line in maps if "omp" in line}
    paths = sorted(Path(name) for name in names if name.startswith("/") and _is_runtime(name))
    return tuple(sorted(paths, key=lambda path: "torch" not in path.parts))


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
