"""Selects the parts of the `lab_*.h` headers that a source needs.

A header is a list of entries.  The line `//@ names` starts an entry.  An entry is included if the
kernels, or another included entry, use one of its names.  An entry `name<double>` is included if
they use the name and doubles.  Therefore a kernel that only adds contains no math functions,
compiles fast, and is short enough to read.

Names are searched in the text, as a linker resolves symbols.  Users can write entries of the tables
of operations, and complete kernels (`lab.try_kernel`), that call any function of the headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HEADERS = (
    "lab_basics.h",
    "lab_transpose.h",
    "lab_exponential.h",
    "lab_angles.h",
    "lab_double.h",
    "lab_special.h",
    "lab_random.h",
    "lab_integers.h",
    "lab_checked.h",
    "lab_flash.h",
    "lab_product.h",
    "lab_convolution.h",
    "lab_steps.h",
)
"""The headers in order.  Each uses only the headers before it."""
DOUBLE = "<double>"
_NAME = re.compile(rf"\blab_\w+|{DOUBLE}")


@dataclass(frozen=True, slots=True)
class Entry:
    """A few related functions: the names that they define, the names that they use, their text."""

    defines: frozenset[str]
    of_doubles: bool
    uses: frozenset[str]
    lines: tuple[str, ...]

    def serves(self, needed: Set[str]) -> bool:
        return bool(self.defines & needed) and (not self.of_doubles or DOUBLE in needed)


@cache
def entries() -> tuple[Entry, ...]:
    """Return the entries of all headers in order.  The first one, the preamble, is always used."""
    folder = Path(__file__).parent / "headers"
    texts = [(folder / name).read_text(encoding="utf-8").split("//@") for name in HEADERS]
    found = [Entry(frozenset(), False, frozenset(), _trimmed(texts[0][0]))]
    for part in (part for parts in texts for part in parts[1:]):
        heading, _, text = part.partition("\n")
        names, uses = frozenset(_NAME.findall(heading)), frozenset(_NAME.findall(text))
        found.append(Entry(names - {DOUBLE}, DOUBLE in names, uses, _trimmed(text)))
    return tuple(found)


def header_lines(text: Iterable[str]) -> list[str]:
    """Return the preamble and every entry that `text` needs, in the order of the headers."""
    needed = {name for line in text for name in _NAME.findall(line)}
    taken: set[int] = {0}
    while True:
        more = {k for k, entry in enumerate(entries()) if k not in taken and entry.serves(needed)}
        if not more:
            break
        taken |= more
        needed |= {name for k in more for name in entries()[k].uses}
    lines: list[str] = []
    for k in sorted(taken):
        lines += [*entries()[k].lines, ""]
    return lines[:-1]


def _trimmed(text: str) -> tuple[str, ...]:
    return tuple(text.strip("\n").split("\n"))
