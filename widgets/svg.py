"""Pictures → standalone SVG text, without scripts, fonts or external files.

Colours follow the light or dark theme of the reader; text and background are always set together.
All text from a program is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import accumulate, pairwise
from typing import Any
from unicodedata import east_asian_width

from inductor_lab.notebook.language import say
from inductor_lab.widgets.layers import Point
from inductor_lab.widgets.layout import Route
from inductor_lab.widgets.markup import Tree, inside, text_of, tips, written
from inductor_lab.widgets.picture import FRAME_HEAD, MARGIN, ROOT, Picture, shorten

PAD = 12.0
WIDTH = 720.0
"""Width of a drawing whose width is given in percent."""
LETTER = 7.3
"""Width in pixels of a letter of 12 px text; text of the class "sub" is smaller by `SUB`."""
SUB = 0.9
MOST_LINES = 60

SHAPES = """
.lab-svg rect{width:revert-layer;height:revert-layer}
.lab-svg{border-radius:4px;max-width:100%;height:auto}
.lab-svg text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.lab-svg .sub{font-size:10.8px}
.lab-svg .constant{stroke-dasharray:3 2}
.lab-svg .output{stroke-width:2}
.lab-svg .frame,.lab-svg .closed{stroke-width:1.4}
.lab-svg .chosen{stroke-width:2}
.lab-svg .wire{stroke-width:2}
.lab-svg .wait{stroke-width:1.5;stroke-dasharray:3 2}
.lab-svg .arrow{fill:none;stroke-width:1.2}
.lab-svg .struck{paint-order:stroke;stroke-width:4;stroke-linejoin:round}
"""
"""`revert-layer` restores the sizes of the drawing: marimo has its own class `output`."""
LIGHT = {
    "": "background:#fff;color:#1b1f24",
    "text": "fill:#1b1f24",
    ".sub": "fill:#57606a",
    ".on": "fill:#1b1f24",
    ".box": "fill:#f6f8fa;stroke:#57606a",
    ".input": "fill:#ddf4ff;stroke:#0969da",
    ".output": "fill:#dafbe1;stroke:#1a7f37",
    ".extern": "fill:#fff8c5;stroke:#9a6700",
    ".struck": "fill:#1b1f24;stroke:#fff8c5",
    ".frame": "fill:#8250df0f;stroke:#8250df",
    ".closed": "fill:#fbefff;stroke:#8250df",
    ".arrow": "stroke:#6e7781",
    ".head": "fill:#6e7781",
    ".bar": "fill:#b6d4f5;stroke:#0550ae",
    ".other": "fill:#ddcff5;stroke:#8250df",
    ".wire": "fill:#ffb77c;stroke:#a04100",
    ".wait": "fill:#fff;stroke:#1b1f24",
    ".area": "fill:#ddeaf8;stroke:#0550ae",
    ".chosen": "fill:none;stroke:#1b1f24",
}
DARK = {
    "": "background:#0d1117;color:#e6edf3",
    "text": "fill:#e6edf3",
    ".sub": "fill:#9da7b3",
    ".on": "fill:#e6edf3",
    ".box": "fill:#161b22;stroke:#8b949e",
    ".input": "fill:#0c2d48;stroke:#58a6ff",
    ".output": "fill:#0f2d17;stroke:#3fb950",
    ".extern": "fill:#332701;stroke:#d29922",
    ".struck": "fill:#e6edf3;stroke:#332701",
    ".frame": "fill:#a371f718;stroke:#a371f7",
    ".closed": "fill:#21183a;stroke:#a371f7",
    ".arrow": "stroke:#8b949e",
    ".head": "fill:#8b949e",
    ".bar": "fill:#1b3d5e;stroke:#79c0ff",
    ".other": "fill:#3a2a5c;stroke:#a371f7",
    ".wire": "fill:#7a3a08;stroke:#ffb77c",
    ".wait": "fill:#0d1117;stroke:#e6edf3",
    ".area": "fill:#14283c;stroke:#79c0ff",
    ".chosen": "fill:none;stroke:#e6edf3",
}


def themed(root: str, light: Mapping[str, str], dark: Mapping[str, str]) -> str:
    """Style rules below `root`, for the theme of the notebook or else of the system.

    A page sets `data-theme` where it knows the notebook's theme (`javascript/theme.js`).
    """

    def rules(palette: Mapping[str, str], inside: str = "") -> str:
        return "".join(f"{inside}{root} {part}{{{how}}}\n" for part, how in palette.items())

    return (
        rules(light)
        + f"@media (prefers-color-scheme:dark){{\n{rules(dark)}}}\n"
        + rules(light, ':is([data-jp-theme-light="true"],[data-theme="light"]) ')
        + rules(dark, ':is([data-jp-theme-light="false"],[data-theme="dark"]) ')
    )


STYLE = SHAPES + themed(".lab-svg", LIGHT, DARK)


def picture_svg(picture: Picture) -> str:
    """The picture with tooltips; closed frames are drawn as one box."""
    width, height = (side + 2 * PAD for side in picture.size)
    boxes = _level(picture, ROOT, PAD, PAD)
    return svg_page(picture.accessible_name, width, height, boxes, picture.lines())


def svg_page(
    title: str, width: float, height: float, parts: Iterable[str], lines: Iterable[str]
) -> str:
    """Elements as one SVG file with its style; the description is lines of text."""
    body = "\n".join(parts)
    return (
        f'<svg class="lab-svg" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-label="{escape(title, quote=True)}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(description(lines))}</desc>\n"
        f"<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def description(texts: Iterable[str]) -> str:
    """The description of a picture for screen readers; lines after the first `MOST_LINES` are only
    counted."""
    lines = [" ".join(text.split()) for text in texts]
    if len(lines) > MOST_LINES:
        more = say("and {n} more", n=len(lines) - MOST_LINES)
        lines = [*lines[:MOST_LINES], more]
    return "\n".join(lines)


def drawing(title: str) -> dict[str, str]:
    """The attributes of a drawing in a view's tree."""
    return {"class": "lab-drawing", "role": "group", "aria-label": title}


def drawing_svg(view: Mapping[str, Any]) -> str:
    """The drawing in a view's tree as a standalone picture, below the view's note."""
    (shown,) = inside(view["tree"], "svg")
    tag, attributes, *children = shown
    stretched = attributes["width"].endswith("%")
    width = WIDTH if stretched else float(attributes["width"])
    height = float(attributes["height"])
    note = "".join(text_of(p) for p in inside(view["tree"], "p"))
    place = {"x": f"{PAD:g}", "y": "32", "width": f"{width:g}", "height": f"{height:g}"}
    body = [_resolved(child, width) for child in children]
    parts = [svg_text(PAD, 18, note, "sub", "start"), written([tag, place, *body])]
    wide = max(width, width_of(note) * SUB)
    lines = [note, *map(text_of, tips(shown))]
    return svg_page(attributes["aria-label"], wide + 2 * PAD, height + 32 + PAD, parts, lines)


def _resolved(tree: Tree | str, width: float, room: float = math.inf) -> Tree | str:
    """Convert percentages of the width to pixels, since not every SVG viewer supports them.  `room`
    is the width available for text in a nested drawing, such as a bar of a timeline."""
    if isinstance(tree, str):
        return shortened(tree, room)
    tag, attributes, *children = tree
    given = {name: f"{float(value[:-1]) * width / 100:.2f}" if value.endswith("%") else value
             for name, value in attributes.items()}  # fmt: skip
    if tag == "svg":
        room = float(given["width"])
    within = room - 2 * float(given["x"]) if tag == "text" else room
    return [tag, given, *(_resolved(child, width, within) for child in children)]


def _level(picture: Picture, level: str, left: float, top: float) -> Iterator[str]:
    """Arrows and boxes of one frame, with its contents at (left, top)."""
    layout = picture.inside[level]
    for route in layout.routes:
        yield from _arrow(route, left, top)
    for name, box in layout.boxes.items():
        x, y = left + box.x, top + box.y
        rect = f'x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
        frame = picture.frames.get(name)
        if frame is not None and frame.open:
            yield f'<g><title>{escape(frame.tip)}</title><rect class="frame" rx="6" {rect}/>'
            yield svg_text(x + MARGIN, y + 16, shorten(frame.label), "sub", "start") + "</g>"
            yield from _level(picture, name, x + MARGIN, y + FRAME_HEAD)
            continue
        shown = frame or picture.items[name]
        role = "closed" if frame else f"box {picture.items[name].role}"
        corner = 13 if "input" in role else 4
        yield f'<g><title>{escape(shown.tip)}</title><rect class="{role}" rx="{corner}" {rect}/>'
        middle = x + box.width / 2
        if shown.sub:
            yield svg_text(middle, y + 16.5, shorten(shown.label))
            yield svg_text(middle, y + 31, shorten(shown.sub), "sub") + "</g>"
        else:
            yield svg_text(middle, y + box.height / 2 + 4, shorten(shown.label)) + "</g>"


def width_of(text: str) -> float:
    """Width in pixels of 12 px text; a Chinese character is as wide as it is high."""
    return sum(12.0 if east_asian_width(letter) in "WF" else LETTER for letter in text)


def shortened(text: str, room: float) -> str:
    """As much of a 12 px text as fits into `room` pixels.

    >>> shortened("forward.codegen 12.8 ms", 80), shortened("forward", 80)
    ('forward.c…', 'forward')
    """
    if width_of(text) <= room:
        return text
    ends = accumulate(map(width_of, text))
    fits = sum(end <= room - LETTER for end in ends)
    return f"{text[:fits]}…" if fits else ""


def svg_text(x: float, y: float, text: str, style: str = "", anchor: str = "middle") -> str:
    name = f' class="{style}"' if style else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _arrow(route: Route, left: float, top: float) -> Iterator[str]:
    points = [(x + left, y + top) for x, y in route.points]
    yield f'<path class="arrow" d="{curve(points)}"/>'
    (_, before), (x, y) = points[-2], points[-1]
    back = 6 if before <= y else -6
    yield f'<path class="head" d="M{x:.1f} {y:.1f}l-3.5 {-back}h7z"/>'


def curve(points: list[Point]) -> str:
    """A smooth path through the points, vertical at both ends."""
    path = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
    return "".join(path)
