from __future__ import annotations

from xml.etree import ElementTree

import pytest

from inductor_lab.compiler.codegen.kernel import Code, Line


def stations(compilation):
    graph = compilation.graphs[0]
    part = graph.forward
    return {
        "capture": compilation.capture,
        "captured": graph.captured,
        "joint": graph.joint,
        "partition": graph.partition,
        "rewrites": part.rewrites,
        "loops": part.loops,
        "schedule": part.schedule,
    }


@pytest.mark.parametrize(
    "name", ["capture", "captured", "joint", "partition", "rewrites", "loops", "schedule"]
)
def test_graph_stages_are_pictures(training, name):
    station = stations(training)[name]
    assert ElementTree.fromstring(station._repr_svg_()).tag.endswith("svg")
    assert "<svg" in station._repr_html_()


def test_kernels_and_host_are_numbered_lines_with_origins(training):
    part = training.graphs[0].forward
    kernel = part.kernels[0]
    assert kernel._repr_svg_() is None
    assert 'title="from ' in kernel._repr_html_()
    assert kernel._repr_html_().count("lab-origin\">") == len(kernel.code.lines)
    assert "<pre>" in part.host._repr_html_()


def test_code_is_escaped():
    shown = Code((Line("a<b> & c", frozenset({"<x>"})),))._repr_html_()
    assert "a&lt;b&gt; &amp; c" in shown and "from &lt;x&gt;" in shown


def test_a_compilation_is_the_explorer(training):
    shown = training._repr_html_()
    assert "render(" in shown and "lab-plain" in shown
    assert "<html" not in shown and "<body" not in shown
