"""Ranks of a group: their calls over time, and what differs between them."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from inductor_lab.bench.roofline import duration
from inductor_lab.display import bytes_text
from inductor_lab.distributed.join import Ranks
from inductor_lab.distributed.timeline import Timeline
from inductor_lab.notebook.language import say
from inductor_lab.widgets.markup import element, table, written
from inductor_lab.widgets.page import bench_style
from inductor_lab.widgets.svg import drawing_svg
from inductor_lab.widgets.time import timeline_view

HEADS = {"graphs": "captured graphs", "kernels": "generated kernels"}
"""Facts whose names alone are units elsewhere, and no heads of a row."""
_STYLE = "<style>.lab-ranks pre{font:11.5px/1.5 var(--mono);overflow:auto}</style>"


def timeline_html(found: Timeline) -> str:
    """Lanes of work and wire, and the numbers below them."""
    events = [replace(event, track=say(event.track)) for event in found.events]
    lanes = drawing_svg(timeline_view(found.name, events))
    title = say(
        "{name} on {ranks} ranks: {time}, {sent} sent in {wire}, {exposed} of it exposed",
        name=found.name, ranks=found.ranks, time=duration(found.seconds),
        sent=bytes_text(found.sent), wire=duration(found.wire), exposed=duration(found.exposed),
    )  # fmt: skip
    return _page(title, f"{lanes}<pre>{escape(str(found))}</pre>")


def ranks_html(found: Ranks) -> str:
    """What each rank has, what differs, and their calls one below the other."""
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
    events = [
        replace(event, track=f"{name}: {say(event.track)}")
        for name, line in zip(names, found.timelines, strict=True)
        for event in line.events
    ]
    lanes = drawing_svg(timeline_view(say("all ranks"), events))
    return _page(_head(found), grid + wrong + lanes)


def _head(found: Ranks) -> str:
    agree = "the same {n} collectives" if found.agree else "different collectives"
    return say(
        "{ranks} ranks: {collectives}, facts that differ: {many}",
        ranks=len(found), many=len(found.differences),
        collectives=say(agree, n=len(found.collectives[0])),
    )  # fmt: skip


def _page(title: str, *body: str) -> str:
    head = f"<style>{bench_style()}</style>{_STYLE}<h1>{escape(title)}</h1>"
    return f'<div class="lab-bench lab-ranks">{head}{"".join(body)}</div>'
