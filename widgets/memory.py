"""Memory: when each buffer lives, and whose storage it takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from inductor_lab.display import bytes_text
from inductor_lab.notebook.language import say
from inductor_lab.schedule.result import Group, Lifetime, MemoryPlan, Schedule
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.markup import Tree, about, element
from inductor_lab.widgets.shapes import TreeView
from inductor_lab.widgets.svg import drawing
from inductor_lab.widgets.views import empty_view, note_tree, tree_view

LANE, LEFT, CURVE = 22, 90, 64
NARROWEST, WIDEST, LONGEST = 4, 46, 1400
"""Pixels of a step, and of all steps where there are many."""
COLOURS = ("bar", "other")


def memory_views(
    schedule: Schedule, scope: str, links: Links, assumed: str = ""
) -> list[TreeView]:
    """Lifetimes of intermediates and outputs: a lane for each storage, as planned; and for each
    buffer, as it would be without a plan.  `assumed` says what was taken for unknown sizes."""
    plan = schedule.memory
    if not plan.lifetimes:
        return [empty_view("after planning", "No intermediate buffers: nothing to plan.")]
    steps = [step.name if isinstance(step, Group) else step.op for step in schedule.steps]
    storages: dict[str, list[Lifetime]] = defaultdict(list)
    for life in plan.lifetimes:
        storages[storage_of(life.buffer, plan.reuse)].append(life)
    alone = {life.buffer: [life] for life in plan.lifetimes}
    peak = say("; ").join(filter(None, (_peak_text(plan), assumed)))
    saved = say("{peak}; buffers: {n}, storages: {m}",
                peak=peak, n=f"{len(alone):,}", m=f"{len(storages):,}")  # fmt: skip
    return [
        _lanes("after planning", storages, steps, plan, scope, links, saved),
        _lanes("without a plan", alone, steps, plan, scope, links, peak),
    ]


def _peak_text(plan: MemoryPlan) -> str:
    unfused, fused = bytes_text(plan.peak_unfused), bytes_text(plan.peak_after)
    peak = say("peak: one kernel per op {unfused} -> {fused} fused", unfused=unfused, fused=fused)
    if plan.peak_before == plan.peak_after:
        return peak
    alone = bytes_text(plan.peak_before)
    return peak + say(" ({alone} if no storage were used again)", alone=alone)


def storage_of(buffer: str, reuse: Mapping[str, str]) -> str:
    """The first buffer that had the storage in which this one lies."""
    while buffer in reuse:
        buffer = reuse[buffer]
    return buffer


def live_bytes(lanes: Iterable[list[Lifetime]], steps: int) -> list[int]:
    """Bytes alive at each step; buffers of one lane share their storage."""
    live = [0] * steps
    for lives in lanes:
        held = max(life.nbytes for life in lives)
        for step in range(lives[0].first, min(max(life.last for life in lives), steps - 1) + 1):
            live[step] += held
    return live


def _lanes(
    name: str,
    lanes: Mapping[str, list[Lifetime]],
    steps: list[str],
    plan: MemoryPlan,
    scope: str,
    links: Links,
    note: str,
) -> TreeView:
    """A lane for each storage, steps from left to right, and above them the bytes alive."""
    step = max(NARROWEST, min(WIDEST, LONGEST // len(steps)))
    body = [*_live_curve(live_bytes(lanes.values(), len(steps)), step)]
    for number in range(0, len(steps), -(-24 // step)):
        place = {"class": "sub", "x": LEFT + (number + 0.5) * step, "y": CURVE + 16,
                 "text-anchor": "middle"}  # fmt: skip
        body.append(element("text", place, str(number), element("title", {}, steps[number])))
    for position, (first, lives) in enumerate(lanes.items()):
        y = CURVE + 26 + position * LANE
        body.append(element("text", {"x": 4, "y": y + 13}, first))
        things = [links.find("buffer", scope, [life.buffer]) for life in lives]
        told = [_storage_note(life.buffer, plan) if len(lives) > 1 else "" for life in lives]
        body += _lane(lives, things, told, y, step, len(steps))
    width = LEFT + (len(steps) + 1) * step + 240
    height = CURVE + 26 + len(lanes) * LANE + 8
    title = say(name)
    size = {"width": width, "height": height}
    shown = element("svg", {**drawing(f"{title}: {note}"), **size}, *body)
    whole = {"class": "lab-lanes", "role": "group", "aria-label": title}
    return tree_view(name, element("div", whole, note_tree(note), shown))


def _lane(
    lives: list[Lifetime], things: list[list[int]], told: list[str], y: int, step: int, steps: int
) -> Iterator[Tree]:
    """Those that take one storage, one after the other, and its size behind them."""
    size = bytes_text(max(life.nbytes for life in lives))
    right = 0
    for number, (life, about_it, note) in enumerate(zip(lives, things, told, strict=True)):
        x = LEFT + life.first * step
        length = max((min(life.last, steps) - life.first + 1) * step - 2, 3)
        right = max(right, x + length)
        there = say("steps {first} to {last}", first=life.first, last=life.last)
        said = f"{life.buffer}: {size}, {there}"
        said += f"\n{note}" if note else ""
        place = {"x": x, "y": y, "width": length, "height": LANE - 5, "rx": 3}
        yield element(
            "g", {**about(about_it), "class": "lab-lane", "data-buffer": life.buffer,
                  "role": "button", "aria-label": said},
            element("title", {}, said),
            element("rect", {**place, "class": COLOURS[number % 2]}),
        )  # fmt: skip
    later = ", ".join(life.buffer for life in lives[1:])
    after = size + (say(", then {later}", later=later) if later else "")
    yield element("text", {"class": "sub", "x": right + 6, "y": y + 13}, after)


def _live_curve(live: list[int], step: int) -> Iterator[Tree]:
    """Up and down with the bytes alive; the peak has its number."""
    most = max([*live, 1])
    path = f"M{LEFT} {CURVE}"
    for number, count in enumerate(live):
        y = CURVE - count / most * (CURVE - 16)
        path += f"L{LEFT + number * step} {y:.1f}L{LEFT + (number + 1) * step} {y:.1f}"
    yield element("path", {"class": "area", "d": f"{path}L{LEFT + len(live) * step} {CURVE}Z"})
    yield element("text", {"class": "sub", "x": 4, "y": CURVE - 4}, say("bytes alive"))
    if most in live:
        peak = live.index(most)
        place = {"class": "sub", "x": LEFT + (peak + 0.5) * step, "y": 12,
                 "text-anchor": "middle" if peak else "start"}  # fmt: skip
        yield element("text", place, say("peak {bytes}", bytes=bytes_text(most)))


def _storage_note(buffer: str, plan: MemoryPlan) -> str:
    if buffer not in plan.reuse:
        return ""
    how = "in place of {other}" if buffer in plan.in_place else "takes the storage of {other}"
    return say(how, other=plan.reuse[buffer])
