"""Temporary folders and locks in the cache.  Those of a killed process are deleted by the next one.

    <cache>/inductor_lab/tmp/1234-x7ab/      an entry that process 1234 is building
    <cache>/inductor_lab/tmp/3fa9….lock      the lock of the process that builds this entry
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
    """Create a folder in `parent`, and delete it afterwards if it was not renamed.

    The folder is locked while it is in use.  Unlocked folders of killed processes are deleted.
    """
    parent.mkdir(mode=0o700, exist_ok=True)
    for left in parent.iterdir():
        delete_if_abandoned(left)
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextlib.contextmanager
def one_at_a_time(parent: Path, key: str) -> Iterator[None]:
    """Let only one process and thread at a time run a block with this key.

    For example, eight ranks on a machine compile a kernel once.  Without file locks, several
    processes can run the block.
    """
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
    """Create a folder and lock it until this process ends; the lock is None if not supported."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
        if fcntl is None:
            return folder, None
        with contextlib.suppress(FileNotFoundError):  # another process deleted it before the lock
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def delete_if_abandoned(path: Path) -> None:
    """Delete a folder that no process uses; without locks, if it is older than a day."""
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
