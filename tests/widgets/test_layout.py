from __future__ import annotations

import cProfile
import pstats

import pytest

from inductor_lab.widgets.layers import FAR
from inductor_lab.widgets.layout import Box, Layout, backward_edges, layered

DIAMOND = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "d")]


def overlapping(layout: Layout) -> list[tuple[str, str]]:
    def apart(p: Box, q: Box) -> bool:
        beside = p.x + p.width <= q.x + 0.01 or q.x + q.width <= p.x + 0.01
        return beside or p.y + p.height <= q.y + 0.01 or q.y + q.height <= p.y + 0.01

    names = sorted(layout.boxes)
    return [
        (a, b) for a in names for b in names
        if a < b and not apart(layout.boxes[a], layout.boxes[b])
    ]


def test_arrows_point_down_and_nothing_overlaps():
    layout = layered({name: (80, 30) for name in "abcd"}, DIAMOND)
    for source, target in DIAMOND:
        assert layout.boxes[source].y + 30 < layout.boxes[target].y
    assert overlapping(layout) == []
    assert {(route.source, route.target) for route in layout.routes} == set(DIAMOND)


def test_an_arrow_starts_at_its_source_and_ends_at_its_target():
    layout = layered({"a": (80, 30), "b": (200, 50)}, [("a", "b")])
    (route,) = layout.routes
    a, b = layout.boxes["a"], layout.boxes["b"]
    assert route.points[0] == (a.x + 40, a.y + 30)
    assert route.points[-1] == (b.x + 100, b.y)


def test_everything_is_inside_the_picture():
    sizes = {f"n{i}": (60 + 7 * (i % 5), 30) for i in range(30)}
    edges = [(f"n{i}", f"n{j}") for i in range(30) for j in (i + 1, i + 7) if j < 30]
    layout = layered(sizes, edges)
    for box in layout.boxes.values():
        assert 0 <= box.x <= layout.width - box.width
        assert 0 <= box.y <= layout.height - box.height
    for route in layout.routes:
        assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in route.points)
    assert overlapping(layout) == []


@pytest.mark.parametrize("edges", [[("a", "b"), ("b", "a")], [("a", "a")], []])
def test_cycles_loops_and_loose_boxes(edges):
    layout = layered({"a": (80, 30), "b": (80, 30)}, edges)
    assert set(layout.boxes) == {"a", "b"}
    assert overlapping(layout) == []


def test_cycles_of_many_boxes():
    names = [f"n{i}" for i in range(40)]
    edges = [(names[i], names[(i * 7 + 3) % 40]) for i in range(40)]
    edges += [(names[i], names[(i * 11 + 1) % 40]) for i in range(40)]
    layout = layered({name: (60, 30) for name in names}, edges)
    assert overlapping(layout) == []
    assert len(layout.routes) == len({(a, b) for a, b in edges if a != b})


def test_without_its_backward_edges_a_graph_has_no_cycle():
    pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "b")]
    assert backward_edges("abcd", pairs) == {("c", "a"), ("d", "b")}


def test_nothing_at_all():
    assert layered({}, []) == Layout({}, (), 0.0, 0.0)


def test_inputs_stand_near_their_users():
    chain = [(f"n{i}", f"n{i + 1}") for i in range(20)]
    sizes = {f"n{i}": (60, 30) for i in range(21)} | {"late": (60, 30)}
    layout = layered(sizes, [*chain, ("late", "n20")])
    assert layout.boxes["late"].y > layout.boxes["n15"].y


def calls_for(nodes: int) -> int:
    """Python calls that the layout of a chain with shortcuts makes."""
    sizes = {f"n{i}": (90, 40) for i in range(nodes)}
    edges = [(f"n{i}", f"n{i + 1}") for i in range(nodes - 1)]
    edges += [(f"n{i}", f"n{i + 9}") for i in range(0, nodes - 10, 3)]
    return calls_of(sizes, edges)


def test_four_times_the_nodes_take_less_than_their_square_of_the_work():
    assert calls_for(400) < 16 * calls_for(100)


def calls_of(sizes: dict[str, tuple[float, float]], edges: list[tuple[str, str]]) -> int:
    profile = cProfile.Profile()
    profile.runcall(layered, sizes, edges)
    return pstats.Stats(profile).total_calls


def test_a_thousand_inputs_of_one_box_are_near_linear_work() -> None:
    def work(inputs: int) -> int:
        sizes = dict.fromkeys([f"i{n}" for n in range(inputs)] + ["f"], (80.0, 26.0))
        return calls_of(sizes, [(f"i{n}", "f") for n in range(inputs)])

    assert work(1200) < 5 * work(300)


def test_arrows_over_many_layers_are_near_linear_work() -> None:
    """As from the forward to the backward of a deep net: the depth of all is the square of it."""

    def work(depth: int) -> int:
        sizes = dict.fromkeys([f"n{n}" for n in range(depth)], (80.0, 26.0))
        chain = [(f"n{n}", f"n{n + 1}") for n in range(depth - 1)]
        return calls_of(sizes, chain + [(f"n{n}", f"n{depth - 1 - n}") for n in range(depth // 2)])

    assert work(1200) < 5 * work(300)


def test_an_arrow_over_many_layers_avoids_the_boxes() -> None:
    chain = [(f"n{n}", f"n{n + 1}") for n in range(FAR + 8)]
    sizes = dict.fromkeys([f"n{n}" for n in range(FAR + 9)], (80.0, 26.0))
    layout = layered(sizes, [*chain, ("n0", f"n{FAR + 8}"), ("n1", f"n{FAR + 7}")])
    right = max(box.x + box.width for box in layout.boxes.values())
    *_, first, second = layout.routes
    for route in (first, second):
        assert all(right < x <= layout.width for x, _ in route.points[1:-1])
    assert first.points[1][0] != second.points[1][0]


def test_few_arrows_cross() -> None:
    """Two ladders, given in an order that crosses every rung."""
    names = [f"{side}{n}" for n in range(10) for side in ("ab", "ba")[n % 2]]
    edges = [(f"{side}{n}", f"{side}{n + 1}") for side in "ab" for n in range(9)]
    edges.append(("a0", "b1"))
    layout = layered(dict.fromkeys(names, (60.0, 26.0)), edges)
    left = {layout.boxes[f"a{n}"].x < layout.boxes[f"b{n}"].x for n in range(10)}
    assert len(left) == 1


def test_the_same_graph_is_always_laid_out_the_same():
    names = [f"n{i}" for i in range(60)]
    edges = [(names[i], names[j]) for i in range(60) for j in (i + 1, i + 7, 3 * i + 2) if j < 60]
    sizes = dict.fromkeys(names, (60.0, 26.0))
    first = layered(sizes, edges)
    kept = [object() for _ in range(1000)]  # so that new objects lie elsewhere
    assert all(layered(sizes, edges) == first for _ in range(3)) and kept
