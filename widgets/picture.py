"""Pictures as data: boxes with labels, nested in frames, and the arrows between them.

A frame is a module (`encoder.layer.3`), a fused group, or a row of equal layers.  A closed frame is
drawn as one box; the explorer opens it in place.  Frames are laid out from the inside out, so an
open one has exactly the room that its contents need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inductor_lab.notebook.language import say
from inductor_lab.widgets import shapes
from inductor_lab.widgets.layout import Box, Layout, Route, layered

CHARACTER = 7.3
MARGIN = 12.0
BOX_HEIGHT = {1: 26.0, 2: 40.0}
FRAME_HEAD = 24.0
LONGEST_LABEL = 44
NAMED = 12
"""The name of a picture has so many of its boxes at most; its description has them all."""

ROOT = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One box.  `role` is input, call, extern, output or constant; `tip` is for a tooltip."""

    name: str
    label: str
    sub: str = ""
    role: str = "call"
    tip: str = ""
    things: tuple[int, ...] = ()
    frame: str = ROOT


@dataclass(frozen=True, slots=True)
class Frame:
    """A box around boxes; `parent` is the frame it stands in."""

    name: str
    label: str
    sub: str = ""
    tip: str = ""
    parent: str = ROOT
    open: bool = False
    things: tuple[int, ...] = ()


@dataclass(frozen=True)
class Picture:
    """Items, frames and arrows, with a layout for the inside of every frame (and for the root)."""

    title: str
    items: Mapping[str, Item]
    frames: Mapping[str, Frame]
    edges: tuple[tuple[str, str], ...]
    inside: Mapping[str, Layout] = field(default_factory=dict)

    @property
    def size(self) -> tuple[float, float]:
        root = self.inside[ROOT]
        return root.width, root.height

    @property
    def told(self) -> str:
        """What it is of, and its boxes: its name for readers who do not see it."""
        names = [item.label for item in self.items.values()]
        told = ", ".join(names[:NAMED])
        if len(names) > NAMED:
            told = say("{names} and {n} more", names=told, n=len(names) - NAMED)
        return say("graph {title}: {names}", title=say(self.title), names=told)

    def lines(self) -> Iterator[str]:
        """The frames with what stands in them, then each box with those that lead to it."""
        held: dict[str, list[str]] = defaultdict(list)
        for item in self.items.values():
            held[item.frame].append(item.label)
        for name, frame in self.frames.items():
            yield ": ".join(filter(None, (frame.label, frame.sub, ", ".join(held[name]))))
        sources: dict[str, list[str]] = defaultdict(list)
        for source, target in self.edges:
            sources[target].append(self.items[source].label)
        for name, item in self.items.items():
            box = f"{item.label} {item.sub}".rstrip()
            feeds = ", ".join(sources[name])
            yield say("{box} from {sources}", box=box, sources=feeds) if feeds else box

    def view(self, name: str) -> shapes.GraphPicture:
        """Plain lists for the explorer: whole pixels, edges as pairs of items' places."""
        places = {name: place for place, name in enumerate(self.items)}
        return {
            "kind": "graph",
            "name": name,
            "title": self.title,
            "told": self.told,
            "items": [
                [i.name, i.label, i.sub, i.role, i.tip, list(i.things), i.frame]
                for i in self.items.values()
            ],
            "frames": [
                [f.name, f.label, f.sub, f.tip, f.parent, f.open, list(f.things)]
                for f in self.frames.values()
            ],
            "edges": [places[end] for edge in self.edges for end in edge],
            "inside": {name: _layout_data(layout) for name, layout in self.inside.items()},
        }


def draw(
    title: str, items: Iterable[Item], frames: Iterable[Frame], edges: Iterable[tuple[str, str]]
) -> Picture:
    """Lay out a picture; edges may join any two items, wherever they stand."""
    known = {item.name: item for item in items}
    nested = {frame.name: frame for frame in frames}
    arrows = tuple((a, b) for a, b in dict.fromkeys(edges) if a in known and b in known)
    plan = _Plan(known, nested, arrows)
    plan.lay_out(ROOT)
    return Picture(title, known, nested, arrows, plan.inside)


@dataclass
class _Plan:
    items: Mapping[str, Item]
    frames: Mapping[str, Frame]
    edges: tuple[tuple[str, str], ...]
    inside: dict[str, Layout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.children: dict[str, list[str]] = defaultdict(list)
        for frame in self.frames.values():
            self.children[frame.parent].append(frame.name)
        for item in self.items.values():
            self.children[item.frame].append(item.name)
        self.lifted: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for source, target in self.edges:
            a, b = self._path(source), self._path(target)
            depth = next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
            level = a[depth - 1] if depth else ROOT
            self.lifted[level].append((a[depth], b[depth]))

    def _path(self, name: str) -> list[str]:
        """The names from the outermost frame down to the item itself."""
        path, frame = [name], self.items[name].frame
        while frame != ROOT:
            path.append(frame)
            frame = self.frames[frame].parent
        return path[::-1]

    def lay_out(self, level: str) -> None:
        sizes = {}
        for name in self.children[level]:
            if name in self.frames:
                self.lay_out(name)
            sizes[name] = self._size(name)
        self.inside[level] = layered(sizes, self.lifted[level])

    def _size(self, name: str) -> tuple[float, float]:
        if name in self.items:
            item = self.items[name]
            return label_size(item.label, item.sub)
        frame = self.frames[name]
        closed = label_size(frame.label, frame.sub)
        if not frame.open:
            return closed[0] + 18, closed[1]
        within = self.inside[name]
        width = max(within.width, len(shorten(frame.label)) * CHARACTER) + 2 * MARGIN
        return width, within.height + FRAME_HEAD + MARGIN


def label_size(label: str, sub: str) -> tuple[float, float]:
    """Width and height of a box with one or two lines of 12 px monospace text."""
    longest = max(len(shorten(label)), 0.9 * len(shorten(sub)))
    return longest * CHARACTER + 22, BOX_HEIGHT[2 if sub else 1]


def shorten(text: str) -> str:
    """Cut in the middle what would make a box too wide; the tooltip has the whole text."""
    if len(text) <= LONGEST_LABEL:
        return text
    half = LONGEST_LABEL // 2
    return f"{text[: half - 1]}…{text[-half:]}"


def _layout_data(layout: Layout) -> shapes.Layout:
    """Names apart from boxes, which equal layers share; a route is told where it bends."""
    return {
        "size": [round(layout.width), round(layout.height)],
        "names": list(layout.boxes),
        "boxes": [_box_data(box) for box in layout.boxes.values()],
        "routes": [_route_data(route) for route in layout.routes if len(route.points) > 2],
    }


def _box_data(box: Box) -> list[int]:
    return [round(box.x), round(box.y), round(box.width), round(box.height)]


def _route_data(route: Route) -> list[Any]:
    flat = [round(value) for point in route.points for value in point]
    return [route.source, route.target, flat]
