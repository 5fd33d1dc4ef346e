"""The source of a notebook: one file with text in both languages and shared code.

    ---
    kind: tutorial                 or lab, or guide (no part of the course)
    number: 1
    name: capture
    en: Capture
    zh: 捕获
    ---
    :::en                          a cell of text, in English
    :::
    :::zh                          the same cell in Chinese; each English cell has one
    :::
    ```python                      a cell of code, for both languages
    ```
    ```python stub                 in a lab: the student's version of a cell,
    ```
    ```python solution             and the version in the instructor's notebook
    ```

Anything else outside of these blocks is an error, so that no text exists in one language only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.course.language import LANGUAGES, Language

Kind = Literal["en", "zh", "python", "stub", "solution"]
_OPENS = re.compile(r"^(?::::(en|zh)|```python(?: (stub|solution))?)$")


@dataclass(frozen=True)
class Block:
    """One block of a source: its kind, its text, and its first line."""

    kind: Kind
    text: str
    line: int


@dataclass(frozen=True)
class Source:
    """A parsed source: its heading, and its blocks in order."""

    kind: str
    number: int
    name: str
    titles: dict[Language, str]
    blocks: tuple[Block, ...]

    @property
    def stem(self) -> str:
        """`01_capture`, the name of its notebooks."""
        return f"{self.number:02}_{self.name}"

    def cells(self, language: Language, *, solved: bool) -> list[tuple[str, str]]:
        """("markdown" or "code", text) for one language, with stubs or solutions."""
        wanted = {language, "python", "solution" if solved else "stub"}
        return [
            ("markdown" if block.kind in LANGUAGES else "code", block.text)
            for block in self.blocks
            if block.kind in wanted
        ]


def read_source(path: Path) -> Source:
    """Read a source; raises UnreadableFile, with the line, if it is malformed."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0] != "---" or "---" not in lines[1:]:
        raise _wrong(path, 1, "a source begins with a heading between two lines of ---")
    end = lines.index("---", 1)
    heading = dict(line.partition(": ")[::2] for line in lines[1:end])
    missing = {"kind", "number", "name", "en", "zh"} - heading.keys()
    if missing:
        raise _wrong(path, 1, f"the heading lacks {', '.join(sorted(missing))}")
    blocks = tuple(_blocks(path, lines, end + 1))
    _check_pairs(path, blocks)
    titles: dict[Language, str] = {"en": heading["en"], "zh": heading["zh"]}
    return Source(heading["kind"], int(heading["number"]), heading["name"], titles, blocks)


def _blocks(path: Path, lines: list[str], start: int) -> list[Block]:
    found: list[Block] = []
    place = start
    while place < len(lines):
        line = lines[place]
        if not line.strip():
            place += 1
            continue
        opened = _OPENS.match(line)
        if opened is None:
            raise _wrong(path, place + 1, f"outside of every block: {line!r}")
        close = ":::" if opened[1] else "```"
        end = next((n for n in range(place + 1, len(lines)) if lines[n] == close), None)
        if end is None:
            raise _wrong(path, place + 1, "this block does not end")
        kind = opened[1] or opened[2] or "python"
        found.append(Block(kind, "\n".join(lines[place + 1 : end]).strip("\n"), place + 1))  # type: ignore[arg-type]
        place = end + 1
    return found


def _check_pairs(path: Path, blocks: tuple[Block, ...]) -> None:
    """Check that English and Chinese, and stub and solution, come in pairs."""
    for first, second in (("en", "zh"), ("stub", "solution")):
        for place, block in enumerate(blocks):
            following = blocks[place + 1].kind if place + 1 < len(blocks) else ""
            before = blocks[place - 1].kind if place else ""
            if block.kind == first and following != second:
                raise _wrong(path, block.line, f"no {second} block follows this {first} block")
            if block.kind == second and before != first:
                raise _wrong(
                    path, block.line, f"no {first} block stands before this {second} block"
                )


def _wrong(path: Path, line: int, what: str) -> UnreadableFile:
    return UnreadableFile(what, f"{path.name}, line {line}", "docs/course.md describes the format")
