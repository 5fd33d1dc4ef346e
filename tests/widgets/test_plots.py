from __future__ import annotations

import dataclasses
from xml.etree import ElementTree

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import CannotWrite, UnknownName
from inductor_lab.widgets.time import flame_view
from tests.widgets.reading import parts, without_words

SVG = "{http://www.w3.org/2000/svg}"


def layered(x, w):
    return torch.softmax(torch.exp(torch.sin(x)).tanh() @ w, -1).sigmoid() @ w


@pytest.fixture(scope="module")
def trained():
    given = (torch.randn(32, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True))
    return lab.inspect(layered, *given)


def drawn(drawing):
    """The texts of a picture; its boxes lie inside of it."""
    root = ElementTree.fromstring(str(drawing))
    width, height = (float(root.attrib[side]) for side in ("width", "height"))
    for box in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x and 0 <= y and x + w <= width + 1 and y + h <= height + 1
    return [text.text for text in root.iter(f"{SVG}text")]


def test_every_stage_plots_its_graph(trained):
    graph = trained.graphs[0]
    for station in (trained.capture, graph.captured, graph.joint, graph.partition, graph.forward,
                    graph.forward.graph, graph.forward.loops, graph.backward.schedule):
        assert len(drawn(station.plot())) > 4


def test_memory_budget_and_time(trained):
    graph = trained.graphs[0]
    lives = graph.backward.schedule.memory.lifetimes
    texts = drawn(graph.backward.plot("memory"))
    assert any(texts.count(life.buffer) == 1 for life in lives) and "live bytes" in texts
    assert sum(text.startswith("budget") for text in drawn(graph.partition.plot("budget"))) == len(
        graph.partition.cuts)
    assert {"inductor_lab", "TorchDynamo"} <= set(drawn(trained.plot("time")))


@pytest.fixture(params=["en", "zh"])
def spoken(request):
    lab.language(request.param)
    yield request.param
    lab.language("en")


DRAWINGS = {
    "图": lambda c: c.graphs[0].joint.plot(),
    "规划后": lambda c: c.graphs[0].backward.plot("memory"),
    "内存预算": lambda c: c.graphs[0].partition.plot("budget"),
    "耗时": lambda c: c.plot("flame"),
}


@pytest.mark.parametrize("word", DRAWINGS)
def test_a_picture_has_a_description_in_the_current_language(trained, spoken, word):
    drawing = DRAWINGS[word](trained)
    assert without_words(drawing._repr_html_()) == []
    head, said = drawing.partition("<desc>")[::2]
    assert (word in head) == (spoken == "zh"), head
    assert len(said.partition("</desc>")[0].splitlines()) > 2


def test_a_picture_describes_its_arrows(trained):
    said = trained.graphs[0].forward.schedule.plot().partition("<desc>")[2].partition("</desc>")[0]
    frames = [line for line in said.splitlines() if "in one kernel" in line]
    assert len(frames) == len(trained.graphs[0].forward.schedule.groups) and " from " in said


def test_pictures_without_a_description_are_found():
    assert without_words('<svg role="img" aria-label="memory"><desc>two lives</desc></svg>') == []
    assert without_words('<svg role="group" aria-label="memory"><svg></svg></svg>') == []
    for bare in ("<svg><desc>two lives</desc></svg>", '<svg role="img" aria-label="memory"></svg>',
                 '<svg role="img" aria-label=""><desc>a</desc></svg>', '<img src="a.png">'):
        assert len(without_words(bare)) == 1


def test_a_flame_graph_has_all_phases_passes_and_kernels(trained):
    """Each bar lies below the one whose time it is part of, and inside of it."""
    bars = [(each[1]["data-phase"], each[3][1]) for each in parts(flame_view(trained), "lab-phase")]
    names = {name for name, _ in bars}
    kernels = {kernel.name for part in trained.parts for kernel in part.kernels}
    assert {"total", "bytecode_tracing", "forward.codegen", "identities"} | kernels <= names
    tops = sorted({float(place["y"]) for _, place in bars})
    stack = []
    for name, place in bars:
        row = tops.index(float(place["y"]))
        start, took = (float(place[side].removesuffix("%")) for side in ("x", "width"))
        del stack[row:]
        assert len(stack) == row
        if name in kernels or name == "identities":
            outer, begin, whole = stack[-1]
            assert outer.endswith(".codegen" if name in kernels else ".rewrite")
            assert begin <= start + 2e-3 and start + took <= begin + whole + 4e-3  # % to 3 digits
        stack.append((name, start, took))
    assert any(str(text).startswith("total") for text in drawn(trained.plot("flame")))


def test_a_value_without_a_picture_lists_its_views(trained):
    with pytest.raises(UnknownName, match="print its text"):
        trained.graphs[0].forward.kernels[0].plot()
    with pytest.raises(UnknownName, match="Valid views: graph, memory"):
        trained.graphs[0].forward.schedule.plot("nonsense")
    with pytest.raises(UnknownName, match="no graph"):
        trained.graphs[0].forward.host.to_dot()


def test_a_drawing_is_written(trained, tmp_path):
    drawing = trained.graphs[0].forward.schedule.plot()
    assert drawing.save(tmp_path / "schedule.svg").read_text() == drawing._repr_svg_()
    with pytest.raises(CannotWrite):
        drawing.save(tmp_path / "nowhere" / "schedule.svg")


def test_graphviz_and_pydot_get_every_node_and_edge(trained):
    graph = trained.graphs[0].forward.graph
    dot = graph.to_pydot()
    boxes = [n for n in dot.get_nodes() if n.get_name() != "node"]
    assert len(boxes) == len(graph.nodes)
    assert len(dot.get_edges()) == sum(len(set(node.inputs)) for node in graph.nodes)
    schedule = trained.graphs[0].forward.schedule
    clusters = [c.get_name() for c in schedule.to_pydot().get_subgraphs()]
    assert len(clusters) == len(schedule.groups)


def test_hostile_labels_are_escaped():
    def f(x):
        return x.sin()

    c = lab.inspect(f, torch.randn(4))
    nodes = tuple(dataclasses.replace(n, name=n.name, target='a"];\\N <b>&') for n in
                  c.graphs[0].forward.graph.nodes)
    dot = dataclasses.replace(c.graphs[0].forward.graph, nodes=nodes).to_pydot()
    assert len([n for n in dot.get_nodes() if n.get_name() != "node"]) == len(nodes)
