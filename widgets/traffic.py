"""An animation of memory traffic: programs race; a pass is a packet between memory and processor.

A timeline to scale below each track shows the same without motion; it is the only picture if the
reader prefers reduced motion.  The animation stops after some turns and can be paused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from html import escape

from inductor_lab.widgets.svg import svg_page, svg_text

Leg = tuple[str, float, bool]
"""One memory pass: the buffer, its seconds, and whether it is written."""

WIDTH, LEFT, RIGHT = 760.0, 96.0, 640.0
LANE, SECONDS, TURNS = 112.0, 8.0, 3
STYLE = """
.lab-race input:checked ~ svg .lab-moves{animation-play-state:paused}
@media (prefers-reduced-motion:reduce){
.lab-race .lab-moves{animation:none!important;visibility:hidden}
.lab-race label{display:none}
}
"""


def race(
    title: str,
    description: str,
    lanes: Sequence[tuple[str, Sequence[Leg]]],
    words: tuple[str, str, str, str, str],
) -> str:
    """Draw the lanes.  `words` are those for memory, processor, read, write, pause."""
    whole = max(sum(seconds for _, seconds, _ in legs) for _, legs in lanes)
    name = f"lab-race-{hashlib.sha256(description.encode()).hexdigest()[:8]}"

    def parts() -> Iterator[str]:
        yield svg_text(12, 20, title, anchor="start")
        for number, (label, legs) in enumerate(lanes):
            yield from _lane(34 + LANE * number, label, legs, whole, f"{name}-{number}", words)

    rules = "".join(_frames(f"{name}-{n}", legs, whole) for n, (_, legs) in enumerate(lanes))
    svg = svg_page(title, WIDTH, 34 + LANE * len(lanes), parts(), description.splitlines())
    pause = f'<input type="checkbox" id="{name}"> <label for="{name}">{escape(words[4])}</label>'
    return (
        f'<div class="lab-race" style="overflow-x:auto"><style>{STYLE}{rules}</style>'
        f"{pause}<br>{svg}</div>"
    )


def _lane(
    top: float,
    label: str,
    legs: Sequence[Leg],
    whole: float,
    name: str,
    words: tuple[str, str, str, str, str],
) -> Iterator[str]:
    yield svg_text(12, top + 14, label, "sub", "start")
    for x, text, role in ((12.0, words[0], "input"), (RIGHT + 20, words[1], "output")):
        yield f'<rect class="{role}" rx="4" x="{x}" y="{top + 22:.0f}" width="84" height="26"/>'
        yield svg_text(x + 42, top + 39, text, "on")
    yield f'<path class="arrow" d="M{LEFT + 4} {top + 35:.0f}H{RIGHT + 16}"/>'
    moves = f'class="bar lab-moves" style="animation:{name} {SECONDS}s linear {TURNS} both"'
    yield f'<rect {moves} x="{LEFT + 4}" y="{top + 27:.0f}" width="26" height="16"/>'
    x = LEFT
    for buffer, seconds, writes in legs:
        wide = seconds / whole * (RIGHT + 20 - LEFT)
        role, verb = ("other", words[3]) if writes else ("bar", words[2])
        place = f'x="{x:.1f}" y="{top + 60:.0f}" width="{max(wide - 1, 1):.1f}" height="22"'
        tip = f"{verb} {buffer}: {seconds * 1e3:.2f} ms"
        yield f'<g><title>{escape(tip)}</title><rect class="{role}" {place}/>'
        text = next((t for t in (f"{verb} {buffer}", verb) if len(t) * 7.3 < wide), "")
        yield svg_text(x + wide / 2, top + 75, text, "on") + "</g>"
        x += wide
    line = f"M{LEFT} {top + 56:.0f}V{top + 86:.0f}"
    moves = f'class="arrow lab-moves" style="animation:{name}-head {SECONDS}s linear {TURNS} both"'
    yield f'<path {moves} d="{line}"/>'


def _frames(name: str, legs: Sequence[Leg], whole: float) -> str:
    """Key frames of a lane's packet, and of the marker that moves along its passes."""
    reach, end, frames = RIGHT - LEFT - 20, 0.0, []
    for _, seconds, writes in legs:
        begin, end = end, end + seconds / whole * 100
        start, stop = (reach, 0.0) if writes else (0.0, reach)
        frames += [(begin + 0.02, start), (end, stop)]
    packet = "".join(f"{at:.2f}%{{transform:translateX({x:.0f}px)}}" for at, x in frames)
    stops = f"transform:translateX({end / 100 * (RIGHT + 20 - LEFT):.0f}px)"
    head = f"0%{{transform:none}}{end:.2f}%,100%{{{stops}}}"
    last = f"100%{{transform:translateX({frames[-1][1]:.0f}px)}}"
    return f"@keyframes {name}{{{packet}{last}}}\n@keyframes {name}-head{{{head}}}\n"
