"""The caches on disk are bounded: beyond a limit, the least recently used entries are deleted.

That holds for the folder of libraries, of all versions of ours together, for our graphs among those
that AOTAutograd keeps, and for our kernels among those that Triton keeps, each with a mark of ours.
An entry is used when it is found, which its time tells.
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
from inductor_lab.compiler.runtime.cache.workspace import delete_if_left
from inductor_lab.compiler.torch_door import torch_aot

LIMIT_VARIABLE = "INDUCTOR_LAB_CACHE_MB"
LIMIT_MB, MOST_MB = 2048, 2**40
KEPT_FAILURES = 50
TOUCHED_AFTER = 3600.0
"""Seconds; a use so soon after the last one changes no order that matters."""
PRUNED_AFTER = 24 * 3600.0
BUILDS_BETWEEN = 200
STAMP = "pruned"
NO_VERSIONS = ("tmp", "failed", "ceilings", STAMP)

_builds = itertools.count()


@dataclass(frozen=True)
class Kind:
    """One kind of what is on disk."""

    name: str
    paths: tuple[Path, ...]

    @property
    def nbytes(self) -> int:
        return sum(map(size_of, self.paths))


def kinds(root: Path, version: str) -> tuple[Kind, ...]:
    """All that is on disk, by kind; `version` is ours."""
    own = {entry for entry in libraries(root) if entry.is_relative_to(root / version)}
    return (
        Kind("libraries and measurements", tuple(own)),
        Kind("the same, of other versions", tuple(set(libraries(root)) - own)),
        Kind("compiled graphs", graphs()),
        Kind("kernels for GPUs", triton_kernels()),
        Kind("limits of this machine", tuple(_inside(root / "ceilings"))),
        Kind("sources that did not compile", tuple(_inside(root / "failed"))),
        Kind("unfinished", tuple(_inside(root / "tmp"))),
    )


def libraries(root: Path) -> list[Path]:
    """The entries of all versions: folders in folders of two letters."""
    versions = [path for path in _inside(root) if path.name not in NO_VERSIONS]
    return [entry for v in versions for part in _inside(v) for entry in _inside(part)]


def graphs() -> tuple[Path, ...]:
    """Our entries among AOTAutograd's."""
    folder = torch_aot.cache_folder()
    found = _inside(Path(folder)) if folder else []
    return tuple(path for path in found if path.name.startswith(torch_aot.KEY))


def triton_kernels() -> tuple[Path, ...]:
    """Our entries in the folder of Triton's compiler, which keeps everybody's."""
    home = Path(os.environ.get("TRITON_HOME") or os.path.expanduser("~"), ".triton", "cache")
    entries = _inside(Path(os.environ.get("TRITON_CACHE_DIR") or home))
    return tuple(entry for entry in entries if (entry / MARK).exists())


def clear(root: Path, version: str) -> int:
    """Delete everything but what a process is building; returns the bytes."""
    found = kinds(root, version)
    freed = sum(kind.nbytes for kind in found)
    for kind in found:
        for path in kind.paths:
            delete_if_left(path) if path.parent == root / "tmp" else _delete(path)
    return freed


def prune(root: Path, limit: int) -> None:
    """Delete what was used longest ago until no more than `limit` bytes are left."""
    entries = oldest_first([*libraries(root), *graphs(), *triton_kernels()])
    sizes = {path: size_of(path) for path in entries}
    left = sum(sizes.values())
    for path in entries:
        if left <= limit:
            return
        left -= sizes[path]
        _delete(path)


def prune_sometimes(root: Path) -> None:
    """Prune once a day, and after every so many entries that this process has made."""
    stamp = root / STAMP
    with contextlib.suppress(OSError):
        due = not stamp.exists() or _away(stamp) > PRUNED_AFTER
        if next(_builds) % BUILDS_BETWEEN == BUILDS_BETWEEN - 1 or due:
            stamp.touch(mode=0o600)
            prune(root, limit_in(os.environ))


def limit_in(environment: Mapping[str, str]) -> int:
    """How many bytes may be kept; the usual number, where what is said is none."""
    with contextlib.suppress(ValueError):
        chosen = float(environment.get(LIMIT_VARIABLE, LIMIT_MB))
        if chosen >= 0:
            return int(min(chosen, MOST_MB) * 2**20)
    return LIMIT_MB * 2**20


def touched(entry: Path) -> None:
    """An entry was used now."""
    with contextlib.suppress(OSError):
        if _away(entry) > TOUCHED_AFTER:
            os.utime(entry)


def _away(path: Path) -> float:
    """Seconds between now and a file's time, which a clock that was wrong may have put later."""
    return abs(time.time() - path.stat().st_mtime)


def oldest_first(paths: Iterable[Path]) -> list[Path]:
    """By the time of their last use; what is not there any more is left out."""
    times = {}
    for path in paths:
        with contextlib.suppress(OSError):
            times[path] = path.stat().st_mtime
    return sorted(times, key=lambda path: times[path])


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
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
    """Move it away in one step first: a reader sees all of it or nothing."""
    gone = path.with_name(f"{path.name}.gone-{os.getpid()}")
    with contextlib.suppress(OSError):
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True) if gone.is_dir() else gone.unlink()
