from __future__ import annotations

import json

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.capture.source import SourceFile
from inductor_lab.compiler.capture.span import Span
from inductor_lab.widgets import views
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.markup import inside, text_of
from inductor_lab.widgets.model import document
from inductor_lab.widgets.user_side import source_view
from tests.widgets.reading import rows


def lines_of(doc, pane):
    return [line for block in doc["panes"][pane]["views"][0]["blocks"] for line in block["lines"]]


def above(doc, things):
    """Everything that these things came from."""
    parents, found, waiting = doc["links"]["parents"], set(), list(things)
    while waiting:
        thing = waiting.pop()
        if thing not in found:
            found.add(thing)
            waiting += parents[thing]
    return found


def sources_of(doc, things):
    links = doc["links"]
    return {links["label"][t] for t in above(doc, things) if links["kind"][t] == "source"}


@pytest.fixture(scope="module")
def doc(training):
    return document(training)


def test_it_is_plain_data(doc):
    assert json.loads(json.dumps(doc)) == doc


def test_a_chain_of_three_says_what_it_saved(inference):
    facts = {fact["label"]: fact["value"] for fact in document(inference)["facts"]}
    assert facts["kernels"] == "3 eager, 3 unfused → 1 fused"
    assert facts["memory passes"] == "6 unfused → 2 fused"
    assert facts["traffic saved by fusion"] == "66.7 %"


def test_every_phase_has_its_pane(doc):
    for name in ("source", "g0.captured", "g0.joint", "g0.joint.cut", "guards", "time"):
        assert name in doc["panes"]
    for part in ("forward", "backward"):
        for phase in ("graph", "rewrites", "loops", "schedule", "memory", "code", "host"):
            assert doc["panes"][f"g0.{part}.{phase}"]["views"]
    assert [p for group in doc["groups"] for p in group["panes"]] == list(doc["panes"])
    assert set(doc["open"]) <= set(doc["panes"])
    assert {fact["pane"] for fact in doc["facts"]} <= set(doc["panes"])


@pytest.mark.parametrize("part", ["forward", "backward"])
def test_generated_lines_lead_to_the_users_lines(doc, training, part):
    shown = lines_of(doc, f"g0.{part}.code")
    kernels = getattr(training.graphs[0], part).kernels
    code = [line for kernel in kernels for line in kernel.code.lines]
    assert [line[0] for line in shown] == [line.text for line in code]
    linked = [
        bool(sources_of(doc, shown_line[1]))
        for shown_line, line in zip(shown, code, strict=True)
        if line.statement and line.origins
    ]
    assert linked and all(linked)


def test_the_two_lines_of_the_function_go_different_ways(doc):
    sin = next(line for line in lines_of(doc, "g0.forward.code") if "sin" in line[0] and line[1])
    cos = next(line for line in lines_of(doc, "g0.forward.code") if "lab_cos" in line[0])
    assert sources_of(doc, sin[1]) != sources_of(doc, cos[1])


def test_graph_breaks_are_reported_and_several_graphs_shown(broken):
    doc = document(broken)
    assert doc["panes"]["breaks"]["problem"] == "graph break"
    assert rows(doc["panes"]["breaks"]["views"][0])
    assert "g1.forward.code" in doc["panes"]
    titles = [group["title"] for group in doc["groups"]]
    assert "graph 0 forward" in titles and "graph 1 forward" in titles


def test_what_is_missing_is_said(inference):
    doc = document(inference)
    empty = doc["panes"]["breaks"]["views"][0]
    assert "No graph breaks" in text_of(empty["tree"])
    assert "g0.joint" not in doc["panes"]


def test_decisions_carry_every_rule(doc, training):
    decisions = training.graphs[0].forward.schedule.decisions
    view = doc["panes"]["g0.forward.schedule"]["views"][1]
    assert len(rows(view)) == len(decisions)
    for row, decision in zip(rows(view), decisions, strict=True):
        assert [inner[0] for inner in row["more"]] == [v.rule for v in decision.verdicts]


def test_a_loaded_compilation_looks_the_same(training, doc, tmp_path):
    loaded = lab.load(training.save(tmp_path / "c.lab.json"))
    assert doc["switches"]  # the what-if list of a live explorer, which a file cannot have
    assert json.dumps(document(loaded)) == json.dumps({**doc, "switches": []})


def test_a_function_without_torch_says_that_nothing_was_captured():
    doc = document(lab.inspect(lambda x: 1, 2))
    assert doc["open"] == ["source", "captured"]
    assert text_of(doc["panes"]["captured"]["views"][0]["tree"]).startswith("No graph was captured")
    assert {fact["pane"] for fact in doc["facts"]} <= set(doc["panes"])


def test_each_graph_has_its_own_times(broken):
    panes = document(broken)["panes"]
    for number, graph in enumerate(broken.graphs):
        assert panes[f"g{number}.forward.code"]["seconds"] == graph.seconds["forward.codegen"]
    total = sum(graph.seconds["forward.codegen"] for graph in broken.graphs)
    assert len(broken.graphs) == 2
    assert total == pytest.approx(broken.seconds["forward.codegen"], rel=0.2)


def test_a_long_function_without_modules_opens_by_its_lines():
    def long(x):
        for _ in range(30):
            x = x.sin() + 1
        y = x
        for _ in range(30):
            y = y.cos() * x
        return y

    compilation = lab.inspect(long, torch.randn(8))
    picture = document(compilation)["panes"]["g0.captured"]["views"][0]
    labels = {frame[1] for frame in picture["frames"]}
    assert len([label for label in labels if "line" in label]) >= 2
    closed = {frame[0] for frame in picture["frames"] if not frame[5]}
    assert len(closed) >= 2


def test_lines_that_python_has_no_text_of_are_not_shown():
    links, own = Links(), SourceFile("mine.py", 1, "y = Wave(x).scaled()")
    for file, code in (("<string>", ""), ("wave.py", "self.x = x")):
        links.source_of(Span(file, 3, 0, 0, 0, "__init__", code))
    titles = [block["title"] for block in source_view(own, links)["blocks"]]
    assert titles == ["mine.py", "wave.py"], "a dataclass's __init__ is in <string>"


def test_a_short_name_keeps_to_one_line_and_a_long_one_may_break():
    long = "cpp_fused_add_embedding_gt_mul_rand_like"
    shown = views.row(("pow_two", long, "a line"))
    table = views.table_view("rules", ("rule", "node", "for"), [shown])
    cells = inside(views.tree_of(table), "td")
    assert [cell[1].get("class") for cell in cells] == ["whole", None, None]
