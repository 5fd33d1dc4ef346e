"""The machine code of C++ kernels as text, each instruction with the ops that it computes.

The kernels are compiled again with line numbers (`-g` changes no instruction).  `objdump` reports
the line of the generated C++ for each instruction, also for inlined functions.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from inductor_lab.compiler.base.errors import CompileFailed, NoCompiler
from inductor_lab.compiler.codegen.cpp.printer import translation_unit
from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Origins
from inductor_lab.compiler.runtime.cache.kernel_cache import scratch
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain
from inductor_lab.compiler.runtime.toolchain.shared_library import LIBRARY, SOURCE

_SYMBOL = re.compile(r"^[0-9a-f]+ <([\w.]+)>:$")
_PLACE = re.compile(rf"^(?:inlined by )?\S*{re.escape(SOURCE)}:(\d+)")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(.*)$")


def assembly(kernels: Sequence[Kernel]) -> dict[str, Code]:
    """Kernel name → its instructions, including those of the functions that OpenMP outlines.

    Raises NoCompiler if there is no C++ compiler or no `objdump`, CompileFailed if they fail.
    """
    objdump = shutil.which("objdump")
    if objdump is None:
        raise NoCompiler("there is no objdump", todo="install binutils (apt install binutils)")
    cpp = [kernel for kernel in kernels if kernel.language == "cpp"]
    if not cpp:
        return {}
    unit = translation_unit(cpp)
    with scratch() as folder:
        listing = _listing(objdump, str(unit), folder)
    found: dict[str, list[Line]] = {kernel.name: [] for kernel in cpp}
    for name, line in _instructions(listing, unit, found):
        found[name].append(line)
    return {name: Code.of(lines) for name, lines in found.items() if lines}


def _listing(objdump: str, text: str, folder: Path) -> str:
    toolchain = find_toolchain()
    source, library = folder / SOURCE, folder / LIBRARY
    source.write_text(text, encoding="utf-8")
    attempt = replace(toolchain, command=(*toolchain.command, "-g")).compile(source, library)
    if attempt.status != 0:
        raise CompileFailed("the compiler refused line numbers (-g)", todo=attempt.output[:500])
    intel = ("-M", "intel") if _is_x86() else ()
    shown = ("--disassemble", "--line-numbers", "--inlines", "--no-show-raw-insn", *intel)
    command = [objdump, *shown, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompileFailed("objdump failed", todo=done.stderr[:500])
    return done.stdout


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64", "i686")


def _instructions(
    listing: str, unit: Code, kernels: dict[str, list[Line]]
) -> Iterator[tuple[str, Line]]:
    """(kernel, line) for each line of the listing that belongs to a kernel."""
    kernel, origins, new_place = "", NO_ORIGINS, True
    for text in listing.splitlines():
        symbol, place, instruction = (
            pattern.match(text) for pattern in (_SYMBOL, _PLACE, _INSTRUCTION)
        )
        if symbol:
            kernel, origins = symbol[1].split(".")[0], NO_ORIGINS
            kernel = kernel if kernel in kernels else ""
            if kernel:
                yield kernel, Line(f"{symbol[1]}:", statement=False)
        elif place:  # for one instruction, the innermost function comes first, then its callers
            within = NO_ORIGINS if new_place else origins
            origins, new_place = within or _origins_at(unit, int(place[1])), False
        elif instruction:
            new_place = True
            if kernel:
                yield kernel, Line(f"  {instruction[2].expandtabs(8)}", origins, bool(origins))


def _origins_at(unit: Code, number: int) -> Origins:
    """The origins of a line of the unit; lines of the header have none."""
    return unit.lines[number - 1].origins if 0 < number <= len(unit.lines) else NO_ORIGINS
