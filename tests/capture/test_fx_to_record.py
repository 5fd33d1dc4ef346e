"""FX graphs as data: spans, module paths, ancestry, and text that runs."""

from __future__ import annotations

import linecache

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.capture.span import innermost, shown_file, spans_in
from inductor_lab.compiler.torch_door import torch_api
from tests.autograd.backend import compiled
from tests.capture import programs


def _captured(fn, *inputs, **more):
    """The graphs that Dynamo captures in one call."""
    graphs = []

    def backend(module, _):
        graphs.append(fx_graph(module, f"graph{len(graphs)}"))
        return module

    torch_api.reset()
    torch.compile(fn, backend=backend, **more)(*inputs)
    return graphs


def _run_text(graph: FxGraph, *inputs):
    scope: dict[str, object] = {}
    exec(graph.text, scope)
    return scope["forward"](*inputs)


def test_a_span_has_the_columns_of_the_expression():
    (graph,) = _captured(programs.squares, torch.randn(4))
    line = linecache.getlines(programs.__file__)[8]
    power = graph.node("y").span
    assert line[power.column - 1 : power.end_column - 1] == "torch.sin(x) ** 2"
    span = graph.node("sin").span
    assert (span.line, span.function, span.code) == (9, "squares", line.strip())
    assert line[span.column - 1 : span.end_column - 1] == "torch.sin(x)"
    assert span.file == "tests/capture/programs.py"
    assert str(span) == f"tests/capture/programs.py:9:{span.column}"


def test_the_joint_graph_keeps_the_columns():
    ours, backend = compiled(programs.squares)
    ours(torch.randn(4, requires_grad=True)).sum().backward()
    lines = linecache.getlines(programs.__file__)
    shown = {}
    for node in backend.joints[0].graph.nodes:
        if span := node.span:
            shown[node.name] = lines[span.line - 1][span.column - 1 : span.end_column - 1]
    assert shown["cos"] == "torch.cos(x)"
    assert shown["pow_2"] == "torch.cos(x) ** 2"
    assert shown["neg"] == "torch.cos(x)"
    assert shown["add"] == "y + torch.cos(x) ** 2"


def test_a_trace_without_carets_has_column_zero():
    span = innermost('  File "/nowhere/m.py", line 3, in f\n    y = x.sin()\n')
    assert (span.line, span.column, span.end_column, span.code) == (3, 0, 0, "y = x.sin()")


def test_without_carets_an_expression_is_found_if_the_line_has_only_one():
    file = programs.__file__
    trace = f'  File "{file}", line 9, in squares\n    y = torch.sin(x) ** 2\n'
    line = linecache.getlines(file)[8]
    for callee, code in (("sin", "torch.sin(x)"), ("pow", "torch.sin(x) ** 2")):
        span = innermost(trace, callee)
        assert line[span.column - 1 : span.end_column - 1] == code
    assert innermost(trace, "cos").column == 0


def test_the_deepest_frame_outside_of_torch_is_chosen():
    inside = f'  File "{torch.__path__[0]}/nn/functional.py", line 9, in relu\n    return r(x)\n'
    mine = '  File "/nowhere/m.py", line 3, in f\n    y = F.relu(x)\n'
    assert innermost(mine + inside).line == 3
    assert innermost(inside).line == 9
    assert [span.line for span in spans_in(mine + inside)] == [3, 9]
    assert innermost("") is None


def test_cells_are_named_by_their_number():
    assert shown_file("<ipython-input-3-0123abc>") == "cell 3"
    assert shown_file("/tmp/ipykernel_77/123.py") == "cell"
    assert shown_file("<string>") == "<string>"
    assert shown_file("/nowhere/m.py") == "/nowhere/m.py"


def test_a_kernel_names_cells_by_its_own_table(monkeypatch):
    IPython = pytest.importorskip("IPython")
    table = {"/tmp/ipykernel_77/123.py": 5}
    compiler = type("Compiler", (), {"_filename_map": table})()
    shell = type("Shell", (), {"compile": compiler})()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    assert shown_file("/tmp/ipykernel_77/123.py") == "cell 5"


def test_the_captured_text_runs():
    x = torch.randn(4)
    (graph,) = _captured(programs.squares, x)
    torch.testing.assert_close(_run_text(graph, x)[0], programs.squares(x))
    torch.testing.assert_close(graph.run(x)[0], programs.squares(x))


def test_every_kind_of_argument_is_written_as_python():
    def fn(x):
        y = x.to(torch.float64)[1:3, None, ..., ::2]
        z = torch.full((2,), float("inf"), device=torch.device("cpu"))
        return y.sum(dim=(0, 1), keepdim=True), z.clamp(max=1e3), (-2.0) ** x.round(), x.mT * 1

    x = torch.randn(4, 4)
    (graph,) = _captured(fn, x)
    for ours, eager in zip(_run_text(graph, x), fn(x), strict=True):
        torch.testing.assert_close(ours, eager)


def test_joint_and_partitioned_texts_run():
    ours, backend = compiled(programs.squares)
    x = torch.randn(4, requires_grad=True)
    ours(x).sum().backward()
    joint, made = backend.joints[0].graph, backend.partitions[0]
    plain, tangent = x.detach(), torch.ones(4)
    results = _run_text(joint, plain, tangent)
    torch.testing.assert_close(results[0], programs.squares(plain))
    torch.testing.assert_close(results[1], torch.zeros(4), atol=1e-6, rtol=0)
    assert len(_run_text(made.forward, plain)) == 2
    assert len(_run_text(made.backward, plain, tangent)) == 1


def test_text_that_needs_the_live_module_says_so():
    root = torch.nn.Module()
    root.weight = torch.nn.Parameter(torch.randn(3))
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.add, (x, graph.get_attr("weight"))))
    data = fx_graph(torch.fx.GraphModule(root, graph), "g")
    assert "not runnable alone: self holds weight" in data.text
    assert "def forward(self, x):" in data.text
    torch.testing.assert_close(data.run(torch.ones(3)), root.weight + 1)


def test_module_paths_read_like_the_model():
    (graph,) = _captured(programs.Stack(), torch.randn(2, 4))
    paths = {node.name: node.module_path for node in graph.nodes if node.op.startswith("call")}
    assert paths["linear_1"] == "layers.1.attention"
    assert paths["x_1"] == "layers.1"


def test_joint_nodes_lead_back_to_captured_ones():
    ours, backend = compiled(programs.Stack())
    ours(torch.randn(2, 4, requires_grad=True)).sum().backward()
    joint = backend.joints[0].graph
    assert all(node.came_from for node in joint.nodes if node.op == "call_function")
    gradients = [node for node in joint.nodes if "threshold_backward" in node.target]
    assert [node.came_from for node in gradients] == [("x_1",), ("x",)]
    assert all(node.is_backward for node in gradients)
    assert joint.node("primals_1").came_from[0].endswith("_parameters_weight_")
    assert joint.node("tangents_1").is_backward


def test_a_sum_of_gradients_comes_from_both_uses():
    ours, backend = compiled(lambda x: x.sin() + x.exp())
    ours(torch.randn(4, requires_grad=True)).sum().backward()
    nodes = backend.joints[0].graph.nodes
    last = [node for node in nodes if node.is_backward and "add" in node.target][-1]
    assert set(last.came_from) == {"sin", "exp"}


def test_a_rewrite_may_set_the_ancestors_of_a_node():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.sin, (x,))
    graph.output(y)
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    before = fx_graph(module, "before")
    with graph.inserting_after(y):
        z = graph.call_function(torch.neg, (y,))
    z.meta["lab_from"] = (y.name, "gone")
    after = fx_graph(module, "after", earlier=before)
    assert after.node("neg").came_from == ("sin",)
    assert after.node("x").came_from == ("x",)


def test_symbolic_sizes_are_shown():
    (graph,) = _captured(programs.squares, torch.randn(5), dynamic=True)
    size, x = (node for node in graph.nodes if node.op == "placeholder")
    assert size.tensor is None
    assert x.tensor.shape == (size.name,)
    assert x.tensor.nbytes == 20
    assert f'{size.name}: "Sym({size.name})"' in graph.text


def test_a_loaded_graph_cannot_run():
    with pytest.raises(NotRunnable, match="loaded from a file"):
        FxGraph("g", (), "").run()


def test_nodes_that_torch_adds_for_a_symbolic_number_have_the_line_of_its_use():
    def scaled(x, epsilon):
        return (x.mean(-1) + epsilon).rsqrt()

    inspected = lab.inspect(scaled, torch.rand(4, 8), 0.5, options={"dynamic": True})
    (part,) = inspected.parts
    added = [node for node in part.graph.nodes if "tensor" in node.name or "default" in node.name]
    assert added, "TorchDynamo has converted the float to a tensor"
    assert {node.span.line for node in added} == {scaled.__code__.co_firstlineno + 1}
