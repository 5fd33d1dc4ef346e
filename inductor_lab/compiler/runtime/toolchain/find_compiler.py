"""Finds a C++ compiler, and compiles shared libraries with it.

Inductor: `cpp_builder.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from inductor_lab.compiler.base.errors import NoCompiler
from inductor_lab.compiler.runtime.toolchain import thread_team
from inductor_lab.compiler.runtime.toolchain.compiler_flags import (
    FAMILIES,
    POSIX_COMPILERS,
    WHAT_TO_INSTALL,
    WINDOWS_COMPILERS,
    Family,
    family_of,
)
from inductor_lab.compiler.runtime.toolchain.openmp import torch_runtime

SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


SECONDS_TO_COMPILE = 1800.0
"""The time limit for the compiler.  The largest units take a minute on a slow core."""
SECONDS_TO_ANSWER = 60.0
"""The time limit for printing its version."""


@dataclass(frozen=True)
class Attempt:
    """One run of the compiler.  It succeeded if `status` is 0."""

    command: tuple[str, ...]
    status: int
    output: str


@dataclass(frozen=True)
class Toolchain:
    """A C++ compiler on this machine.

    command   the command to run, such as `("/usr/bin/c++",)`
    version   the first line of its version banner
    openmp    the OpenMP runtime to link; None for the one of the compiler
    """

    command: tuple[str, ...]
    family: Family
    version: str
    openmp: Path | None

    def __repr__(self) -> str:
        return f"Toolchain({shlex.join(self.command)}: {self.version})"

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags except file names."""
        capability = torch.backends.cpu.get_cpu_capability()
        return self.family.flags(capability, self.openmp is not None)

    @property
    def identity(self) -> str:
        """Everything that a compiled library depends on, except its source text."""
        said = (*self.command, self.version, *map(_script, self.command))
        threads = thread_team.name() if thread_team.is_used(self) else ""
        parts = (*said, *self.flags, str(self.openmp), threads, cpu_identity())
        return "\n".join(parts)

    def command_for(self, source: Path, library: Path) -> list[str]:
        """Return the command line that compiles the file `source` to `library`."""
        output = [part.format(library) for part in self.family.output]
        command = [*self.command, *self.flags, str(source), *output]
        if thread_team.is_used(self):
            command += thread_team.flags(self, source.read_text(encoding="utf-8"))
        if self.openmp is not None:
            # -fopenmp also links the runtime of the compiler.  --as-needed drops it, because all
            # symbols have already been found in torch's runtime.
            as_needed = ["-Wl,--as-needed"] if sys.platform == "linux" else []
            command += [*as_needed, str(self.openmp)]
        return command

    def compile(self, source: Path, library: Path, more: Sequence[str] = ()) -> Attempt:
        """Try to compile a shared library from one source file, with `more` flags.

        Ctrl-C and the exit of Python also end the compiler (`end_compilers`).  `library` can then
        be incomplete, so pass a temporary name and rename the file, as `kernel_cache.py` does.
        Temporary files of the compiler are in the folder of the source.  Raises NoCompiler if the
        command does not start.
        """
        command = [*self.command_for(source, library), *more]
        temporary = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(source.parent))
        environment = {**os.environ, "LC_ALL": "C", **temporary}
        try:
            status, out, err = run_program(command, SECONDS_TO_COMPILE, source.parent, environment)
        except OSError as problem:
            raise NoCompiler(f"{command[0]} cannot be run: {problem}", todo=_todo()) from problem
        except subprocess.TimeoutExpired as problem:
            said = f"error: killed, because it did not end within {problem.timeout:.0f} seconds"
            return Attempt(tuple(command), 1, said)
        if _ENDED.is_set():
            raise SystemExit("Python exits")
        said = err.strip() or out.strip()  # cl prints errors to stdout, other compilers to stderr
        if status == 0 and (lack := incomplete(library)):
            return Attempt(tuple(command), 1, f"error: {lack}\n{said}")
        return Attempt(tuple(command), status, said)


OWN_GROUP: dict[str, Any] = {} if sys.platform == "win32" else {"process_group": 0}
"""A compiler and its child processes form one process group, which is killed together."""
_RUNNING: set[subprocess.Popen[str]] = set()
_ENDED = threading.Event()


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a compiler that still runs, and its child processes."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            process.kill() if sys.platform == "win32" else os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def end_compilers() -> None:
    """Kill all running compilers when Python exits."""
    _ENDED.set()
    for process in list(_RUNNING):
        _end(process)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RUNNING.clear)  # they belong to the parent


def run_program(
    command: Sequence[str],
    seconds: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str, str]:
    """Run a program, and return its status, output and error output.

    After `seconds`, the program and its child processes are killed.  Raises OSError and
    TimeoutExpired.
    """
    process = subprocess.Popen(
        command, cwd=folder, env=environment, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **OWN_GROUP,
    )  # fmt: skip
    _RUNNING.add(process)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        _end(process)
        _RUNNING.discard(process)
    return process.returncode, out, err


def incomplete(library: Path) -> str:
    """Return what is wrong with a compiled library, or "".

    A library that is shorter than its ELF header says would crash the process when it is loaded.
    """
    try:
        head = library.read_bytes()[:64]
    except OSError:
        return "the compiler produced no library"
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return "" if head else "the compiler produced an empty library"
    if len(head) < 64 or not head.startswith(b"\x7fELF"):
        return "the compiler produced a file that is not a library"
    sections, size, count = (int.from_bytes(head[a:b], sys.byteorder)
                             for a, b in ((40, 48), (58, 60), (60, 62)))  # fmt: skip
    whole = library.stat().st_size >= sections + size * count
    return "" if whole else "the compiler produced a truncated library"


def find_toolchain(environment: Mapping[str, str] = os.environ) -> Toolchain:
    """Return the C++ compiler: `CXX`, else the first one on PATH, else the `ziglang` package.

    Raises NoCompiler, which says what to install on this system.
    """
    named = environment.get("CXX", "").strip()
    path = environment.get("PATH", "")
    if named:
        try:
            command = shlex.split(named, posix=sys.platform != "win32")
        except ValueError as problem:
            raise NoCompiler(f"CXX={named} is not a command: {problem}", todo=_todo()) from None
        found = shutil.which(command[0], path=path)
        if found is None:
            raise NoCompiler(f"CXX={named} is not a program", todo=_todo())
        if lack := without_headers(found, environment):
            raise NoCompiler(lack, todo=_todo())
        return _toolchain((os.path.abspath(found), *command[1:]))  # it will run in another folder
    lack = ""
    for name in WINDOWS_COMPILERS if sys.platform == "win32" else POSIX_COMPILERS:
        found = shutil.which(name, path=path)
        if found is not None:
            lack = without_headers(found, environment)
            if not lack:
                return _toolchain((found,))
    if importlib.util.find_spec("ziglang") is not None:
        return _toolchain((sys.executable, "-m", "ziglang", "c++"))
    raise NoCompiler(lack or "no C++ compiler was found", todo=_todo())


def without_headers(program: str, environment: Mapping[str, str]) -> str:
    """Return why `cl` cannot compile here, or "".

    Visual Studio's prompts set the folders of its headers and libraries.  Without them `cl` starts,
    but finds no header.

    >>> without_headers("C:/VC/bin/cl.exe", {"INCLUDE": "C:/VC/include"})
    'cl is on PATH, but its set-up is missing: LIB is not set'
    >>> without_headers("/usr/bin/g++", {})
    ''
    """
    if Path(program).stem.lower() != "cl":
        return ""
    unset = " and ".join(name for name in ("INCLUDE", "LIB") if not environment.get(name))
    verb = "are" if "and" in unset else "is"
    return f"cl is on PATH, but its set-up is missing: {unset} {verb} not set" if unset else ""


def _script(part: str) -> str:
    """Return the checksum of a compiler that is a script, because the script can add flags."""
    with contextlib.suppress(OSError), open(part, "rb") as file:
        if file.read(2) == b"#!":
            return hashlib.sha256(file.read()).hexdigest()
    return ""


def _toolchain(command: tuple[str, ...]) -> Toolchain:
    banner = _banner(command)
    family = FAMILIES[family_of(" ".join(command), banner)]
    first = banner.strip().splitlines()[0] if banner.strip() else "unknown version"
    openmp = torch_runtime() if family.joins else None
    return Toolchain(command, family, first, openmp)


@cache
def _banner(command: tuple[str, ...]) -> str:
    """Return the version banner of a compiler (cl has no --version, and prints it without)."""
    windows = Path(command[0]).stem.lower() == "cl"
    try:
        options = [] if windows else ["--version"]
        _, out, err = run_program([*command, *options], SECONDS_TO_ANSWER)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NoCompiler(f"{shlex.join(command)} cannot be run: {problem}", todo=_todo()) from None
    return err + out if windows else out


@cache
def cpu_identity() -> str:
    """Return a hash of the CPU's instruction set, because `-march=native` code depends on it.

    Machines can share a home directory, so this hash is part of every cache key.
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
