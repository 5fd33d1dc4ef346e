"""The picture and the page of `lab.memory`."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import inductor_lab as lab
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.debug.memory.step_memory import (
    Holder,
    MemoryRun,
    Point,
    StepMemory,
    Suggestion,
    thinned,
)

LINE = Span("train.py", 4, function="step", code="y = x < w")
CURVES = {
    "eager": [("forward", 40), ("forward", 90), ("backward", 120), ("backward", 60)],
    "stock": [("forward", 40), ("forward", 70), ("backward", 80), ("backward", 50)],
}


def example() -> StepMemory:
    runs = [
        MemoryRun(
            who, base_bytes=20, peak_bytes=max(n for _, n in curve), peak_phase="backward",
            peak_what="aten.mm", peak_place=LINE, kept_bytes=30,
            holders=(Holder("saved", 70, "y", "by MmBackward0", LINE, "aten.mm"),
                     Holder("argument", 20, "x", before=True)),
            points=tuple(Point(phase, n) for phase, n in curve),
        )
        for who, curve in CURVES.items()
    ]  # fmt: skip
    failed = MemoryRun("inductor_lab", failure="raises ValueError: <no>")
    found = Suggestion("eager", "del", "delete y", 120, 80, "--- a\n+++ a\n+    del y")
    return StepMemory("step", "cpu", (*runs, failed), (found,), 2)


def test_one_curve_for_each_measured_run() -> None:
    svg = example()._repr_svg_()
    assert svg is not None
    tree = ElementTree.fromstring(svg)
    name = "{http://www.w3.org/2000/svg}"
    curves = [p for p in tree.iter(f"{name}path") if p.get("class", "").startswith("curve")]
    assert [curve.get("class") for curve in curves] == ["curve s0", "curve s1"]
    lowest = [min(float(y) for y in re.findall(r"V([\d.]+)", c.get("d", ""))) for c in curves]
    assert lowest[0] == 30.0 < lowest[1]  # the highest curve reaches the top
    peaks = [title.text for title in tree.iter(f"{name}title") if title.text]
    assert peaks[:2] == ["eager: peak 120 B", "stock: peak 80 B"]


def test_the_page_needs_no_script_and_escapes_user_code() -> None:
    html = example()._repr_html_()
    assert html is not None and "<script" not in html
    assert "prefers-color-scheme" in html and 'data-jp-theme-light="false"' in html
    assert "y = x &lt; w" in html and "&lt;no&gt;" in html and "+    del y" in html


def test_the_page_in_chinese() -> None:
    lab.language("zh")
    try:
        html = example()._repr_html_()
    finally:
        lab.language("en")
    assert html is not None and "step 运行一步时的存活字节数" in html and "为反向保存" in html


def test_without_a_measurement_there_is_no_picture() -> None:
    found = StepMemory("step", "cpu", (MemoryRun("eager", failure="raises ValueError: no"),))
    assert found._repr_svg_() is None
    assert "raises ValueError" in str(found._repr_html_())


def test_a_long_curve_keeps_its_peaks() -> None:
    curve = [Point("forward", n % 97) for n in range(10_000)]
    curve += [Point("backward", n % 89) for n in range(10_000)]
    short = thinned(curve)
    assert len(short) <= 400
    for phase, most in (("forward", 96), ("backward", 88)):
        assert max(p.nbytes for p in short if p.phase == phase) == most


def test_the_text_fits_on_a_screen() -> None:
    lines = str(example()).splitlines()
    assert len(lines) < 40
    assert lines[2].split() == ["eager", "120", "B", "30", "B", "20", "B", "backward", "train.py:4"]
    assert "eager: peak 120 B in the backward at train.py:4 (aten.mm): " in "\n".join(lines)
    assert lines[-1] == "tried 2 suggestions: 1 lowers a peak"
