"""Pictures of the course as SVG inside HTML: bars, and rows of cells.

`inductor_lab.course.pictures` provides the data and a text description.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from inductor_lab.widgets.svg import svg_page, svg_text, width_of

PAD, ROW = 12.0, 26.0
BAR, SHORT, WIDE = 360.0, 160.0, 730.0
"""Pixels: the longest bar has a length between `SHORT` and `BAR`, such that the picture is at most
`WIDE` wide.  It then fits into a 900 px wide notebook without scaling."""

HEAD = 34.0


def bars(title: str, description: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """A bar for each row, starting at 0, with its name on the left and its text on the right."""
    names = max((width_of(name) for name, *_ in rows), default=0.0)
    texts = max((width_of(text) for *_, text in rows), default=0.0)
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    left = PAD + names + 10
    longest = min(BAR, max(SHORT, WIDE - left - texts - 2 * PAD))

    def parts() -> Iterator[str]:
        yield svg_text(PAD, 20, title, anchor="start")
        for number, (name, value, text) in enumerate(rows):
            top, length = HEAD + ROW * number, max(value / most * longest, 1.0)
            yield svg_text(left - 8, top + 15, name, anchor="end")
            place = f'x="{left:.1f}" y="{top + 3:.1f}" width="{length:.1f}" height="17"'
            yield f'<rect class="bar" {place}/>'
            yield svg_text(left + length + 8, top + 15, text, anchor="start")

    width = max(left + longest + texts + 2 * PAD, width_of(title) + 2 * PAD)
    return figure(title, description, width, HEAD + ROW * len(rows) + PAD, parts())


def cells(
    title: str,
    description: str,
    rows: Sequence[tuple[str, Sequence[tuple[str, str]]]],
    legend: Sequence[tuple[str, str]],
) -> str:
    """Rows of cells; a cell with the role "wrong" is crossed out."""
    names = max((width_of(name) for name, _ in rows), default=0.0)
    longest = max((width_of(text) for _, line in rows for text, _ in line), default=0.0)
    side = max(22.0, longest + 8)
    columns = max((len(line) for _, line in rows), default=0)
    left = PAD + names + (8 if names else 0)
    below = HEAD + ROW * len(rows) + 8

    def parts() -> Iterator[str]:
        yield svg_text(PAD, 20, title, anchor="start")
        for number, (name, line) in enumerate(rows):
            top = HEAD + ROW * number
            yield svg_text(left - 8, top + 16, name, anchor="end")
            for place, cell in enumerate(line):
                yield from _cell(left + side * place, top, side, cell)
        for place, (meaning, role) in enumerate(legend):
            top = below + 22 * place
            yield from _cell(left, top, 22, ("", role), 18)
            yield svg_text(left + 30, top + 13, meaning, "sub", "start")

    words = max(width_of(text) for text in (title, *(m for m, _ in legend)))
    width = max(left + side * columns, left + 30 + words) + PAD
    return figure(title, description, width, below + 22 * len(legend) + 4, parts())


def _cell(
    x: float, y: float, side: float, cell: tuple[str, str], height: float = ROW - 2
) -> Iterator[str]:
    text, role = cell
    kind = "extern" if role == "wrong" else role
    place = f'x="{x + 1:.1f}" y="{y:.1f}" width="{side - 2:.1f}" height="{height:.1f}"'
    yield f'<rect class="{escape(kind)}" rx="3" {place}/>'
    if role == "wrong":
        line = f"M{x + 4:.1f} {y + 3:.1f}L{x + side - 4:.1f} {y + height - 3:.1f}"
        back = f"M{x + side - 4:.1f} {y + 3:.1f}L{x + 4:.1f} {y + height - 3:.1f}"
        yield f'<path class="arrow" d="{line}{back}"/>'
    if text:
        style = "struck" if role == "wrong" else "on"
        yield svg_text(x + side / 2, y + height / 2 + 4, text, style)


def figure(title: str, description: str, width: float, height: float, parts: Iterator[str]) -> str:
    """A picture that scrolls where the window is narrower."""
    svg = svg_page(title, width, height, parts, description.splitlines())
    return f'<div style="overflow-x:auto">{svg}</div>'
