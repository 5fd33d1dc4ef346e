"""Compiles a translation unit to a shared library, or finds it in the cache, and loads it."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import re
import shlex
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from inductor_lab.compiler.base.errors import CacheRefused, CompileFailed
from inductor_lab.compiler.capture.span import code_line
from inductor_lab.compiler.codegen.cpp.header import header_lines
from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.compiler.ir.expr import Origins
from inductor_lab.compiler.runtime.cache.kernel_cache import ELSEWHERE, scratch, usable_cache
from inductor_lab.compiler.runtime.toolchain import thread_team
from inductor_lab.compiler.runtime.toolchain.find_compiler import (
    SUFFIX,
    Attempt,
    Toolchain,
    find_toolchain,
)

SOURCE = "kernel.cpp"
LIBRARY = f"kernel{SUFFIX}"
FIRST_ERROR_LINES = 8
LINES_AROUND = 6
UNLOAD = getattr(_ctypes, "dlclose", None) or getattr(_ctypes, "FreeLibrary")  # noqa: B009
"""The function that unloads a library, as `UNLOAD(handle)`."""


@dataclass(frozen=True, eq=False)
class Library:
    """A loaded shared library.  It is unloaded when its functions are no longer referenced."""

    path: Path
    handle: ctypes.CDLL

    @staticmethod
    def load(path: Path) -> Library:
        """Load a library.  Raises OSError if it cannot be read, CompileFailed if it is invalid."""
        try:
            handle = ctypes.CDLL(str(path))
        except OSError as problem:
            if not path.exists() or _forbids_code(path):
                raise
            said = "the compiled library cannot be loaded"
            raise CompileFailed(f"{said}: {problem}", todo="inductor-lab doctor") from problem
        weakref.finalize(handle, UNLOAD, handle._handle).atexit = False
        return Library(path, handle)

    def __repr__(self) -> str:
        return f"Library({self.path})"


def _forbids_code(path: Path) -> bool:
    """Is the file in a file system that is mounted with `noexec`?"""
    flags = os.statvfs(path).f_flag if hasattr(os, "statvfs") else 0
    return bool(flags & getattr(os, "ST_NOEXEC", 0))


def build_library(
    unit: Code, name: str, *, cache: bool = True, traces: Mapping[str, str] | None = None
) -> Library:
    """Compile a translation unit, or find it in the cache, and load it.

    `traces` maps FX nodes to the stack traces of the user's code, for errors.  Raises NoCompiler,
    CompileFailed and CacheRefused.
    """
    return library_builder(unit, name, cache=cache, traces=traces)()


def library_of(text: str, name: str) -> Library:
    """Compile C++ functions that are not generated, with the parts of our headers that they use."""
    lines = text.strip().splitlines()
    return build_library(Code.of(map(Line, [*header_lines(lines), "", *lines])), name)


def library_builder(
    unit: Code, name: str, *, cache: bool = True, traces: Mapping[str, str] | None = None
) -> Callable[[], Library]:
    """Return a function that does the work of `build_library`, in any thread.

    The compiler and the cache are opened now, so this raises NoCompiler, and CacheRefused if there
    is no temporary folder either.  The returned function raises CompileFailed.
    """
    toolchain = find_toolchain()
    kept = usable_cache() if cache else None
    text = str(unit)

    def compile_in(folder: Path) -> None:
        source = folder / SOURCE
        source.write_text(text, encoding="utf-8")
        attempt = toolchain.compile(source, folder / LIBRARY)
        if attempt.status != 0:
            failed = usable_cache().keep_failed(name, text)
            raise refusal(toolchain, attempt, unit, failed, traces or {})

    def build() -> Library:
        if kept is not None:
            thread_team.loaded_for(toolchain, text)  # its file is in the cache too
            with suppress(OSError):  # the cache was emptied at the same time
                entry = kept.entry((text, toolchain.identity), compile_in)
                with suppress(CompileFailed):  # a damaged entry is rebuilt
                    return Library.load(entry / LIBRARY)
        try:
            with scratch() as folder:  # the file can be deleted after loading
                compile_in(folder)
                return Library.load(folder / LIBRARY)
        except OSError as problem:
            what = f"a compiled library cannot be written: {problem}"
            raise CacheRefused(what, todo=ELSEWHERE) from problem

    return build


def refusal(
    toolchain: Toolchain, attempt: Attempt, unit: Code, kept: Path, traces: Mapping[str, str]
) -> CompileFailed:
    """Return the error for a failed compile.

    It has the first lines of the compiler's errors, the lines of the kernel at the error, the
    user's line, the path of the saved source, and the command to reproduce it.
    """
    output = re.sub(r"\S*" + re.escape(SOURCE), SOURCE, attempt.output)  # the path no longer exists
    said = [line for line in output.splitlines() if line.strip()]
    first = next((n for n, line in enumerate(said) if "error" in line.lower()), 0)
    shown = said[first : first + FIRST_ERROR_LINES]
    shown = shown or [f"no output, exit status {attempt.status}"]
    at = _line_number(shown[0])
    what = [f"{toolchain.command[0]} could not compile generated code", *shown]
    where = ""
    if at is not None and at <= len(unit.lines):
        what += ["in the kernel", *_around(unit, at)]
        where = place_of(unit.lines[at - 1].origins, traces)
    command = toolchain.command_for(kept, kept.with_suffix(SUFFIX))
    todo = f"the source is saved at {kept}; to reproduce, run:\n  {shlex.join(command)}"
    return CompileFailed("\n  ".join(what), where, todo)


def place_of(origins: Origins, traces: Mapping[str, str]) -> str:
    """Return the lines of user code that the nodes came from, without duplicates."""
    lines = (code_line(traces[node]) for node in sorted(origins) if traces.get(node))
    return "\n  ".join(dict.fromkeys(lines))


def _line_number(message: str) -> int | None:
    """Return the line of a compiler error: `kernel.cpp:12:5: error`, `kernel.cpp(12): error`."""
    found = re.search(re.escape(SOURCE) + r"[:(](\d+)", message)
    return int(found[1]) if found else None


def _around(unit: Code, at: int) -> list[str]:
    """Return the lines near line `at`, which is marked."""
    first = max(at - LINES_AROUND, 1)
    lines = unit.lines[first - 1 : at + LINES_AROUND]
    return [f"{'>' if n == at else ' '}{n:5d} | {x.text}" for n, x in enumerate(lines, first)]
