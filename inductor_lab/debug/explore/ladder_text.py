"""The stages of Triton's compiler as text with origins: which user op each line computes.

In every stage, Triton attaches to each instruction the line of the kernel's text.  These locations
are converted to origins and removed from the text to keep it short:

```
%t1 = math.sin %t0 : tensor<8xf32> loc(#loc15)      #loc15 = loc("...":12:10)    ttir, ttgir
%9 = fmul float %8, 2.0, !dbg !22                   !22 = !DILocation(line: 13   llir
.loc 1 13 29                                        before the instructions      ptx, amdgcn
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line
from inductor_lab.compiler.codegen.triton.ladder import triton_form
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Origins

TEXTS = ("ttir", "ttgir", "llir", "ptx", "amdgcn")
"""Stages whose output is text; other stages produce machine code."""

_MLIR_PLACE = re.compile(r"^#(\w+) = loc\((.*)\)$")
_MLIR_USE = re.compile(r" loc\((#\w+|\"[^\"]*\"\(#\w+\)|unknown)\)")
_LLVM_PLACE = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)")
_LLVM_USE = re.compile(r",? !dbg !(\d+)")
_ASSEMBLY_PLACE = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)")
_REFERENCE = re.compile(r"#(\w+)")
_LINE = re.compile(r"^\"<[^\"]*>\":(\d+):\d+")


def ladder_code(kernel: Kernel, target: str) -> dict[str, Code]:
    """Each textual stage with origins, the Triton source ("triton") first.

    Raises UnknownTarget and CompileFailed, as `Kernel.ladder` does.
    """
    rungs = kernel.ladder(target)
    from inductor_lab.compiler.codegen.triton.kernel_module import (
        HEADER,  # Triton does not exist on every platform
    )

    written = triton_form(kernel, target).code
    by_line = {
        number: line.origins for number, line in enumerate(written.lines, HEADER.count("\n") + 1)
    }
    found = {"triton": written}
    for name in TEXTS:
        text = rungs.get(name)
        if isinstance(text, str):
            found[name] = Code.of(_READERS[name](text.splitlines(), by_line))
    return found


def _mlir(lines: list[str], by_line: Mapping[int, Origins]) -> Iterator[Line]:
    places = {m[1]: m[2] for m in map(_MLIR_PLACE.match, lines) if m}
    for text in lines:
        if _MLIR_PLACE.match(text):
            continue
        used = _MLIR_USE.findall(text)
        origins = by_line.get(_mlir_line(used[-1], places), NO_ORIGINS) if used else NO_ORIGINS
        yield Line(_MLIR_USE.sub("", text), origins, bool(origins))


def _mlir_line(place: str, places: Mapping[str, str]) -> int:
    """The line number of a location; named locations and call sites refer to other locations."""
    for _ in range(20):
        found = _LINE.match(place)
        if found:
            return int(found[1])
        inner = _REFERENCE.search(place)
        if inner is None or inner[1] not in places:
            return 0
        place = places[inner[1]]
    return 0


def _llvm(lines: list[str], by_line: Mapping[int, Origins]) -> Iterator[Line]:
    places = {m[1]: int(m[2]) for m in map(_LLVM_PLACE.match, lines) if m}
    for text in lines:
        if text.startswith(("!", "attributes #")):
            continue
        used = _LLVM_USE.search(text)
        origins = by_line.get(places.get(used[1], 0), NO_ORIGINS) if used else NO_ORIGINS
        yield Line(_LLVM_USE.sub("", text), origins, bool(origins))


def _assembly(lines: list[str], by_line: Mapping[int, Origins]) -> Iterator[Line]:
    origins = NO_ORIGINS
    for text in lines:
        place = _ASSEMBLY_PLACE.match(text)
        code = text.strip()
        if place:
            origins = by_line.get(int(place[1]), NO_ORIGINS)
        elif code.startswith(".section") and ".debug" in code:
            return
        elif not code.startswith(("$L__", ".Ltmp")):
            is_instruction = bool(code) and not code.startswith((".", "//", ";", "{", "}", "$"))
            yield Line(text, origins if is_instruction else NO_ORIGINS, is_instruction)


_READERS = {"ttir": _mlir, "ttgir": _mlir, "llir": _llvm, "ptx": _assembly, "amdgcn": _assembly}
