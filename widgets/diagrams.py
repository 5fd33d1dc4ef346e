"""Lanes, timelines and budgets as SVG text, from the same data that the explorer draws."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from inductor_lab.widgets.svg import PAD, svg_page, svg_text
from inductor_lab.widgets.views import View

WIDTH = 720.0
LEFT = 96.0
ROW = 22.0
CURVE = 60.0
CHARACTER = 6.5


def lanes_svg(view: View) -> str:
    """Lifetimes over the steps of a schedule, below the bytes that are alive."""
    step = min(46.0, WIDTH / max(len(view["steps"]), 1))
    top = PAD + CURVE + 26
    height = top + ROW * len(view["lanes"]) + PAD
    width = LEFT + step * (len(view["steps"]) + 1) + 260
    return svg_page(f"memory: {view['note']}", width, height, _lanes(view, step, top))


def _lanes(view: View, step: float, top: float) -> Iterator[str]:
    base = PAD + CURVE
    most = max([*view["live"], 1])
    path = f"M{LEFT} {base}"
    for number, count in enumerate(view["live"]):
        y = base - count / most * (CURVE - 14)
        path += f"L{LEFT + number * step:.1f} {y:.1f}L{LEFT + (number + 1) * step:.1f} {y:.1f}"
    yield f'<path class="area" d="{path}L{LEFT + len(view["live"]) * step:.1f} {base}Z"/>'
    yield svg_text(PAD, base - 4, "bytes alive", "sub", "start")
    yield svg_text(LEFT, PAD + 4, view["note"], "sub", "start")
    every = max(1, round(24 / step))
    for number in range(0, len(view["steps"]), every):
        yield svg_text(LEFT + (number + 0.5) * step, base + 16, str(number), "sub")
    for row, lane in enumerate(view["lanes"]):
        y = top + row * ROW
        yield svg_text(PAD, y + 13, lane["name"], "", "start")
        right = 0.0
        for number, bar in enumerate(lane["bars"]):
            x = LEFT + bar["first"] * step
            length = max((min(bar["last"], len(view["steps"])) - bar["first"] + 1) * step - 2, 3)
            right = max(right, x + length)
            style = "other" if number % 2 else "bar"
            tip = f"{bar['name']}: {lane['size']}, steps {bar['first']} to {bar['last']}"
            yield _bar(style, x, y, length, ROW - 5, tip)
        after = ", then ".join([lane["size"], *(bar["name"] for bar in lane["bars"][1:])])
        yield svg_text(right + 6, y + 13, after, "sub", "start")


def timeline_svg(view: View) -> str:
    """Phases over time, a block of rows for each track."""
    heights = [max((bar[0] for bar in t["bars"]), default=0) + 1 for t in view["tracks"]]
    height = 2 * PAD + sum(rows * ROW + 30 for rows in heights)
    title = f"time of {view['title']}"
    return svg_page(title, WIDTH + 2 * PAD, height, _timeline(view, heights))


def _timeline(view: View, heights: list[int]) -> Iterator[str]:
    bars = [bar for track in view["tracks"] for bar in track["bars"]]
    end = max((start + took for _, _, start, took, _ in bars), default=0) or 1.0
    top = PAD
    for track, rows in zip(view["tracks"], heights, strict=True):
        yield svg_text(PAD, top + 12, track["title"], "", "start")
        for row, name, start, took, text in track["bars"]:
            x, length = PAD + WIDTH * start / end, max(WIDTH * took / end, 1.5)
            y = top + 20 + row * ROW
            yield _bar("bar", x, y, length, ROW - 2, f"{name}: {text}")
            shown = f"{name} {text}"[: int((length - 6) / CHARACTER)] if length > 30 else ""
            if shown:
                yield svg_text(x + 3, y + 14, shown, "sub on", "start")
        top += rows * ROW + 30


def budget_svg(view: View) -> str:
    """Bytes kept for the backward, a bar for each budget; the compiled one is marked."""
    height = 2 * PAD + 24 + ROW * len(view["cuts"])
    return svg_page("memory budgets", WIDTH, height, _budget(view))


def _budget(view: View) -> Iterator[str]:
    yield svg_text(PAD, PAD + 10, view["note"], "sub", "start")
    most = max([view["eager"], *(cut["bytes"] for cut in view["cuts"]), 1])
    for row, cut in enumerate(view["cuts"]):
        y = PAD + 24 + row * ROW
        length = max(0.4 * WIDTH * cut["bytes"] / most, 2)
        mark = "   as compiled" if row == view["at"] else ""
        yield svg_text(PAD, y + 13, f"budget {cut['budget']:.3g}", "", "start")
        style = "other" if row == view["at"] else "bar"
        yield _bar(style, LEFT + 20, y, length, ROW - 5, cut["again"])
        text = f"{cut['text']}, {cut['again']}{mark}"
        yield svg_text(LEFT + 26 + length, y + 13, text, "sub", "start")


def _bar(style: str, x: float, y: float, width: float, height: float, tip: str) -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<g><title>{escape(tip)}</title><rect class="{style}" rx="2" {box}/></g>'
