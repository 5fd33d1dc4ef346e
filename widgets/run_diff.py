"""The results of `lab.diff`: the first stage that differs, with both runs side by side."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.debug.diff.rank_diff import RankChange, RankDiff, listed
from inductor_lab.debug.diff.run_diff import MOST_LINES, Change, RunDiff
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.markup import Tree, element, written
from inductor_lab.widgets.page import bench_style, debug_style
from inductor_lab.widgets.text_diff import STYLE, sides_tree

MOST_CHANGES = 50
"""Compiles whose lines are shown; the others are counted."""


def run_diff_html(found: RunDiff) -> str:
    """HTML for a cell's output; readable without a script."""
    return _page(_heading(say("{old} and {new}", old=found.old, new=found.new)), *_parts(found))


def rank_diff_html(found: RankDiff) -> str:
    """The ranks that differ from the others, each group with its first difference."""
    return _page(_heading(found.name), *_rank_parts(found))


def _page(*parts: Tree) -> str:
    body = element("div", {"class": "lab-bench"}, *parts)
    return f"<style>{bench_style()}{debug_style()}{STYLE}</style>{written(body)}"


def _heading(text: str) -> Tree:
    return element("h1", {}, text)


def _rank_parts(found: RankDiff) -> Iterator[Tree]:
    ranks, others = len(found.equal), [r for each in found.changes for r in each.ranks]
    verdict = say("The {n} ranks are equal.", n=ranks)
    if others:
        verdict = say("{ranks}: not equal to {others}", ranks=listed(others),
                      others=listed(found.equal))  # fmt: skip
    yield element("p", {"class": "lab-verdict"}, verdict)
    for change in found.changes:
        yield from _rank_change(change)


def _rank_change(change: RankChange) -> Iterator[Tree]:
    yield element("h2", {}, listed(change.ranks))
    for sentence in filter(None, (change.out_of_step, change.collectives)):
        yield element("p", {}, translate(sentence))
    yield from _parts(change.run)


def _parts(found: RunDiff) -> Iterator[Tree]:
    yield element("p", {"class": "lab-verdict"}, _verdict(found))
    if found.versions[0] != found.versions[1] and all(found.versions):
        yield element("p", {}, " → ".join((f"torch {found.versions[0]}", found.versions[1])))
    if all(found.seconds):
        before, after = (f"{seconds:.2f} s" for seconds in found.seconds)
        yield element("p", {}, f"{say('compile time')}: {before} → {after}")
    for name, alone in ((found.old, found.only_old), (found.new, found.only_new)):
        if alone:
            said = say("only in {run}: {names}", run=name, names=", ".join(alone))
            yield element("p", {}, said)
    for number, change in enumerate(found.changes[:MOST_CHANGES]):
        yield _change(change, (found.old, found.new), is_open=number == 0)
    more = len(found.changes) - MOST_CHANGES
    if more > 0:
        yield element("p", {"class": "lab-machine"}, say("{n} more", n=more))


def _verdict(found: RunDiff) -> str:
    if not found:
        return say("The runs are equal in every stage.")
    number = len(found.changes)
    if not number:
        return say("Only one run has some of the compiles.")
    return say("{n} of {m} compiles differ", n=number, m=number + found.equal)


def _change(change: Change, names: tuple[str, str], is_open: bool) -> Tree:
    """One compile: its name opens to the lines of the first stage that differs."""
    name = change.old if change.old == change.new else f"{change.old} → {change.new}"
    said = say("{name}: the first stage that differs is the {stage}", name=name,
               stage=say(change.stage))  # fmt: skip
    lines = change.lines[2:]  # without the names of the files
    body = [sides_tree(lines[:MOST_LINES], names)]
    if len(lines) > MOST_LINES:
        body.append(element("p", {}, say("{n} more lines", n=len(lines) - MOST_LINES)))
    if change.consequences:
        later = ", ".join(map(say, change.consequences))
        body.append(element("p", {}, say("Later stages that differ too: {stages}.", stages=later)))
    if change.not_reported:
        alone = ", ".join(map(say, change.not_reported))
        said_alone = say("Only one run reports: {stages}.", stages=alone)
        body.append(element("p", {"class": "lab-machine"}, said_alone))
    shown = {"open": ""} if is_open else {}
    return element("details", shown, element("summary", {}, said), *body)
