"""Find a C++ compiler and make shared libraries with it.

Inductor: `cpp_builder.py`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inductor_lab.errors import NoCompiler
from inductor_lab.runtime.families import (
    FAMILIES,
    POSIX_COMPILERS,
    WHAT_TO_INSTALL,
    WINDOWS_COMPILERS,
    Family,
    family_of,
)
from inductor_lab.runtime.openmp import torch_runtime

SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


@dataclass(frozen=True)
class Attempt:
    """One run of the compiler; it worked if `status` is 0."""

    command: tuple[str, ...]
    status: int
    output: str


@dataclass(frozen=True)
class Toolchain:
    """One C++ compiler of this machine.

    command   what to run, such as `("/usr/bin/c++",)`
    version   the first line of what it says about itself
    openmp    the OpenMP runtime file that libraries are linked against; None: the compiler's own
    """

    command: tuple[str, ...]
    family: Family
    version: str
    openmp: Path | None

    def __repr__(self) -> str:
        return f"Toolchain({shlex.join(self.command)}: {self.version})"

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags but the names of files."""
        family = self.family
        return (*family.compile, *(family.openmp or family.no_openmp))

    @property
    def identity(self) -> str:
        """Everything that the bytes of a library depend on, beside its source text."""
        parts = (*self.command, self.version, *self.flags, str(self.openmp), cpu_identity())
        return "\n".join(parts)

    def command_for(self, source: Path, library: Path) -> list[str]:
        """The whole command line that makes `library` from `source`."""
        output = [part.format(library) for part in self.family.output]
        command = [*self.command, *self.flags, str(source), *output]
        if self.openmp is not None:
            # Our -fopenmp also asks for the compiler's own runtime; --as-needed drops it again,
            # since everything it would give has already been found in torch's.
            as_needed = ["-Wl,--as-needed"] if sys.platform == "linux" else []
            command += [*as_needed, str(self.openmp)]
        return command

    def compile(self, source: Path, library: Path) -> Attempt:
        """Try to make a shared library from one source file.

        Ctrl-C ends the compiler too.  `library` may then be half written, so give a temporary name
        and rename (`cache.py` does).  Raises NoCompiler if the command itself does not start.
        """
        command = self.command_for(source, library)
        try:
            done = subprocess.run(
                command,
                cwd=source.parent,
                capture_output=True,
                text=True,
                errors="replace",
                env={**os.environ, "LC_ALL": "C"},
                check=False,
            )
        except OSError as problem:
            raise NoCompiler(f"{command[0]} cannot be run: {problem}", todo=_todo()) from problem
        # cl reports on stdout, everybody else on stderr
        return Attempt(tuple(command), done.returncode, done.stderr.strip() or done.stdout.strip())


def find_toolchain(environment: Mapping[str, str] = os.environ) -> Toolchain:
    """The C++ compiler to use: `CXX`, else the first one on PATH, else the `ziglang` package.

    Raises NoCompiler, which says what to install on this system.
    """
    named = environment.get("CXX", "").strip()
    path = environment.get("PATH", "")
    if named:
        command = shlex.split(named, posix=sys.platform != "win32")
        found = shutil.which(command[0], path=path)
        if found is None:
            raise NoCompiler(f"CXX={named} is not a program", todo=_todo())
        return _toolchain((found, *command[1:]))
    for name in WINDOWS_COMPILERS if sys.platform == "win32" else POSIX_COMPILERS:
        found = shutil.which(name, path=path)
        if found is not None:
            return _toolchain((found,))
    if importlib.util.find_spec("ziglang") is not None:
        return _toolchain((sys.executable, "-m", "ziglang", "c++"))
    raise NoCompiler("no C++ compiler was found", todo=_todo())


def _toolchain(command: tuple[str, ...]) -> Toolchain:
    banner = _banner(command)
    family = FAMILIES[family_of(" ".join(command), banner)]
    first = banner.strip().splitlines()[0] if banner.strip() else "unknown version"
    openmp = torch_runtime() if family.joins else None
    return Toolchain(command, family, first, openmp)


@cache
def _banner(command: tuple[str, ...]) -> str:
    """What the compiler prints about itself (cl knows no --version, and says it without)."""
    windows = Path(command[0]).stem.lower() == "cl"
    try:
        done = subprocess.run(
            [*command, *([] if windows else ["--version"])],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NoCompiler(f"{shlex.join(command)} cannot be run: {problem}", todo=_todo()) from None
    return done.stderr + done.stdout if windows else done.stdout


@cache
def cpu_identity() -> str:
    """A short name for the instruction set: `-march=native` code belongs to one kind of CPU.

    A home directory may be shared among machines, so it is a part of every cache key.
    """
    words = [platform.machine(), platform.processor()]
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        wanted = ("flags", "Features", "model name")
        lines = cpuinfo.read_text(errors="replace").splitlines()
        words += list(dict.fromkeys(line for line in lines if line.startswith(wanted)))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def _todo() -> str:
    return WHAT_TO_INSTALL.get(sys.platform, WHAT_TO_INSTALL["linux"])
