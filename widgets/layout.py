"""Places boxes and arrows in layers, top to bottom, so that arrows point down.

The layering, crossing reduction and coordinates are Sugiyama's, from the pure-Python library
grandalf; the result is plain numbers that `svg.py` and the explorer draw.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout

GAP_X = 18.0
GAP_Y = 30.0
SWEEPS = 4
ROW_WIDTH = 900.0

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels; `x`, `y` is its top left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Route:
    """An arrow: it leaves `source` at the first point and reaches `target` at the last."""

    source: str
    target: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes by name, arrows, and the size of the whole picture in pixels."""

    boxes: Mapping[str, Box]
    routes: tuple[Route, ...]
    width: float
    height: float


class _View:
    """What grandalf asks of a vertex or an edge: its size, and a place to put the answer."""

    def __init__(self, width: float = 0.0, height: float = 0.0) -> None:
        self.w, self.h, self.xy = width, height, (0.0, 0.0)
        self.path: list[Point] = []

    def setpath(self, points: list[Point]) -> None:
        self.path = [(float(x), float(y)) for x, y in points]


class _Vertex(Vertex):
    """grandalf keeps vertices in sets: with numbers for hashes their order is always the same."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name)
        self.number = number

    def __hash__(self) -> int:
        return self.number


class _Edge(Edge):
    """The same for edges."""

    def __init__(self, source: _Vertex, target: _Vertex, number: int) -> None:
        self.number = number
        super().__init__(source, target)

    def __hash__(self) -> int:
        return self.number


def layered(sizes: Mapping[str, tuple[float, float]], edges: Iterable[tuple[str, str]]) -> Layout:
    """Lay out boxes of the given (width, height); edges between names, cycles allowed.

    Connected parts stand side by side; boxes without any edge are put in rows below them.
    """
    pairs = [(a, b) for a, b in dict.fromkeys(edges) if a != b]
    upward = backward_edges(sizes, pairs)
    downward = dict.fromkeys((b, a) if (a, b) in upward else (a, b) for a, b in pairs)
    joined = {name for pair in pairs for name in pair}

    boxes: dict[str, Box] = {}
    bends: dict[tuple[str, str], list[Point]] = {}
    left = 0.0
    for component in _components({n: s for n, s in sizes.items() if n in joined}, downward):
        left += _place(component, left, boxes, bends) + 2 * GAP_X
    below = max((box.y + box.height + GAP_Y for box in boxes.values()), default=0.0)
    _place_loose({n: s for n, s in sizes.items() if n not in joined}, below, left, boxes)

    routes = tuple(
        Route(a, b, _arrow(boxes[a], boxes[b], bends[b, a][::-1] if up else bends[a, b]))
        for a, b in pairs
        for up in [(a, b) in upward]
    )
    xs = [x for route in routes for x, _ in route.points]
    width = max([*(box.x + box.width for box in boxes.values()), *xs], default=0.0)
    height = max((box.y + box.height for box in boxes.values()), default=0.0)
    return Layout({name: boxes[name] for name in sizes}, routes, width, height)


def backward_edges(
    names: Iterable[str], pairs: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """The edges that close a cycle in a depth-first walk; without them there is none."""
    targets: dict[str, list[str]] = defaultdict(list)
    for source, target in pairs:
        targets[source].append(target)
    found: set[tuple[str, str]] = set()
    done: set[str] = set()
    for start in names:
        path = {start: iter(targets[start])} if start not in done else {}
        while path:
            name = next(reversed(path))
            target = next(path[name], None)
            if target is None:
                done.add(name)
                del path[name]
            elif target in path:
                found.add((name, target))
            elif target not in done:
                path[target] = iter(targets[target])
    return found


def _components(
    sizes: Mapping[str, tuple[float, float]], pairs: Iterable[tuple[str, str]]
) -> list[Any]:
    """grandalf's graphs, one for each connected part."""
    vertices = {name: _Vertex(name, number) for number, name in enumerate(sizes)}
    for name, (width, height) in sizes.items():
        vertices[name].view = _View(width, height)
    links = [_Edge(vertices[a], vertices[b], number) for number, (a, b) in enumerate(pairs)]
    for link in links:
        link.view = _View()
    parts: list[Any] = Graph(list(vertices.values()), links).C
    return parts


def _place(
    component: Any,
    left: float,
    boxes: dict[str, Box],
    bends: dict[tuple[str, str], list[Point]],
) -> float:
    """Lay out one connected part at x >= `left`; returns its width."""
    sugiyama = SugiyamaLayout(component)
    sugiyama.xspace, sugiyama.yspace = GAP_X, GAP_Y
    sugiyama.route_edge = lambda edge, points: None
    roots = [v for v in component.sV if not v.e_in()]
    sugiyama.init_all(roots=roots, inverted_edges=[], optimize=True)
    sugiyama.draw(SWEEPS)

    placed = {v.data: _box_of(v.view) for v in component.sV}
    paths = {(e.v[0].data, e.v[1].data): e.view.path[1:-1] for e in component.sE}
    bent = [x for path in paths.values() for x, _ in path]
    shift_x = left - min([*(box.x for box in placed.values()), *bent])
    shift_y = -min(box.y for box in placed.values())
    for name, box in placed.items():
        boxes[name] = Box(box.x + shift_x, box.y + shift_y, box.width, box.height)
    for pair, path in paths.items():
        bends[pair] = [(x + shift_x, y + shift_y) for x, y in path]
    right = max([*(box.x + box.width for box in placed.values()), *bent])
    return right + shift_x - left


def _box_of(view: _View) -> Box:
    x, y = view.xy
    return Box(x - view.w / 2, y - view.h / 2, view.w, view.h)


def _arrow(source: Box, target: Box, bends: list[Point]) -> tuple[Point, ...]:
    upward = target.y < source.y
    start = (source.x + source.width / 2, source.y + (0.0 if upward else source.height))
    end = (target.x + target.width / 2, target.y + (target.height if upward else 0.0))
    return (start, *bends, end)


def _place_loose(
    sizes: Mapping[str, tuple[float, float]], top: float, wide: float, boxes: dict[str, Box]
) -> None:
    """Boxes that nothing points to or from, in rows."""
    x, y, row = 0.0, top, 0.0
    for name, (width, height) in sizes.items():
        if x > 0 and x + width > max(wide, ROW_WIDTH):
            x, y, row = 0.0, y + row + GAP_X, 0.0
        boxes[name] = Box(x, y, width, height)
        x, row = x + width + GAP_X, max(row, height)
