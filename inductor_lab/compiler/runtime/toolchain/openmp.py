"""The OpenMP runtime of the process.

torch brings one and has it loaded.  Kernels must use that very one: a second in the process means a
second pool of threads that fight the first for the cores, and `torch.set_num_threads` that is not
heard.  So a kernel library is linked against the file that is mapped, whatever its name is.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import torch

RUNTIMES = ("libgomp", "libiomp5", "libomp")
"""Names of OpenMP runtimes, without version and suffix."""


def loaded_runtimes() -> tuple[Path, ...]:
    """The OpenMP runtimes in this process, torch's first (outside Linux: files torch brings)."""
    if sys.platform != "linux":
        return _beside_torch()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        names = {line.split(maxsplit=5)[-1].strip() for line in maps if "omp" in line}
    paths = sorted(Path(name) for name in names if name.startswith("/") and _is_runtime(name))
    return tuple(sorted(paths, key=lambda path: "torch" not in path.parts))


@cache
def torch_runtime() -> Path | None:
    """The one that torch uses, or None if it is unknown."""
    found = loaded_runtimes()
    return found[0] if found else None


def _is_runtime(path: str) -> bool:
    stem = Path(path).name.split(".")[0].split("-")[0]
    return stem in RUNTIMES


def _beside_torch() -> tuple[Path, ...]:
    folder = Path(torch.__file__).parent / "lib"
    return tuple(sorted(p for p in folder.glob("lib*omp*.dylib") if _is_runtime(p.name)))
