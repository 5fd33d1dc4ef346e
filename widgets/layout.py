"""Layout of boxes and arrows from top to bottom, as numbers that `svg.py` and the explorer draw.

`layers.py` places one connected component; this module places components next to each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import networkx as nx

from inductor_lab.widgets.layers import Edge, Point, Size, place

GAP_X = 18.0
GAP_Y = 30.0
ROW_WIDTH = 900.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels; `x`, `y` is its top left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Route:
    """An arrow from `source` (the first point) to `target` (the last point)."""

    source: str
    target: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes by name, arrows, and the size of the picture in pixels."""

    boxes: Mapping[str, Box]
    routes: tuple[Route, ...]
    width: float
    height: float


def layered(sizes: Mapping[str, tuple[float, float]], edges: Iterable[tuple[str, str]]) -> Layout:
    """Lay out boxes of the given (width, height); edges are between names and may form cycles.

    Connected components are placed side by side; boxes without edges are placed in rows below.
    """
    names = list(sizes)
    number = {name: str(place) for place, name in enumerate(names)}
    found = _layered(tuple(sizes.values()), tuple((number[a], number[b]) for a, b in edges))
    return Layout(
        dict(zip(names, found.boxes.values(), strict=True)),
        tuple(replace(route, source=names[int(route.source)], target=names[int(route.target)])
              for route in found.routes),
        found.width, found.height,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _layered(lengths: tuple[Size, ...], edges: tuple[Edge, ...]) -> Layout:
    """The same for boxes named "0", "1", ...: the equal layers of a model are laid out once."""
    sizes = {str(place): size for place, size in enumerate(lengths)}
    pairs = [(a, b) for a, b in dict.fromkeys(edges) if a != b]
    upward = backward_edges(sizes, pairs)
    downward = dict.fromkeys((b, a) if (a, b) in upward else (a, b) for a, b in pairs)
    joined = {name for pair in pairs for name in pair}

    boxes: dict[str, Box] = {}
    bends: dict[tuple[str, str], list[Point]] = {}
    left = 0.0
    for part in _parts(sizes, list(downward)):
        placed = place({name: sizes[name] for name in part[0]}, part[1], GAP_X, GAP_Y)
        for name, (x, y) in placed.centres.items():
            width, height = sizes[name]
            boxes[name] = Box(left + x - width / 2, y - height / 2, width, height)
        for pair, points in placed.bends.items():
            bends[pair] = [(left + x, y) for x, y in points]
        left += placed.right + 2 * GAP_X
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
    """The back edges of a depth-first search; without them the graph is acyclic."""
    targets: dict[str, list[str]] = defaultdict(list)
    for source, target in pairs:
        targets[source].append(target)
    found: set[tuple[str, str]] = set()
    done: set[str] = set()
    for start in names:
        path = {start: iter(targets[start])} if start not in done else {}
        while path:
            name = next(reversed(path))
            for target in path[name]:
                if target in path:
                    found.add((name, target))
                elif target not in done:
                    path[target] = iter(targets[target])
                    break
            else:
                done.add(name)
                del path[name]
    return found


def _parts(
    sizes: Mapping[str, object], pairs: Sequence[tuple[str, str]]
) -> list[tuple[list[str], list[tuple[str, str]]]]:
    """Boxes and arrows of each connected component, both in the given order."""
    which = {
        name: number
        for number, part in enumerate(nx.connected_components(nx.Graph(pairs)))
        for name in part
    }
    parts: dict[int, tuple[list[str], list[tuple[str, str]]]] = {}
    for name in sizes:
        if name in which:
            parts.setdefault(which[name], ([], []))[0].append(name)
    for pair in pairs:
        parts[which[pair[0]]][1].append(pair)
    return list(parts.values())


def _arrow(source: Box, target: Box, bends: list[Point]) -> tuple[Point, ...]:
    upward = target.y < source.y
    start = (source.x + source.width / 2, source.y + (0.0 if upward else source.height))
    end = (target.x + target.width / 2, target.y + (target.height if upward else 0.0))
    return (start, *bends, end)


def _place_loose(
    sizes: Mapping[str, tuple[float, float]], top: float, wide: float, boxes: dict[str, Box]
) -> None:
    """Place boxes without edges in rows."""
    x, y, row = 0.0, top, 0.0
    for name, (width, height) in sizes.items():
        if x > 0 and x + width > max(wide, ROW_WIDTH):
            x, y, row = 0.0, y + row + GAP_X, 0.0
        boxes[name] = Box(x, y, width, height)
        x, row = x + width + GAP_X, max(row, height)
