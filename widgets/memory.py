"""The memory plan: the lifetime of each buffer, and whose storage it reuses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.schedule.memory import live_bytes, storages
from inductor_lab.compiler.schedule.schedule import Group, Lifetime, MemoryPlan, Schedule
from inductor_lab.notebook.language import say
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.markup import Tree, about, element
from inductor_lab.widgets.picture import shorten
from inductor_lab.widgets.shapes import TreeView
from inductor_lab.widgets.svg import SUB, drawing, width_of
from inductor_lab.widgets.views import empty_view, note_tree, tree_view

LANE, NEAREST, CURVE = 22, 90, 64
"""Pixels: height of a lane, minimum space before the first step, height of the curve."""
NARROWEST, WIDEST, LONGEST = 4, 46, 1400
"""Pixels: minimum and maximum width of a step, and the maximum width of all steps."""
COLOURS = ("bar", "other")


def memory_views(
    schedule: Schedule, scope: str, links: Links, assumed: str = ""
) -> list[TreeView]:
    """Lifetimes of intermediates and outputs: one lane per storage with the plan, and one lane per
    buffer without the plan.  `assumed` states the assumed values of unknown sizes."""
    plan = schedule.memory
    if not plan.lifetimes:
        return [empty_view("after planning", "No intermediate buffers: nothing to plan.")]
    steps = [step.name if isinstance(step, Group) else step.op for step in schedule.steps]
    peak = say("; ").join(filter(None, (_peak_text(plan), assumed)))
    saved = say("{peak}; buffers: {n}, storages: {m}",
                peak=peak, n=f"{len(plan.lifetimes):,}",
                m=f"{len(storages(plan.lifetimes, plan.reuse)):,}")  # fmt: skip
    return [
        _lanes("after planning", steps, plan, scope, links, saved),
        _lanes("without a plan", steps, replace(plan, reuse={}), scope, links, peak),
    ]


def _peak_text(plan: MemoryPlan) -> str:
    unfused, fused = bytes_text(plan.peak_unfused), bytes_text(plan.peak_after)
    peak = say("peak: {n} without fusion and reuse -> {m}", n=unfused, m=fused)
    if plan.peak_before != plan.peak_after:
        peak += say(" ({alone} without reuse)", alone=bytes_text(plan.peak_before))
    if plan.peak_after > plan.peak_unfused:
        peak += say(
            "; fused kernels allocate some results earlier and keep their inputs alive longer"
        )
    return peak


def _lanes(
    name: str, steps: list[str], plan: MemoryPlan, scope: str, links: Links, note: str
) -> TreeView:
    """A lane for each storage, steps from left to right, and a curve of the live bytes above."""
    lanes = storages(plan.lifetimes, plan.reuse)
    heads = {first: links.label("buffer", scope, first) for first in lanes}
    left = max(NEAREST, *(width_of(shorten(head)) + 14 for head in heads.values()))
    along = Along(left, max(NARROWEST, min(WIDEST, LONGEST // len(steps))), len(steps))
    live = live_bytes(plan.lifetimes, len(steps), plan.reuse)
    body = [*_live_curve(live, along), *_step_numbers(steps, along)]
    right = along.at(len(steps) + 2)
    for position, (first, lives) in enumerate(lanes.items()):
        y = CURVE + 26 + position * LANE
        body.append(_label(4, y + 13, heads[first], ""))
        body += _lane(lives, plan, scope, links, y, along)
        place = along.end(lives) + 6
        text = _size_text(first, lives)
        body.append(_label(place, y + 13, text, "sub"))
        right = max(right, place + SUB * width_of(shorten(text)))
    size = {"width": f"{right + 8:g}", "height": CURVE + 26 + len(lanes) * LANE + 8}
    title = say(name)
    shown = element("svg", {**drawing(f"{title}: {note}"), **size}, *body)
    whole = {"class": "lab-lanes", "role": "group", "aria-label": title}
    return tree_view(name, element("div", whole, note_tree(note), shown))


@dataclass(frozen=True, slots=True)
class Along:
    """Positions of steps in the drawing: the first at `left`, each `step` pixels wide."""

    left: float
    step: int
    steps: int

    def at(self, step: float) -> float:
        return self.left + step * self.step

    def width(self, life: Lifetime) -> float:
        return max((min(life.last, self.steps) - life.first + 1) * self.step - 2, 3)

    def end(self, lives: Sequence[Lifetime]) -> float:
        return max(self.at(life.first) + self.width(life) for life in lives)


def _label(x: float, y: float, text: str, style: str) -> Tree:
    """A label; a long one is cut in the middle and has the full text as a tooltip."""
    place = {"class": style, "x": f"{x:g}", "y": y}
    whole = [element("title", {}, text)] if shorten(text) != text else []
    return element("text", place, shorten(text), *whole)


def _step_numbers(steps: Sequence[str], along: Along) -> Iterator[Tree]:
    """As many step numbers as fit; their tooltips have the names."""
    room = SUB * width_of(str(len(steps))) + 8
    for number in range(0, len(steps), max(1, math.ceil(room / along.step))):
        place = {"class": "sub", "x": f"{along.at(number + 0.5):g}", "y": CURVE + 16,
                 "text-anchor": "middle"}  # fmt: skip
        yield element("text", place, str(number), element("title", {}, steps[number]))


def _lane(
    lives: Sequence[Lifetime], plan: MemoryPlan, scope: str, links: Links, y: int, along: Along
) -> Iterator[Tree]:
    """The lifetimes of the buffers that share one storage."""
    for number, life in enumerate(lives):
        there = say("steps {first} to {last}", first=life.first, last=life.last)
        note = _storage_note(life.buffer, plan, scope, links)
        said = f"{life.buffer}: {bytes_text(life.nbytes)}, {there}" + (f"\n{note}" if note else "")
        place = {"x": f"{along.at(life.first):g}", "y": y, "width": f"{along.width(life):g}",
                 "height": LANE - 5, "rx": 3}  # fmt: skip
        about_it = about(links.find("buffer", scope, [life.buffer]))
        yield element(
            "g", {**about_it, "class": "lab-lane", "data-buffer": life.buffer,
                  "role": "button", "aria-label": said},
            element("title", {}, said),
            element("rect", {**place, "class": COLOURS[number % 2]}),
        )  # fmt: skip


def _size_text(first: str, lives: Sequence[Lifetime]) -> str:
    """The text after a lane: its size, whether it is counted, and the later buffers in it."""
    later = [life.buffer for life in lives if life.buffer != first]
    size = bytes_text(lives[0].nbytes)
    if len(later) == len(lives):
        size = say("{size}, storage of an input, not counted", size=size)
    return size + (say(", then {later}", later=", ".join(later)) if later else "")


def _live_curve(live: Sequence[int], along: Along) -> Iterator[Tree]:
    """The curve of live bytes, with a label at the peak."""
    most = max([*live, 1])
    path = f"M{along.left:g} {CURVE}"
    for number, count in enumerate(live):
        y = CURVE - count / most * (CURVE - 16)
        path += f"L{along.at(number):g} {y:.1f}L{along.at(number + 1):g} {y:.1f}"
    yield element("path", {"class": "area", "d": f"{path}L{along.at(len(live)):g} {CURVE}Z"})
    yield element("text", {"class": "sub", "x": 4, "y": CURVE - 4}, say("live bytes"))
    peak = live.index(max(live))
    place = {"class": "sub", "x": f"{along.at(peak + 0.5):g}", "y": 12,
             "text-anchor": "middle" if peak else "start"}  # fmt: skip
    yield element("text", place, say("peak {bytes}", bytes=bytes_text(live[peak])))


def _storage_note(buffer: str, plan: MemoryPlan, scope: str, links: Links) -> str:
    if buffer not in plan.reuse:
        return ""
    in_place = buffer in plan.in_place
    how = "written in place of {other}" if in_place else "reuses the storage of {other}"
    return say(how, other=links.label("buffer", scope, plan.reuse[buffer]))
