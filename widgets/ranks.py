"""Ranks of a group: their calls over time, and what differs between them."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from inductor_lab.distributed.join import Ranks
from inductor_lab.distributed.timeline import Timeline
from inductor_lab.widgets.diagrams import timeline_svg
from inductor_lab.widgets.markup import element, table, written
from inductor_lab.widgets.page import bench_style
from inductor_lab.widgets.time import timeline_view

_STYLE = "<style>.lab-ranks pre{font:11.5px/1.5 var(--mono);overflow:auto}</style>"


def timeline_html(found: Timeline) -> str:
    """Lanes of work and wire, and the numbers below them."""
    lanes = timeline_svg(timeline_view(found.name, found.events))
    return _page(repr(found), f"{lanes}<pre>{escape(str(found))}</pre>")


def ranks_html(found: Ranks) -> str:
    """What each rank has, what differs, and their calls one below the other."""
    heads = ("", *(f">rank {rank}" for rank in range(len(found))), "")
    rows = [(fact.what, *fact.values, "" if fact.same else "differs") for fact in found.facts]
    grid = written(element("div", {"class": "lab-table"}, table(heads, rows)))
    wrong = "" if found.agree else f"<pre>{escape(found.first_difference)}</pre>"
    events = [
        replace(event, track=f"rank {rank}: {event.track}")
        for rank, line in enumerate(found.timelines)
        for event in line.events
    ]
    return _page(repr(found), grid + wrong + timeline_svg(timeline_view("all ranks", events)))


def _page(title: str, *body: str) -> str:
    head = f"<style>{bench_style()}</style>{_STYLE}<h1>{escape(title)}</h1>"
    return f'<div class="lab-bench lab-ranks">{head}{"".join(body)}</div>'
