"""The ranks of a process group: their calls over time, and the differences between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from html import escape

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.step_time import duration
from inductor_lab.distributed.join import Ranks
from inductor_lab.distributed.timeline import Timeline
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.markup import element, said_heads, table, written
from inductor_lab.widgets.page import bench_style
from inductor_lab.widgets.svg import drawing_svg
from inductor_lab.widgets.time import Kind, timeline_view

HEADS = {"graphs": "captured graphs", "kernels": "generated kernels"}
"""Fact → row heading, for facts whose names are units elsewhere."""
LANES = {
    "work": ("bar", "compute: kernels and library calls"),
    "wire": ("wire", "communication: collectives"),
    "wait": ("wait", "wait: exposed communication"),
}
"""Lane of a timeline → style class, meaning."""
SENT = ("collective", ">sent", ">communication time", ">from")
GROUPS = (">ranks", ">per call", ">communication time", ">exposed")
_STYLE = "<style>.lab-ranks pre{font:11.5px/1.5 var(--mono);overflow:auto}</style>"


def timeline_html(found: Timeline) -> str:
    """Lanes of compute and communication, and the numbers below them."""
    lanes = _lanes(found.name, [("", found)])
    title = say(
        "{name} on {ranks} ranks: {time}, {sent} sent in {wire}, {exposed} of it exposed",
        name=found.name, ranks=found.ranks, time=duration(found.seconds),
        sent=bytes_text(found.sent), wire=duration(found.wire), exposed=duration(found.exposed),
    )  # fmt: skip
    sent = [
        (span.name, bytes_text(span.nbytes), duration(span.seconds), duration(span.start))
        for span in found.collectives
    ]
    groups = [
        (str(there.ranks), *map(duration, (there.seconds, there.wire, there.exposed)))
        for there in found.groups
    ]
    note = f"<p>{escape(translate(found.assumed))}</p>"
    return _page(title, lanes, _numbers(SENT, sent), _numbers(GROUPS, groups), note)


def _numbers(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return written(element("div", {"class": "lab-table"}, table(said_heads(heads), rows)))


def ranks_html(found: Ranks) -> str:
    """The facts of each rank, the differences, and the timelines of all ranks."""
    names = [say("rank {n}", n=rank) for rank in range(len(found))]
    heads = ("", *(f">{name}" for name in names), "")
    rows = [
        (
            say(HEADS.get(fact.what, fact.what)),
            *map(say, fact.values),
            "" if fact.same else say("differs"),
        )
        for fact in found.facts
    ]
    grid = written(element("div", {"class": "lab-table"}, table(heads, rows)))
    wrong = "" if found.agree else f"<pre>{escape(found.first_difference)}</pre>"
    lanes = _lanes(say("all ranks"), zip(names, found.timelines, strict=True))
    return _page(_head(found), grid + wrong + lanes)


def _lanes(title: str, lines: Iterable[tuple[str, Timeline]]) -> str:
    """The timelines of all ranks; the colour of a lane shows its kind of work."""
    tracks: dict[str, set[str]] = {lane: set() for lane in LANES}
    events = []
    for name, line in lines:
        for event in line.events:
            track = ": ".join(filter(None, (name, say(event.track))))
            tracks[event.track].add(track)
            events.append(replace(event, track=track))
    kinds = [
        Kind(role, say(meaning), frozenset(tracks[lane]))
        for lane, (role, meaning) in LANES.items()
        if tracks[lane]
    ]
    return drawing_svg(timeline_view(title, events, kinds=kinds))


def _head(found: Ranks) -> str:
    agree = "the same {n} collectives" if found.agree else "different collectives"
    return say(
        "{ranks} ranks: {collectives}; differences: {many}",
        ranks=len(found), many=len(found.differences),
        collectives=say(agree, n=len(found.collectives[0])),
    )  # fmt: skip


def _page(title: str, *body: str) -> str:
    head = f"<style>{bench_style()}</style>{_STYLE}<h1>{escape(title)}</h1>"
    return f'<div class="lab-bench lab-ranks">{head}{"".join(body)}</div>'
