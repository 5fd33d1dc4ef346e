from __future__ import annotations

from xml.etree import ElementTree

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, TensorFacts
from inductor_lab.widgets.graphs import bytes_text, fx_picture, program_picture, schedule_picture
from inductor_lab.widgets.picture import ROOT, Frame, Item, draw
from inductor_lab.widgets.svg import picture_svg

SVG = "{http://www.w3.org/2000/svg}"
FACTS = TensorFacts("f32", ("2",), ("1",), "cpu", 8)


def call(name: str, inputs: tuple[str, ...] = (), module: str = "", target: str = "") -> FxNode:
    target = target or f"torch.ops.aten.{name}.default"
    return FxNode(name, "call_function", target, "", inputs, FACTS, None, module)


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_graph_is_drawn_with_names_shapes_and_arrows():
    graph = FxGraph("g", (call("sin"), call("cos", ("sin",))), "")
    svg = picture_svg(fx_picture(graph))
    assert texts(svg) == ["sin", "f32[2]", "cos", "f32[2]"]
    assert svg.count('class="arrow"') == 1


def test_special_characters_are_text():
    hostile = '<img src=x onerror="alert(1)">&'
    graph = FxGraph(hostile, (call(hostile, target=hostile),), "")
    svg = picture_svg(fx_picture(graph))
    assert "<img" not in svg
    assert any("<img" in text for text in texts(svg))


def test_the_view_box_holds_every_box(training):
    for graph in (training.graphs[0].forward.graph, training.graphs[0].backward.graph):
        root = ElementTree.fromstring(picture_svg(fx_picture(graph)))
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for box in root.iter(f"{SVG}rect"):
            x, y, w, h = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
            assert x >= 0 and y >= 0 and x + w <= width and y + h <= height


def test_big_graphs_are_collapsed_by_module_and_equal_layers_folded():
    nodes, last = [], ()
    for layer in range(12):
        for k in range(8):
            node = call(f"op{layer}_{k}", last, f"net.layer.{layer}", "torch.ops.aten.add.Tensor")
            nodes.append(node)
            last = (node.name,)
    picture = fx_picture(FxGraph("big", (*nodes, call("end", last)), ""))
    assert [f.label for f in picture.frames.values() if f.parent == ROOT] == ["net.layer ×12"]
    assert sum(f.label.startswith("layer.") for f in picture.frames.values()) == 12
    assert picture.items["op3_0"].frame == "module net.layer.3"


def test_a_node_may_be_called_as_its_module_is():
    nodes = [call("pooler", (), "pooler")]
    nodes += [call(f"op{i}", (nodes[-1].name,), "pooler") for i in range(80)]
    picture = fx_picture(FxGraph("g", tuple(nodes), ""))
    assert picture.items["pooler"].frame in picture.frames


def test_a_parameter_that_is_also_an_output_stands_with_its_user():
    weight = FxNode("weight", "placeholder", "weight", "", (), FACTS, None)
    first = call("op0", ("weight",), "net.0")
    rest = [call(f"op{i}", (f"op{i - 1}",), f"net.{i % 2}") for i in range(1, 80)]
    output = FxNode("output", "output", "output", "", ("op79", "weight"), None, None)
    picture = fx_picture(FxGraph("g", (weight, first, *rest, output), ""))
    assert picture.items["weight"].frame == "module net.0"
    assert picture.items["output"].frame == ROOT


def test_a_box_may_be_called_as_its_module_is():
    nodes = [call("pooler", (), "pooler", "torch.tanh")]
    nodes += [call(f"op{i}", ("pooler",), "pooler") for i in range(80)]
    picture = fx_picture(FxGraph("g", tuple(nodes), ""))
    assert picture.items["pooler"].frame in picture.frames


def test_an_open_frame_has_room_for_what_is_in_it():
    outside = Frame("outer", "outer", open=True)
    frames = [outside, Frame("inner", "inner", parent="outer", open=True)]
    items = [Item("a", "a", frame="inner"), Item("b", "b", frame="inner"), Item("c", "c")]
    picture = draw("p", items, frames, [("a", "b"), ("b", "c")])
    outer, inner = picture.inside[ROOT].boxes["outer"], picture.inside["outer"].boxes["inner"]
    within = picture.inside["inner"]
    assert inner.height > within.height and inner.width > within.width
    assert outer.height > inner.height and outer.width > inner.width


def test_groups_are_frames_around_their_nests(training):
    schedule = training.graphs[0].forward.schedule
    picture = schedule_picture(schedule)
    for group in schedule.groups:
        frame = f"group {group.name}"
        inside = {item.name for item in picture.items.values() if item.frame == frame}
        assert inside == {nest.buffer for nest in group.nests} | set(group.inlined)


def test_every_nest_has_a_box(training):
    program = training.graphs[0].backward.loops
    assert {nest.buffer for nest in program.nests} <= set(program_picture(program).items)


def test_bytes_are_readable():
    assert [bytes_text(n) for n in (0, 999, 4000, 12_600_000)] == [
        "0 B", "999 B", "4.0 kB", "12.6 MB",
    ]
