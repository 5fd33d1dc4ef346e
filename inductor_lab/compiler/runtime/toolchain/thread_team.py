"""On a busy machine, kernels run their parallel regions on threads of our own (`thread_team.h`).

libgomp waits for all its threads in every region, also for one whose processor another program
uses.  Our threads share a region in small parts, so such a thread does fewer.  Kernels are linked
with `--wrap`, which replaces the functions of libgomp; their text stays OpenMP.  While nothing else
uses the processors, regions run on libgomp's threads.

`INDUCTOR_LAB_THREADS` is `team` (always our own), `openmp` (never), or not set.  A kernel that uses
more of OpenMP than parallel loops keeps libgomp, and so does every compiler except GCC on Linux.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.runtime.cache.kernel_cache import usable_cache
from inductor_lab.compiler.runtime.toolchain.compiler_flags import Family

VARIABLE = "INDUCTOR_LAB_THREADS"
ALWAYS, NEVER = "team", "openmp"
WRAPPED = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
_REGION = re.compile(r"^\s*#pragma omp parallel\b", re.MULTILINE)
_OTHER = re.compile(
    r"^\s*#pragma omp (?:.*\b(?:barrier|critical|single|master|masked|ordered|sections|tasks?"
    r"|taskloop|teams|target|cancel|copyin|copyprivate)\b|for\b(?!.*\bnowait\b)"
    r"|(?:parallel )?for\b.*\bschedule\((?!static))",
    re.MULTILINE,
)
"""What needs more than the number of a thread and the number of threads.  For a dynamic schedule,
GCC calls another function than GOMP_parallel."""


class Toolchain(Protocol):
    """What this file needs of `find_compiler.Toolchain`."""

    @property
    def family(self) -> Family: ...
    @property
    def openmp(self) -> Path | None: ...
    @property
    def identity(self) -> str: ...

    def compile(self, source: Path, library: Path, more: Sequence[str] = ()) -> Any: ...


@dataclass
class Loaded:
    """The library in this process; `always` is whether it does all regions."""

    path: Path
    handle: ctypes.CDLL
    always: bool = False

    def ask(self, always: bool) -> None:
        """Let our threads do all regions, or those on a busy machine."""
        if always != self.always:
            self.handle.lab_use_team(int(always))
            self.always = always

    @property
    def is_busy(self) -> bool:
        """Do our threads do the regions now?"""
        return bool(self.handle.lab_uses_team())


_LOCK = threading.Lock()
_LOADED: dict[str, Loaded | None] = {}
"""The libraries by the identity of the toolchain; they stay loaded, because their threads live as
long as the process."""


@cache
def source() -> str:
    """The text of the library."""
    return (Path(__file__).parent / "thread_team.h").read_text(encoding="utf-8")


@cache
def name() -> str:
    """The name of the library, by which kernels find it."""
    return f"inductor_lab_team_{hashlib.sha256(source().encode()).hexdigest()[:12]}.so"


def is_possible(toolchain: Toolchain) -> bool:
    """Can kernels of this toolchain be linked to our threads?"""
    joined = toolchain.openmp is not None and "libgomp" in toolchain.openmp.name
    return joined and toolchain.family.name == "gcc" and sys.platform == "linux"


def is_used(toolchain: Toolchain) -> bool:
    """Is it possible, and not refused?"""
    return os.environ.get(VARIABLE) != NEVER and is_possible(toolchain)


def is_always_used() -> bool:
    """If it is used: for all regions, or for those on a busy machine?"""
    return os.environ.get(VARIABLE) == ALWAYS


def flags(toolchain: Toolchain, text: str) -> list[str]:
    """The linker's flags for the text of a kernel library, after `loaded_for`."""
    library = _LOADED.get(toolchain.identity) if is_linked(toolchain, text) else None
    if library is None or not library.path.exists():
        return []
    return [*(f"-Wl,--wrap={function}" for function in WRAPPED), str(library.path)]


def is_linked(toolchain: Toolchain, text: str) -> bool:
    """Is a kernel library with this text linked to our threads?"""
    return is_used(toolchain) and bool(_REGION.search(text)) and not _OTHER.search(text)


def loaded_for(toolchain: Toolchain, text: str) -> Loaded | None:
    """Load our threads if a kernel library with this text is linked to them; return their library.

    It is compiled, or found in the cache.  A kernel library finds it by its name, so it must be
    loaded before.  None means that the kernels use OpenMP's threads.
    """
    if not is_linked(toolchain, text):
        return None
    with _LOCK:
        key = toolchain.identity
        found = _LOADED.get(key)
        if key not in _LOADED or (found and not found.path.exists()):  # the cache was emptied
            found = _LOADED[key] = _load(toolchain)
        if found is not None:
            found.ask(is_always_used())
        return found


def _load(toolchain: Toolchain) -> Loaded | None:
    def build(folder: Path) -> None:
        file = folder / "thread_team.cpp"
        file.write_text(source(), encoding="utf-8")
        attempt = toolchain.compile(file, folder / name(), more=(f"-Wl,-soname,{name()}",))
        if attempt.status != 0:
            raise OSError(attempt.output)

    try:
        path = usable_cache().entry((source(), toolchain.identity), build) / name()
        return Loaded(path, ctypes.CDLL(str(path)))
    except (LabError, OSError):
        return None
