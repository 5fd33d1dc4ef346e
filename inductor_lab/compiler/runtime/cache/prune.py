"""Limits the size of the caches on disk: the least recently used entries are deleted.

The limit applies to three caches together: the libraries of all versions of inductor_lab, its
graphs in AOTAutograd's cache, and its kernels in Triton's cache, which have a marker file.  The
modification time of an entry is the time of its last use.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inductor_lab.compiler.codegen.kernel import MARK
from inductor_lab.compiler.runtime.cache.workspace import delete_if_abandoned
from inductor_lab.compiler.torch_door import torch_aot

LIMIT_VARIABLE = "INDUCTOR_LAB_CACHE_MB"
LIMIT_MB, MOST_MB = 2048, 2**40
KEPT_FAILURES = 50
TOUCHED_AFTER = 3600.0
"""In seconds.  The time of an entry is updated at most once in this period."""
PRUNED_AFTER = 24 * 3600.0
BUILDS_BETWEEN = 200
STAMP = "pruned"
NO_VERSIONS = ("tmp", "failed", "ceilings", STAMP)

_builds = itertools.count()


@dataclass(frozen=True)
class Kind:
    """One kind of entries on disk."""

    name: str
    paths: tuple[Path, ...]

    @property
    def nbytes(self) -> int:
        return sum(map(size_of, self.paths))


def kinds(root: Path, version: str) -> tuple[Kind, ...]:
    """Return all entries on disk by kind; `version` is the installed version."""
    own = {entry for entry in libraries(root) if entry.is_relative_to(root / version)}
    return (
        Kind("libraries and measurements", tuple(own)),
        Kind("libraries of other versions", tuple(set(libraries(root)) - own)),
        Kind("compiled graphs", graphs()),
        Kind("kernels for GPUs", triton_kernels()),
        Kind("measured limits of this machine", tuple(_inside(root / "ceilings"))),
        Kind("sources that did not compile", tuple(_inside(root / "failed"))),
        Kind("unfinished", tuple(_inside(root / "tmp"))),
    )


def libraries(root: Path) -> list[Path]:
    """Return the entries of all versions, which are in folders with two-letter names."""
    versions = [path for path in _inside(root) if path.name not in NO_VERSIONS]
    return [entry for v in versions for part in _inside(v) for entry in _inside(part)]


def graphs() -> tuple[Path, ...]:
    """Return inductor_lab's entries in AOTAutograd's cache."""
    folder = torch_aot.cache_folder()
    found = _inside(Path(folder)) if folder else []
    return tuple(path for path in found if path.name.startswith(torch_aot.KEY))


def triton_kernels() -> tuple[Path, ...]:
    """Return inductor_lab's entries in Triton's cache."""
    home = Path(os.environ.get("TRITON_HOME") or os.path.expanduser("~"), ".triton", "cache")
    entries = _inside(Path(os.environ.get("TRITON_CACHE_DIR") or home))
    return tuple(entry for entry in entries if (entry / MARK).exists())


def clear(root: Path, version: str) -> int:
    """Delete everything except entries that a process is building; return the size in bytes."""
    found = kinds(root, version)
    freed = sum(kind.nbytes for kind in found)
    for kind in found:
        for path in kind.paths:
            delete_if_abandoned(path) if path.parent == root / "tmp" else _delete(path)
    return freed


def prune(root: Path, limit: int) -> None:
    """Delete the least recently used entries until at most `limit` bytes are left."""
    entries = oldest_first([*libraries(root), *graphs(), *triton_kernels()])
    sizes = {path: size_of(path) for path in entries}
    left = sum(sizes.values())
    for path in entries:
        if left <= limit:
            return
        left -= sizes[path]
        _delete(path)


def prune_sometimes(root: Path) -> None:
    """Prune once a day, and each time this process has built `BUILDS_BETWEEN` entries."""
    stamp = root / STAMP
    with contextlib.suppress(OSError):
        due = not stamp.exists() or _away(stamp) > PRUNED_AFTER
        if next(_builds) % BUILDS_BETWEEN == BUILDS_BETWEEN - 1 or due:
            stamp.touch(mode=0o600)
            prune(root, limit_in(os.environ))


def limit_in(environment: Mapping[str, str]) -> int:
    """Return the limit in bytes; the default if the variable is not a valid number."""
    with contextlib.suppress(ValueError):
        chosen = float(environment.get(LIMIT_VARIABLE, LIMIT_MB))
        if chosen >= 0:
            return int(min(chosen, MOST_MB) * 2**20)
    return LIMIT_MB * 2**20


def mark_used(entry: Path) -> None:
    """Record that an entry is used now."""
    with contextlib.suppress(OSError):
        if _away(entry) > TOUCHED_AFTER:
            os.utime(entry)


def _away(path: Path) -> float:
    """Return the seconds between now and the time of a file, which can be in the future."""
    return abs(time.time() - path.stat().st_mtime)


def oldest_first(paths: Iterable[Path]) -> list[Path]:
    """Sort paths by the time of their last use; omit paths that no longer exist."""
    times = {}
    for path in paths:
        with contextlib.suppress(OSError):
            times[path] = path.stat().st_mtime
    return sorted(times, key=lambda path: times[path])


def size_of(path: Path) -> int:
    """Return the size of a file, or of all files in a folder, in bytes."""
    total = 0
    for one in (path, *path.rglob("*")):
        with contextlib.suppress(OSError):
            total += one.stat().st_size if one.is_file() else 0
    return total


def _inside(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(folder.iterdir())
    return []


def _delete(path: Path) -> None:
    """Rename an entry, then delete it, so that no reader sees part of it."""
    gone = path.with_name(f"{path.name}.gone-{os.getpid()}")
    with contextlib.suppress(OSError):
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True) if gone.is_dir() else gone.unlink()
