"""Pictures as data: boxes with labels, nested in frames, and the arrows between them.

A frame is a module (`encoder.layer.3`), a fused group, or a row of identical layers.  A closed
frame is drawn as one box; the explorer opens it in place.  Frames are laid out from the inside out,
so an open frame has exactly the size of its contents.
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
"""Maximum number of boxes in the accessible name of a picture; the description lists all."""

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
    """A box around other boxes; `parent` is the enclosing frame."""

    name: str
    label: str
    sub: str = ""
    tip: str = ""
    parent: str = ROOT
    open: bool = False
    things: tuple[int, ...] = ()


@dataclass(frozen=True)
class Picture:
    """Items, frames and arrows, with a layout for every frame and for the root."""

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
    def accessible_name(self) -> str:
        """The accessible name: the title and the boxes, for screen readers."""
        names = [item.label for item in self.items.values()]
        shown = ", ".join(names[:NAMED])
        if len(names) > NAMED:
            shown = say("{names} and {n} more", names=shown, n=len(names) - NAMED)
        return say("graph {title}: {names}", title=say(self.title), names=shown)

    def lines(self) -> Iterator[str]:
        """The description: the frames with their contents, then each box with its sources."""
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
            "told": self.accessible_name,
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
    """Lay out a picture; edges may connect any two items, in any frames."""
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
    """Cut a long text in the middle; the tooltip has the full text."""
    if len(text) <= LONGEST_LABEL:
        return text
    half = LONGEST_LABEL // 2
    return f"{text[: half - 1]}…{text[-half:]}"


def _layout_data(layout: Layout) -> shapes.Layout:
    """Names are separate from boxes, so that identical layers share boxes; only routes with bends
    are included."""
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
