"""Pictures of the course, drawn from live values; each has a text description.

    course.bars("time per call", [("all passes", 0.32e-3, "319 µs"), ...])
    course.cells("which thread takes which row", [("row 0", [("t0", "input"), ...])])

A notebook draws the picture; `print` and screen readers use the description.  A title, a name and
a meaning may be given in English and Chinese.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from inductor_lab.compiler.base.display import draw
from inductor_lab.course.language import Both, one_of

Bar: TypeAlias = tuple[Both, float, str]
"""A name, a value, and the value with its unit."""

Cell: TypeAlias = tuple[str, str]
"""Text, and its role: "box", "input", "output", "extern", "bar", "other", or "wrong" (crossed)."""

Row: TypeAlias = tuple[Both, Sequence[Cell]]
"""A name, and the cells of one line."""

Meaning: TypeAlias = tuple[Both, str]
"""What a role stands for, and the role."""


@dataclass(frozen=True)
class Picture:
    """HTML that a notebook shows, and its text description."""

    html: str
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html


def bars(title: Both, rows: Sequence[Bar]) -> Picture:
    """Horizontal bars from 0, in the order given."""
    head, named = one_of(title), [(one_of(name), value, text) for name, value, text in rows]
    widest = max((len(name) for name, *_ in named), default=0)
    text = "\n".join([head, *(f"  {name:<{widest}}  {text}" for name, _, text in named)])
    return drawn("course_bars", head, text, named)


def cells(title: Both, rows: Sequence[Row], legend: Sequence[Meaning] = ()) -> Picture:
    """Rows of cells; a wrong cell is crossed out, so that it is recognizable without colour.

    The legend explains roles, as (meaning, role).
    """
    head, named = one_of(title), [(one_of(name), line) for name, line in rows]
    meanings = [(one_of(text), role) for text, role in legend]
    meaning = {role: text for text, role in meanings}
    lines = [
        f"  {name}{': ' if name and line else ''}{' '.join(_shown(cell, meaning) for cell in line)}"
        for name, line in named
    ]
    text = "\n".join([head, *(line.rstrip() for line in lines)])
    return drawn("course_cells", head, text, named, meanings)


def _shown(cell: Cell, meaning: dict[str, str]) -> str:
    text, role = cell
    said = "×" if role == "wrong" else ""
    plain = "·" if role == "box" else f"({meaning.get(role, role)})"
    return f"{said}{text or plain}"


def drawn(kind: str, title: str, text: str, *values: Any) -> Picture:
    """A picture, by the name of its drawing function, with its description."""
    return Picture(draw(kind, title, text, *values), text)
