"""A lesson: the cells, outputs and annotations of an executed notebook; and a comparison of two.

A comment that begins with `#!` annotates its line, or the line below it, and is removed from the
displayed code:

    y = torch.softmax(x, -1)    #! three nests over the same rows, hence one kernel
    c                           #! g0.forward.code/5: the maximum of a row

The second one annotates line 5 of a pane of the explorer that the cell shows, with the syntax of a
report's address.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.errors import UnreadableFile

NOTE = re.compile(r"(?:^|\s+)#!\s*(?:([\w.]+)/(\d+):\s*)?(.+)$")
_MEASURED = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\s?(?:GB/s|ns|[µu]s|ms|s|min)\b|0x[0-9a-fA-F]+")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Note:
    """The teacher's annotation of a line of the cell, or of a pane of its explorer."""

    text: str
    line: int
    pane: str = ""


@dataclass(frozen=True)
class Output:
    """One output: its text, and the data by MIME type that a page draws instead."""

    text: str
    data: Mapping[str, str]
    failed: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell: "markdown" or "code", its source without annotations, the annotations, outputs."""

    name: str
    kind: str
    source: str
    notes: tuple[Note, ...] = ()
    outputs: tuple[Output, ...] = ()

    @property
    def said(self) -> list[str]:
        """The lines of all outputs without measured times and addresses, which differ between
        runs."""
        text = "\n".join(output.text for output in self.outputs)
        return _MEASURED.sub("…", text).splitlines()


@dataclass(frozen=True)
class Lesson:
    """An executed notebook."""

    title: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Pair:
    """A cell of the student's run and of the teacher's; None if a run does not have it."""

    own: Cell | None
    given: Cell | None

    @property
    def changed(self) -> bool:
        """Was the source edited, or is the cell in only one of the notebooks?"""
        return self.own is None or self.given is None or self.own.source != self.given.source

    @property
    def differs(self) -> bool:
        """Do the texts of the outputs differ?"""
        return self.own is not None and self.given is not None and self.own.said != self.given.said


def read_lesson(path: Path) -> Lesson:
    """Read a notebook; raises UnreadableFile if it is not one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        cells = [_cell(cell, number) for number, cell in enumerate(found["cells"])]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        what = f"{path} is no notebook: {problem}"
        raise UnreadableFile(what, todo="give an executed .ipynb file") from problem
    titles = (line.removeprefix("# ") for cell in cells if cell.kind == "markdown"
              for line in cell.source.splitlines() if line.startswith("# "))  # fmt: skip
    return Lesson(next(titles, path.stem), tuple(cells))


def _cell(cell: Mapping[str, Any], number: int) -> Cell:
    kind = "code" if cell["cell_type"] == "code" else "markdown"
    name, source = str(cell.get("id", number)), _joined(cell["source"])
    if kind == "markdown":
        return Cell(name, kind, source)
    notes: list[Note] = []
    lines: list[str] = []
    for line in source.splitlines():
        found = NOTE.search(line)
        if found is None:
            lines.append(line)
            continue
        pane, place, text = found.groups()
        code = line[: found.start()]
        below = not code.strip()
        if not below:
            lines.append(code)
        notes.append(Note(text, int(place or len(lines) + below), pane or ""))
    outputs = tuple(_outputs(cell.get("outputs", ())))
    return Cell(name, kind, "\n".join(lines), tuple(notes), outputs)


def _outputs(outputs: Sequence[Mapping[str, Any]]) -> Iterator[Output]:
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            yield Output(_plain(output["text"]), {}, output["name"] == "stderr")
        elif kind == "error":
            yield Output(_plain("\n".join(output["traceback"])), {}, failed=True)
        else:
            data = {mime: _joined(text) for mime, text in output["data"].items()
                    if isinstance(text, str | list)}  # fmt: skip
            yield Output(_plain(data.pop("text/plain", "")), data)


def _joined(text: str | Sequence[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _plain(text: str | Sequence[str]) -> str:
    return _ANSI.sub("", _joined(text))


def pairs(own: Lesson, given: Lesson) -> list[Pair]:
    """The cells of two lessons in order; cells with the same name form a pair."""
    first, second = own.cells, given.cells
    found: list[Pair] = []
    names = [cell.name for cell in first], [cell.name for cell in second]
    matcher = difflib.SequenceMatcher(None, *names, autojunk=False)
    for _, a0, a1, b0, b1 in matcher.get_opcodes():
        for place in range(max(a1 - a0, b1 - b0)):
            left = first[a0 + place] if a0 + place < a1 else None
            right = second[b0 + place] if b0 + place < b1 else None
            found.append(Pair(left, right))
    return found
