"""Compiled libraries on disk, in a directory that is the user's own.

An entry is a folder named by the hash of all it depends on.  It is built under a temporary name and
renamed when it is whole, so a reader sees all of it or nothing, whoever else writes and whenever
somebody presses Ctrl-C.  Each holds a checksum; what does not match it is built anew.

    <cache>/inductor_lab/<version>/3f/3fa9…/   kernel.cpp  kernel.so  sha256
    <cache>/inductor_lab/tmp/                  what is being built

Inductor: `codecache.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import platformdirs

from inductor_lab.errors import CacheRefused

VARIABLE = "INDUCTOR_LAB_CACHE_DIR"
CHECKSUM = "sha256"
ELSEWHERE = f"set {VARIABLE} to a directory of your own"


class DamagedEntry(UserWarning):
    """A cache entry did not match its checksum and was built again."""


@dataclass(frozen=True)
class Cache:
    """A directory of entries that is ours alone; made by `open_cache`."""

    root: Path

    def entry(self, parts: tuple[str, ...], build: Callable[[Path], None]) -> Path:
        """The folder for everything in `parts`; `build(folder)` fills it if it is not there yet."""
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        final = self.root / own_version() / key[:2] / key
        if final.exists():
            if is_sound(final):
                return final
            message = f"the cache entry {final} is damaged; it is built again"
            warnings.warn(message, DamagedEntry, stacklevel=2)
            self._discard(final)
        with self._workspace() as folder:
            build(folder)
            (folder / CHECKSUM).write_text(checksum(folder), encoding="ascii")
            return self._publish(folder, final)

    def keep_failed(self, name: str, text: str) -> Path:
        """Write a source that did not compile to where the person can look at it; its path."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        path = self.root / "failed" / f"{name}_{digest}.cpp"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def nbytes(self) -> int:
        """Bytes of all files in it."""
        return sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())

    @contextlib.contextmanager
    def _workspace(self) -> Iterator[Path]:
        """A new folder on the same file system, gone afterwards (unless it was renamed)."""
        parent = self.root / "tmp"
        parent.mkdir(mode=0o700, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _publish(self, folder: Path, final: Path) -> Path:
        """Rename a finished entry to its name; if another process was quicker, take theirs."""
        final.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            folder.rename(final)
        except OSError:
            if not is_sound(final):
                raise
        return final

    def _discard(self, entry: Path) -> None:
        """Move an entry out of the way in one step, then delete it."""
        with self._workspace() as folder, contextlib.suppress(FileNotFoundError):
            entry.rename(folder / "damaged")


def open_cache(environment: Mapping[str, str] = os.environ) -> Cache:
    """The user's cache directory, mode 0700.  Raises CacheRefused if it cannot be trusted.

    Libraries in it are loaded into this process, so a directory that belongs to somebody else is
    never used, not even to read.
    """
    chosen = environment.get(VARIABLE)
    root = (
        Path(chosen).expanduser().absolute() / "inductor_lab"
        if chosen
        else platformdirs.user_cache_path("inductor_lab", appauthor=False)
    )
    if problem := distrust(root):
        raise CacheRefused(problem, todo=ELSEWHERE)
    if hasattr(os, "geteuid") and root.stat().st_mode & 0o077:
        root.chmod(0o700)
    return Cache(root)


def distrust(folder: Path) -> str:
    """Why code from a folder, which is made if it is missing, must not become code of this process;
    "" if it may."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
    except OSError as problem:
        return f"no cache directory at {folder}: {problem}"
    if hasattr(os, "geteuid") and facts.st_uid != os.geteuid():
        return (
            f"the cache directory {folder} belongs to user {facts.st_uid}, "
            f"and you are user {os.geteuid()}"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"the cache directory {folder} cannot be written"
    return ""


def checksum(entry: Path) -> str:
    """Of the names and contents of all files of an entry but the checksum itself."""
    digest = hashlib.sha256()
    for path in sorted(entry.iterdir()):
        if path.name != CHECKSUM:
            digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def is_sound(entry: Path) -> bool:
    """Does an entry match its checksum?"""
    try:
        return (entry / CHECKSUM).read_text(encoding="ascii") == checksum(entry)
    except (OSError, UnicodeDecodeError):
        return False


def own_version() -> str:
    """The version of inductor_lab that is installed ("unknown" in a bare checkout)."""
    try:
        return version("inductor_lab")
    except PackageNotFoundError:
        return "unknown"
