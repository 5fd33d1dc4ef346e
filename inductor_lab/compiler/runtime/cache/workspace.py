"""Folders and locks of processes at work in the cache; what a killed one leaves, another deletes.

    <cache>/inductor_lab/tmp/1234-x7ab/      what process 1234 is building
    <cache>/inductor_lab/tmp/3fa9….lock      held by the one process that builds this entry
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

DAY = 24 * 3600.0


@contextlib.contextmanager
def workspace(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, gone afterwards (unless it was renamed).

    It is locked while in use; folders without a lock, of killed processes, are deleted now.
    """
    parent.mkdir(mode=0o700, exist_ok=True)
    for left in parent.iterdir():
        delete_if_left(left)
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextlib.contextmanager
def one_at_a_time(parent: Path, key: str) -> Iterator[None]:
    """Of all processes and threads, one is in a block with this key: eight ranks of a machine
    compile a kernel once.  Where there are no locks, several may."""
    path = parent / f"{key}.lock"
    parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _locked_folder(parent: Path) -> tuple[Path, int | None]:
    """A new folder, and a lock on it that ends with this process; None where there are none."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
        if fcntl is None:
            return folder, None
        with contextlib.suppress(FileNotFoundError):  # another process took it for abandoned
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def delete_if_left(path: Path) -> None:
    """Delete what no process uses; without locks, what is of yesterday."""
    with contextlib.suppress(OSError):
        if fcntl is None:
            if time.time() - path.stat().st_mtime > DAY:
                _delete(path)
            return
        lock = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _delete(path)
        finally:
            os.close(lock)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()
