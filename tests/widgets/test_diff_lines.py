"""Diffs of texts: lines that occur once are anchors, and difflib compares the lines between."""

from __future__ import annotations

import difflib
from random import Random

import pytest

from inductor_lab.widgets import views
from inductor_lab.widgets.views import CONTEXT, diff_lines


@pytest.mark.parametrize("seed", range(40))
def test_a_diff_rebuilds_both_texts(seed: int) -> None:
    draw = Random(seed)
    old = [draw.choice("abcdef") for _ in range(draw.randrange(40))]
    new = [line for line in old if draw.random() < 0.9]
    for _ in range(draw.randrange(3)):
        new.insert(draw.randrange(len(new) + 1), "new")
    shown = diff_lines([[line, []] for line in old], [[line, []] for line in new])
    assert [line[0] for line in shown if line[2] == "+"].count("new") == new.count("new")
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    changed = sum((a1 - a0) + (b1 - b0) for tag, a0, a1, b0, b1 in matcher.get_opcodes()
                  if tag != "equal")  # fmt: skip
    marks = [line[2] for line in shown]
    removed, added = marks.count("-"), marks.count("+")
    assert len(old) - removed == len(new) - added, "the lines that are kept are the same"
    assert removed + added <= changed + 4
    assert (not shown) == (old == new)


@pytest.mark.parametrize("seed", range(40))
def test_with_much_context_a_diff_holds_both_texts(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "CONTEXT", 1000)
    draw = Random(seed)
    old = [draw.choice(["for", "}", f"line {number}"]) for number in range(draw.randrange(60))]
    new = [draw.choice([f"new {number}", "for"]) if draw.random() < 0.2 else line
           for number, line in enumerate(old)]  # fmt: skip
    if old and draw.random() < 0.5:  # some lines are moved
        start, place = draw.randrange(len(old)), draw.randrange(len(old))
        moved, new = new[start : start + 5], new[:start] + new[start + 5 :]
        new[place:place] = moved
    shown = diff_lines([[line, []] for line in old], [[line, []] for line in new])
    if old != new:
        assert [line[0] for line in shown if line[2] != "+"] == old
        assert [line[0] for line in shown if line[2] != "-"] == new
        kept = sum(line[2] == " " for line in shown)
        assert kept >= len(set(old) & set(new)) / 4


def test_context_and_gaps() -> None:
    old = [[str(number), []] for number in range(100)]
    new = [line for line in old if line[0] not in ("20", "70")]
    shown = diff_lines(old, new)
    assert [line[0] for line in shown if line[2] == "-"] == ["20", "70"]
    assert len(shown) == 2 * (2 * CONTEXT + 1) + 1 and sum(line[2] == "@" for line in shown) == 1
    assert diff_lines(old, old) == [] and diff_lines([], []) == []
