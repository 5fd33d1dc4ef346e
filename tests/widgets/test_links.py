from __future__ import annotations

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, Span
from inductor_lab.widgets.links import Links


def node(name: str, came_from: tuple[str, ...] = (), line: int = 0) -> FxNode:
    span = Span("f.py", line) if line else None
    return FxNode(name, "call_function", "torch.sin", "x", (), None, span, "", came_from)


def names(links: Links, things: list[int]) -> list[str]:
    data = links.data()
    return [f"{data['kind'][t]} {data['scope'][t]} {data['label'][t]}" for t in things]


def test_a_node_leads_to_its_ancestor_or_else_to_its_line():
    links = Links()
    captured = FxGraph("captured", (node("sin", line=3), node("cos", line=4)), "")
    links.graph(captured, "g0.captured", None)
    forward = FxGraph("forward", (node("sin", ("sin",)), node("extra", line=4)), "")
    links.graph(forward, "g0.forward", "g0.captured")
    sin, extra = links.find("node", "g0.forward", ("sin", "extra"))
    parents = links.data()["parents"]
    assert names(links, parents[sin]) == ["node g0.captured sin"]
    assert names(links, parents[extra]) == ["source f.py f.py:4"]


def test_a_module_of_torch_leads_to_the_line_that_calls_it():
    """TorchDynamo reports no lines of torch's own files."""
    links = Links()
    links.called_from = Span("main.py", 7)
    captured = FxGraph("captured", (node("linear"), node("sin", line=3)), "")
    links.graph(captured, "g0.captured", None)
    linear, sin = links.find("node", "g0.captured", ("linear", "sin"))
    parents = links.data()["parents"]
    assert names(links, parents[linear]) == ["source main.py main.py:7"]
    assert names(links, parents[sin]) == ["source f.py f.py:3"]


def test_a_rewritten_graph_adds_nodes_to_its_scope():
    links = Links()
    links.graph(FxGraph("forward", (node("pow_1", line=2),), ""), "g0.forward", None)
    links.graph(FxGraph("after", (node("mul", ("pow_1",)),), ""), "g0.forward", "g0.forward")
    (mul,) = links.find("node", "g0.forward", ["mul"])
    assert names(links, links.data()["parents"][mul]) == ["node g0.forward pow_1"]


def test_a_thing_is_never_its_own_parent():
    links = Links()
    links.graph(FxGraph("f", (node("a", ("a",)),), ""), "s", "s")
    assert links.data()["parents"] == [[]]
