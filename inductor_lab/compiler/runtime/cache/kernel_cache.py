"""The cache of compiled libraries on disk, in a directory that belongs to the user.

An entry is a folder, named by the hash of everything that it depends on.  It is built under a
temporary name and renamed when it is complete.  Therefore a reader sees a complete entry or none,
even if other processes write or somebody presses Ctrl-C.  Each entry has a checksum.  An entry that
does not match its checksum is rebuilt.

    <cache>/inductor_lab/<version>/3f/3fa9…/   kernel.cpp  kernel.so  sha256
    <cache>/inductor_lab/tmp/                  unfinished entries
    <cache>/inductor_lab/failed/               sources that did not compile

    $INDUCTOR_LAB_SHARED_CACHE/<version>/…     read-only, for example from a teacher for a class

If the cache exceeds its limit, the least recently used entries are deleted (`prune.py`).

Inductor: `codecache.py`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
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

from inductor_lab.compiler.base.errors import CacheRefused
from inductor_lab.compiler.runtime.cache.folder_permissions import (
    entry_trust_problem,
    trust_problem,
)
from inductor_lab.compiler.runtime.cache.prune import (
    KEPT_FAILURES,
    mark_used,
    oldest_first,
    prune_sometimes,
)
from inductor_lab.compiler.runtime.cache.workspace import one_at_a_time, workspace

VARIABLE = "INDUCTOR_LAB_CACHE_DIR"
SHARED = "INDUCTOR_LAB_SHARED_CACHE"
TMP = "tmp"
CHECKSUM = "sha256"
ELSEWHERE = f"set {VARIABLE} to a directory of your own"


class DamagedEntry(UserWarning):
    """A cache entry did not match its checksum and was rebuilt."""


class UnusableCache(UserWarning):
    """The cache directory cannot be used.  A temporary folder replaces it for this process."""


class UntrustedCache(UserWarning):
    """The shared cache has an entry that other users may have written.  It is not used."""


@dataclass(frozen=True)
class Cache:
    """A private directory of entries.  `open_cache` creates it.

    Missing entries are looked up in the `shared` cache, which another user fills
    (`notebook/warm.py`).
    """

    root: Path
    shared: Path | None = None

    def entry(self, parts: tuple[str, ...], build: Callable[[Path], None]) -> Path:
        """Return the folder for the key `parts`; `build(folder)` fills it if it does not exist."""
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        place = Path(own_version(), key[:2], key)
        final = self.root / place
        if self._found(final):
            return final
        if self.shared is not None and self._offers(self.shared / place):
            return self.shared / place
        with one_at_a_time(self.root / TMP, key), self.workspace() as folder:
            if self._found(final):  # another process has built it
                return final
            build(folder)
            (folder / CHECKSUM).write_text(checksum(folder), encoding="ascii")
            made = self._publish(folder, final)
        prune_sometimes(self.root)
        return made

    def _offers(self, entry: Path) -> bool:
        """Does the shared cache have this entry, and can it be trusted?"""
        if not entry.exists() or self.shared is None:
            return False
        if problem := entry_trust_problem(self.shared, entry):
            warnings.warn(f"{problem}; {SHARED} is not used", UntrustedCache, stacklevel=3)
        return not problem and is_sound(entry)

    def _found(self, final: Path) -> bool:
        """Does an entry exist and match its checksum?"""
        if not final.exists():
            return False
        if is_sound(final):
            mark_used(final)
            return True
        message = f"the cache entry {final} is damaged; it is rebuilt"
        warnings.warn(message, DamagedEntry, stacklevel=3)
        self._discard(final)
        return False

    def keep_failed(self, name: str, text: str) -> Path:
        """Write a source that did not compile to a file for the user, and return its path.

        Raises CacheRefused if this fails.  On a full disk, the C++ compiler fails first.
        """
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        path = self.root / "failed" / f"{name}_{digest}.cpp"
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as problem:
            what = f"generated code did not compile, and {path} cannot be written: {problem}"
            raise CacheRefused(what, todo=f"free disk space there, or {ELSEWHERE}") from problem
        for old in oldest_first(path.parent.iterdir())[:-KEPT_FAILURES]:
            old.unlink(missing_ok=True)
        return path

    def nbytes(self) -> int:
        """Return the size of all files in bytes."""
        return sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())

    def workspace(self) -> contextlib.AbstractContextManager[Path]:
        """Create a folder on the same file system; delete it afterwards if it was not renamed."""
        return workspace(self.root / TMP)

    def _publish(self, folder: Path, final: Path) -> Path:
        """Rename a finished entry to its final name, unless another process has done so first."""
        final.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            folder.rename(final)
        except OSError:
            if not is_sound(final):
                raise
        return final

    def _discard(self, entry: Path) -> None:
        """Rename an entry, then delete it, so that no reader sees part of it."""
        with self.workspace() as folder, contextlib.suppress(FileNotFoundError):
            entry.rename(folder / "damaged")


def open_cache(environment: Mapping[str, str] = os.environ) -> Cache:
    """Open the user's cache directory, mode 0700.  Raises CacheRefused if it cannot be trusted.

    This process loads libraries from it.  Therefore a directory that another user can write to is
    never used, not even for reading (`folder_permissions.py`).
    """
    chosen, shared = environment.get(VARIABLE), environment.get(SHARED)
    try:
        own = Path(chosen).expanduser().absolute() / "inductor_lab" if chosen else None
        root = own or platformdirs.user_cache_path("inductor_lab", appauthor=False)
        problem = trust_problem(root)
        others = Path(shared).expanduser().resolve() if shared else None
    except (RuntimeError, OSError) as error:  # no home directory, or no current directory
        raise CacheRefused(f"no cache directory: {error}", todo=ELSEWHERE) from error
    if problem:
        raise CacheRefused(problem, todo=ELSEWHERE)
    return Cache(root, others)


def usable_cache() -> Cache:
    """Open the user's cache directory, or a private temporary folder if that cannot be used.

    Warns once about the latter: it is deleted when this process ends.
    """
    try:
        return open_cache()
    except CacheRefused as refused:
        return _temporary_cache(str(refused))


@functools.cache
def _temporary_cache(problem: str) -> Cache:
    try:
        folder = Path(tempfile.mkdtemp(prefix="inductor_lab-"))  # mode 0700
    except OSError as error:
        raise CacheRefused(f"{problem}; no temporary folder: {error}", todo=ELSEWHERE) from error
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    what = "compiled kernels are kept in a temporary folder until this process ends"
    warnings.warn(f"{what}: {problem}", UnusableCache, stacklevel=3)
    return Cache(folder)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Create a temporary folder.

    It is in the cache, where the next process deletes it if this process is killed.  Without a
    cache, it is in the temporary folder of the system.
    """
    try:
        cache = open_cache()
    except CacheRefused:
        elsewhere = tempfile.TemporaryDirectory(prefix="inductor_lab-", ignore_cleanup_errors=True)
        with elsewhere as name:
            yield Path(name)
        return
    with cache.workspace() as folder:
        yield folder


def checksum(entry: Path) -> str:
    """Return the checksum of the names and contents of all files of an entry, except its own."""
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
    """Return the installed version of inductor_lab; "unknown" in a source checkout, or if a
    confined process cannot read the metadata."""
    try:
        return version("inductor_lab") or "unknown"
    except PackageNotFoundError:
        return "unknown"
