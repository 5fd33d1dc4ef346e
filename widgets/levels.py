"""The levels of a GPU side by side: the items of each, and below them the memory that they share.

`inductor_lab.course.levels` provides the data and a text description.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from inductor_lab.widgets.course import PAD, figure
from inductor_lab.widgets.svg import svg_text

if TYPE_CHECKING:
    from inductor_lab.course.levels import Level

WIDTH, GAP = 164.0, 24.0
"""Pixels of a level, and between two: four of them fit into a 900 px wide notebook."""
TOP, HIGH = 62.0, 132.0
"""Where the items begin, and how high they are together."""
BELOW = TOP + HIGH + 12
MEMORY = 44.0


def levels(title: str, description: str, found: Sequence[Level]) -> str:
    """One column for each level; lines lead from the last item of its first line to the next."""
    def parts() -> Iterator[str]:
        yield svg_text(PAD, 20, title, anchor="start")
        for number, level in enumerate(found):
            left = PAD + number * (WIDTH + GAP)
            yield from _level(level, left)
            if number + 1 < len(found):
                yield from _zoom(level, left)

    width = len(found) * (WIDTH + GAP) - GAP + 2 * PAD
    return figure(title, description, width, BELOW + MEMORY + PAD, parts())


def _item(level: Level, left: float, number: int) -> tuple[float, float, float, float]:
    """x, y, width and height of an item."""
    lines = -(-level.count // level.in_a_line)
    wide, high = WIDTH / level.in_a_line, HIGH / lines
    line, place = divmod(number, level.in_a_line)
    return left + place * wide, TOP + line * high, wide, high


def _level(level: Level, left: float) -> Iterator[str]:
    middle = left + WIDTH / 2
    yield svg_text(middle, 42, level.name)
    yield svg_text(middle, 56, level.items, "sub")
    for number in range(level.count):
        x, y, wide, high = _item(level, left, number)
        works = number < level.active if level.active > 1 else number == level.in_a_line - 1
        role = "input" if works else "box"
        yield (f'<rect class="{role}" rx="2" x="{x + 1:.1f}" y="{y + 1:.1f}" '
               f'width="{wide - 2:.1f}" height="{high - 2:.1f}"/>')  # fmt: skip
    yield (f'<rect class="extern" rx="3" x="{left + 1:.1f}" y="{BELOW:.1f}" '
           f'width="{WIDTH - 2:.1f}" height="{MEMORY:.1f}"/>')  # fmt: skip
    yield svg_text(middle, BELOW + 18, level.memory, "on")
    yield svg_text(middle, BELOW + 34, level.holds, "sub")


def _zoom(level: Level, left: float) -> Iterator[str]:
    x, y, wide, high = _item(level, left, level.in_a_line - 1)
    right, start = left + WIDTH + GAP, x + wide - 1
    for above, below in ((y + 1, TOP), (y + high - 1, TOP + HIGH)):
        yield f'<path class="arrow" d="M{start:.1f} {above:.1f}L{right - 2:.1f} {below:.1f}"/>'
