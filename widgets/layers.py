"""Layered layout of boxes: the layer, the order and the place of each.  Nearly linear time.

The method of K. Sugiyama, S. Tagawa, M. Toda: "Methods for visual understanding of hierarchical
system structures", 1981, with each step in its simplest form:

    layer     one below the lowest box that points to it; then down towards its users, if that
              makes arrows shorter
    order     boxes move to the mean position of their neighbours, layer by layer, down and up
    place     each layer moves as close to its neighbours as its order allows (a least-squares fit
              under an order constraint, "pool adjacent violators": Ayer et al., 1955)

An arrow over several layers bends in each of them.  Very long arrows would make the size of the
picture, and the time, quadratic in its depth; they use a lane next to the boxes instead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul

ORDER_SWEEPS = 6
PLACE_SWEEPS = 8
FAR = 12
"""Maximum number of layers that an arrow crosses with a bend in each."""
LANE_GAP = 7.0
MOST_LANES = 30
STRAIGHT = 8.0
"""Weight of the alignment of two consecutive bends, relative to that of boxes."""
LOOSE = 0.05
"""Weight that keeps a box without neighbours on one side in its place."""

Size = tuple[float, float]
Edge = tuple[str, str]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Placed:
    """Centres of boxes and bends of arrows, in pixels; all x and y are at least 0."""

    centres: Mapping[str, Point]
    bends: Mapping[Edge, list[Point]]
    right: float


class _Layers:
    """Vertices are numbers: first the boxes, then the bends, which have width 0."""

    def __init__(self, widths: Iterable[float], depth: int) -> None:
        self.widths = list(widths)
        self.boxes = len(self.widths)
        self.rows: list[list[int]] = [[] for _ in range(depth)]
        self.above: list[list[int]] = [[] for _ in self.widths]
        self.below: list[list[int]] = [[] for _ in self.widths]

    def bend(self, layer: int) -> int:
        self.widths.append(0.0)
        self.above.append([])
        self.below.append([])
        self.rows[layer].append(len(self.widths) - 1)
        return len(self.widths) - 1

    def chain(self, source: int, target: int, layers: Iterable[int]) -> list[int]:
        """Add an arrow with a bend in each of these layers; returns the bends."""
        bends = [self.bend(layer) for layer in layers]
        for upper, lower in pairwise([source, *bends, target]):
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        return bends


def place(sizes: Mapping[str, Size], edges: Sequence[Edge], gap_x: float, gap_y: float) -> Placed:
    """Place the boxes, with sizes (width, height), of a connected acyclic graph."""
    level = layers_of(sizes, edges)
    names = list(sizes)
    number = {name: n for n, name in enumerate(names)}
    graph = _Layers((sizes[name][0] for name in names), max(level.values()) + 1)
    for name in names:
        graph.rows[level[name]].append(number[name])
    far = [edge for edge in edges if level[edge[1]] - level[edge[0]] > FAR]
    chains = {
        (a, b): graph.chain(number[a], number[b], range(level[a] + 1, level[b]))
        for a, b in edges
        if level[b] - level[a] <= FAR
    }
    _order(graph)
    x = _place(graph, gap_x)
    heights = [max((sizes[names[v]][1] for v in row if v < len(names)), default=0.0)
               for row in graph.rows]  # fmt: skip
    bottoms = accumulate(height + gap_y for height in heights)
    y = [bottom - gap_y - height / 2 for bottom, height in zip(bottoms, heights, strict=True)]
    layer = {v: n for n, row in enumerate(graph.rows) for v in row}
    bends = {edge: [(x[v], y[layer[v]]) for v in chain] for edge, chain in chains.items()}
    right = max(x[v] + graph.widths[v] / 2 for v in range(len(x)))
    for (source, target), lane in _lanes(far, level).items():
        at = right + gap_x + LANE_GAP * lane
        bends[source, target] = [(at, y[level[source] + 1]), (at, y[level[target] - 1])]
    reached = max([right, *(px for edge in far for px, _ in bends[edge])])
    centres = {name: (x[number[name]], y[level[name]]) for name in names}
    return Placed(centres, bends, reached)


def layers_of(names: Iterable[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The layer of each box, from 0: below all boxes that point to it, and as low as possible if it
    has more outgoing than incoming arrows."""
    sources: dict[str, list[str]] = {name: [] for name in names}
    targets: dict[str, list[str]] = {name: [] for name in sources}
    for source, target in edges:
        sources[target].append(source)
        targets[source].append(target)
    missing = {name: len(found) for name, found in sources.items()}
    ready = [name for name, count in missing.items() if count == 0]
    level = dict.fromkeys(ready, 0)
    for name in ready:
        for target in targets[name]:
            level[target] = max(level.get(target, 0), level[name] + 1)
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)
    for name in reversed(ready):
        if len(targets[name]) > len(sources[name]):
            level[name] = min(level[target] for target in targets[name]) - 1
    highest = min(level.values())
    return {name: level[name] - highest for name in sources}


def _order(graph: _Layers) -> None:
    """Sort each layer by the mean place of neighbours; keep the order with the fewest crossings."""
    at = [0.0] * len(graph.widths)
    for row in graph.rows:
        _number(row, at)
    best, fewest = [list(row) for row in graph.rows], _crossings(graph)
    for sweep in range(ORDER_SWEEPS):
        downward = sweep % 2 == 0
        near = graph.above if downward else graph.below
        for row in graph.rows if downward else reversed(graph.rows):
            if len(row) > 1:
                wanted = {v: sum([at[u] for u in near[v]]) / len(near[v]) for v in row if near[v]}
                row.sort(key=lambda v: wanted.get(v, at[v]))
                _number(row, at)
        found = _crossings(graph)
        if found < fewest:
            best, fewest = [list(row) for row in graph.rows], found
        if not fewest:
            break
    graph.rows = best


def _number(row: Sequence[int], at: list[float]) -> None:
    """Relative places from 0 to 1, so that layers of different sizes are comparable."""
    for place, vertex in enumerate(row):
        at[vertex] = (place + 0.5) / len(row)


def _crossings(graph: _Layers) -> int:
    """The number of pairs of arrows between adjacent layers that cross."""
    total = 0
    for row, lower in pairwise(graph.rows):
        if len(row) == 1 or len(lower) == 1:
            continue
        rank = {v: n for n, v in enumerate(lower)}
        passed: list[int] = []
        ends = [e for v in row for e in sorted([rank[u] for u in graph.below[v]])]
        for end in ends:
            place = bisect_right(passed, end)
            total += len(passed) - place
            passed.insert(place, end)
    return total


def _place(graph: _Layers, gap: float) -> list[float]:
    """x of each centre: each layer in turn is aligned with the layers above and below it."""
    x = [0.0] * len(graph.widths)
    layers = [(row, _offsets(graph, row, gap)) for row in graph.rows]
    for row, offsets in layers:
        for vertex, offset in zip(row, offsets, strict=True):
            x[vertex] = offset
    above, below = _pulls(graph, graph.above), _pulls(graph, graph.below)
    both = _pulls(graph, [up + down for up, down in zip(graph.above, graph.below, strict=True)])
    for sweep in range(PLACE_SWEEPS):
        downward = sweep % 2 == 0
        side = both if sweep >= PLACE_SWEEPS - 2 else above if downward else below
        for row, offsets in layers if downward else reversed(layers):
            free, weights = [], []
            for v, offset in zip(row, offsets, strict=True):
                near, pulls, whole = side[v]
                free.append(sum(map(mul, map(x.__getitem__, near), pulls)) / whole - offset)
                weights.append(whole)
            for v, start, offset in zip(row, rising(free, weights), offsets, strict=True):
                x[v] = start + offset
    left = min(x[v] - graph.widths[v] / 2 for v in range(len(x)))
    return [centre - left for centre in x]


def _pulls(
    graph: _Layers, neighbours: Iterable[Sequence[int]]
) -> list[tuple[Sequence[int], Sequence[float], float]]:
    """For each vertex: the vertices to align with, their weights, and the sum of the weights."""
    boxes = graph.boxes
    found: list[tuple[Sequence[int], Sequence[float], float]] = []
    for v, near in enumerate(neighbours):
        if not near:
            found.append(([v], [LOOSE], LOOSE))
        else:
            pulls = [STRAIGHT if v >= boxes and u >= boxes else 1.0 for u in near]
            found.append((near, pulls, sum(pulls)))
    return found


def _offsets(graph: _Layers, row: Sequence[int], gap: float) -> list[float]:
    """The centres of the vertices of a layer that is packed to the left."""
    offsets, right = [], -gap
    for vertex in row:
        offsets.append(right + gap + graph.widths[vertex] / 2)
        right += gap + graph.widths[vertex]
    return offsets


def rising(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The non-decreasing numbers closest to `values`, by weighted least squares.

    >>> rising([1, 3, 2, 4], [1, 1, 1, 1])
    [1.0, 2.5, 2.5, 4.0]
    """
    if len(values) == 1:
        return [float(values[0])]
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        mean, whole, count = float(value), weight, 1
        while pools and pools[-1][0] >= mean:
            before, heavy, many = pools.pop()
            mean = (before * heavy + mean * whole) / (heavy + whole)
            whole, count = whole + heavy, count + many
        pools.append((mean, whole, count))
    return [mean for mean, _, count in pools for _ in range(count)]


def _lanes(far: Sequence[Edge], level: Mapping[str, int]) -> dict[Edge, int]:
    """A lane for each long arrow: free lanes first, then shared round-robin."""
    ends: list[int] = []
    lanes: dict[Edge, int] = {}
    for edge in sorted(far, key=lambda e: (level[e[0]], level[e[1]])):
        start, end = level[edge[0]], level[edge[1]]
        free = next((lane for lane, last in enumerate(ends) if last < start), None)
        if free is None and len(ends) < MOST_LANES:
            ends.append(end)
            free = len(ends) - 1
        lane = len(lanes) % MOST_LANES if free is None else free
        ends[lane] = max(ends[lane], end)
        lanes[edge] = lane
    return lanes
