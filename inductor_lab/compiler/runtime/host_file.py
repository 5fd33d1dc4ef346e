"""Writes a host program to a file, so that debuggers and editors can set breakpoints in it."""

from __future__ import annotations

import linecache
from pathlib import Path

from inductor_lab.compiler.base.errors import CacheRefused
from inductor_lab.compiler.runtime.cache.kernel_cache import open_cache


def host_file(text: str, name: str, *, cache: bool) -> str:
    """Return the file with a host program; without the cache, a name registered in `linecache`."""
    file = f"host_program_{name}.py"

    def write(folder: Path) -> None:
        (folder / file).write_text(text, encoding="utf-8")

    if cache:
        try:
            return str(open_cache().entry(("host program", name, text), write) / file)
        except CacheRefused:
            pass
    known = f"<{file}>"
    linecache.cache[known] = (len(text), None, text.splitlines(keepends=True), known)
    return known
