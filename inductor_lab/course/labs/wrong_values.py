"""Pictures of errors: the right values, and below them those of the solution.

A value that differs is crossed.  A solution that gives another number of values is crossed where
they end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from inductor_lab.course.language import say
from inductor_lab.course.pictures import Cell, Picture, Row, bars, cells

MOST = 24
"""So many cells of a line are drawn."""


def matrices(title: str, right: Any, mine: Any) -> Picture:
    """Two lists of rows: what is right, then what the solution gives."""
    rows: list[Row] = []
    pairs = list(zip_longest(_rows(right), _rows(mine), fillvalue=()))
    for n, (wanted, given) in enumerate(pairs):
        rows += _pair(f" {n}" if len(pairs) > 1 else "", wanted, given)
    return cells(title, rows)


def lines(title: str, right: Iterable[Any], mine: Iterable[Any], whose: str = "") -> Picture:
    """Two lists; the first one is right, or has a given owner."""
    return cells(title, _pair("", list(right), list(mine), whose))


def amounts(title: str, whose: str, pairs: Iterable[tuple[str, int, int]]) -> Picture:
    """By name: bytes that are counted or moved, and the solution's, as bars."""
    return bars(title, [
        (f"{name}{who}", float(nbytes), f"{nbytes:,} B")
        for name, *counts in pairs
        for who, nbytes in zip((whose, say("you")), counts, strict=True)
    ])  # fmt: skip


def numbers(title: str, named: Iterable[tuple[str, float]], unit: str = "") -> Picture:
    """By name: numbers on one scale, as bars; a value that is not a number has no bar."""
    return bars(title, [
        (name, float(value) if math.isfinite(value) else 0.0,
         (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}") + unit)
        for name, value in named
    ])  # fmt: skip


def prediction(mine: int, real: int, known: Iterable[tuple[str, int]]) -> Picture:
    """Predicted bytes next to known ones.  The picture says only whether the right number is larger
    or smaller, so that a student cannot read the answer off it."""
    how = say("more") if real > mine else say("fewer")
    title = say("bytes: it moves {how} than your answer", how=how)
    return bars(title, [(name, float(value), f"{value:,} B") for name, value in
                        (*known, (say("you"), mine))])  # fmt: skip


def still_possible(
    mine: int, more: bool | None, most: int, least: int = 0, above: Sequence[Row] = ()
) -> Picture:
    """The numbers that an answer leaves; one that is too small rules out all below it, too."""
    first = max(least, min(mine, most) - MOST + 4)
    scale = [*range(first, min(max(most, mine + 3 if more else 0), first + MOST) + 1)]
    scale += [mine] if mine not in scale else []

    def ruled_out(number: int) -> bool:
        return number == mine or (more is not None and (number < mine) == more)

    line: Row = (say("your answer") + f" {mine}",
                 [(str(n), "wrong" if ruled_out(n) else "output") for n in scale])  # fmt: skip
    return cells(say("a cross: your answer has excluded this number"), [*above, line])


def marked(title: str, rows: Iterable[tuple[str, Iterable[tuple[str, bool]]]]) -> Picture:
    """Named lines of (text, whether it is wrong)."""
    return cells(title, [
        (name, [(text, "wrong" if wrong else "output" if text else "box") for text, wrong in line])
        for name, line in rows
    ])  # fmt: skip


def _pair(place: str, right: Sequence[Any], mine: Sequence[Any], whose: str = "") -> list[Row]:
    wanted: list[Cell] = [(short(value), "output") for value in right[:MOST]]
    given: list[Cell] = [
        (short(value), "bar" if n < len(right) and same(value, right[n]) else "wrong")
        for n, value in enumerate(mine[:MOST])
    ]
    given += [("–", "wrong")] * (min(len(right), MOST) - len(given))
    return [((whose or say("right")) + place, wanted), (say("you") + place, given)]


def _rows(value: Any) -> list[list[Any]]:
    listed = value.tolist() if hasattr(value, "tolist") else list(value)
    return [list(row) if isinstance(row, (list, tuple)) else [row] for row in listed]


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, up to rounding; NaN is NaN."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-5) or (
            math.isnan(one) and math.isnan(other))  # fmt: skip
    return bool(one == other)


def short(value: Any) -> str:
    """A value as a cell shows it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
