"""Pages and charts of benchmarks: well formed, escaped, readable without a script."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench.bench_result import (
    BenchResult,
    CompileTime,
    Contender,
    Experiments,
    SweepResult,
)
from inductor_lab.bench.machine import Ceilings, Machine
from inductor_lab.bench.progress import Progress
from inductor_lab.bench.timing import Timings
from inductor_lab.compiler.base.errors import CannotWrite, UnknownName
from inductor_lab.compiler.step_time import StepTime
from inductor_lab.widgets.bench import html, tree
from inductor_lab.widgets.bench_live import running
from inductor_lab.widgets.charts import bench_chart
from inductor_lab.widgets.markup import element, written
from inductor_lab.widgets.scales import Scale, log_scale
from tests.widgets.reading import columns, rows, without_words

EVIL = '<img src=x onerror="alert(1)">'
HERE = Machine("a processor", 2, "2.13.0")
LIMITS = Ceilings(HERE, ((10_000, 2e11), (10**8, 5e10)), {"float32": 4e11})
STEPS = (
    StepTime("cpp_fused_sin_0", True, 1e-3, 0.1, 8_000_000, 20_000_000, 2e-4, True),
    StepTime("aten.mm.default", False, 2e-3, 0.0, 4_000_000, 10**9, 1e-3, False),
    StepTime("cpp_fused_copy_1", True, 1e-4, 0.0, 4_000_000, 0, 8e-5, True),
)


def result(title: str = "wave") -> BenchResult:
    contenders = (
        Contender("eager"),
        Contender("inductor", CompileTime(9.0, 2.0, 0.3), 1e-7),
        Contender("inductor_lab", CompileTime(0.5, 0.2, 0.1), 0.0),
        Contender(EVIL, failure=f"no {EVIL}"),
    )
    times = {"eager": (2e-3,) * 8, "inductor": (1e-3,) * 7 + (9e-3,), "inductor_lab": (5e-4,) * 8}
    return BenchResult(title, "wave(f32[8])", HERE, contenders, Timings(times), True, STEPS, LIMITS)


def every() -> list:
    return [
        result(),
        SweepResult("wave over sizes", HERE, (10, 1000, 10**6), (result(), result()), False),
        Experiments("programs in modes", HERE, (result("one"), result("two"))),
    ]


def nothing_yet() -> list:
    return [
        BenchResult("nothing yet", "wave()", HERE, (Contender("eager"),), Timings({})),
        SweepResult("nothing yet", HERE, (10, 100), (), False),
        Experiments("nothing yet", HERE, (), False),
    ]


class Tags(HTMLParser):
    """Every element that a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)


@pytest.mark.parametrize("shown", every(), ids=repr)
def test_pictures_are_svg_files(shown) -> None:
    picture = ElementTree.fromstring(shown.plot())
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert shown.plot()._repr_svg_() == shown.plot()
    assert without_words(shown.plot()) == []
    width, height = float(picture.get("width")), float(picture.get("height"))
    for text in picture.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height


@pytest.mark.parametrize("shown", nothing_yet(), ids=repr)
def test_without_measurements_there_is_no_picture(shown) -> None:
    page = html(shown)
    assert "nothing yet" in page and "<svg" not in page and "<table" not in page
    assert shown._repr_svg_() is None
    with pytest.raises(UnknownName, match="needs measured times"):
        shown.plot()


@pytest.mark.parametrize("shown", every(), ids=repr)
def test_pages_are_readable_without_a_script(shown) -> None:
    page = re.sub(r"<script.*?</script>", "", html(shown), flags=re.DOTALL)
    assert shown.title in page and "a processor, 2 threads" in page
    assert "<table>" in page and "lab-markdown" in page
    assert all(table.title in page for table in shown.tables)


def test_names_of_a_user_are_escaped() -> None:
    shown = result(EVIL)
    tags = Tags()
    tags.feed(html(shown))
    assert "img" not in tags.tags and "table" in tags.tags
    assert "<img" not in shown.to_markdown()
    assert "<img" not in shown.plot()


def test_a_chart_has_a_description() -> None:
    text = result().plot()
    for word in ("eager", "inductor_lab", "4.00x", "cold compile: 2.00 s", "median 0.5 ms"):
        assert word in text


def test_the_roofline_has_each_kernel_that_computes() -> None:
    page = html(result())
    assert "memory 50 GB/s" in page and "400 GFLOP/s" in page
    assert "1  cpp_fused_sin_0" in page and "2  aten.mm.default" in page
    assert "3  cpp_fused_copy_1" not in page and ">cpp_fused_copy_1<" in page


def test_a_running_benchmark_shows_its_progress() -> None:
    text = written(tree(result(), running(0.42, f"timing {EVIL}", 3.21)))
    assert 'role="progressbar"' in text and 'aria-valuenow="42"' in text
    assert "42 %" in text and "3.2 s" in text and "Interrupt the kernel" in text
    assert "<img" not in text


class Drawing(Progress):
    """Draws each update, as the live view does."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def update(self, done, doing, result) -> None:
        self.pages.append(written(tree(result, running(done, doing, 1.0))))


def test_every_intermediate_state_can_be_drawn() -> None:
    drawing = Drawing()
    lab.bench.sweep(
        lambda x: x.sin(), torch.ones, (8, 64), against=["eager"], seconds=0.3, progress=drawing
    )
    assert len(drawing.pages) > 4 and not any("Stopped early" in page for page in drawing.pages)
    assert any("2 of 2" in page and "timing, round" in page for page in drawing.pages)


def test_the_roofline_is_a_separate_picture() -> None:
    assert "memory 50 GB/s" in result().plot("roofline")
    with pytest.raises(UnknownName, match="no view 'roofline'"):
        every()[1].plot("roofline")


def test_roofs_in_doubt_are_not_drawn() -> None:
    sure = result()
    unsure = replace(sure, limits=replace(sure.limits, doubt="this machine is too noisy"))
    assert "memory 50 GB/s" in html(sure) and "memory 50 GB/s" not in html(unsure)
    with pytest.raises(UnknownName, match="no view 'roofline'"):
        unsure.plot("roofline")


def test_reports_fetch_nothing(tmp_path) -> None:
    text = result().report(tmp_path / "bench.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    with pytest.raises(CannotWrite):
        result().report(tmp_path / "no" / "folder.html")


def test_markup_escapes_text_and_attributes() -> None:
    made = element("p", {"title": '"<&'}, "<b>", None, element("i", {}, "&"))
    assert written(made) == '<p title="&quot;&lt;&amp;">&lt;b&gt;<i>&amp;</i></p>'


def test_scales() -> None:
    scale = Scale(0, 10, 100, 200)
    assert scale.at(5) == 150 and scale.at(-1) == 100 and scale.at(99) == 200
    assert scale.ticks() == [0, 2, 4, 6, 8, 10]
    powers = log_scale([1.0, 1000.0], 0, 100)
    assert powers.ticks() == [1, 10, 100, 1000]
    assert powers.at(1000) > powers.at(1) > 0


def test_measured_compilations_show_their_times(inference, known_limits) -> None:
    from inductor_lab.widgets.model import document, linked_document
    from inductor_lab.widgets.parts import groups_view

    before, after = document(inference), document(inference.measure(0))
    kernels = after["panes"]["g0.forward.schedule"]["views"][2]
    assert columns(kernels)[-3:] == [">time", ">GB/s", ">of the roof"]
    assert all(len(row["cells"]) == len(columns(kernels)) for row in rows(kernels))
    assert ">time" not in columns(before["panes"]["g0.forward.schedule"]["views"][2])
    assert [v["name"] for v in after["panes"]["time"]["views"]][-1] == "kernels"
    (part,) = inference.measure(0).parts
    unknown = replace(part, times=tuple(replace(took, roof=None) for took in part.times))
    kernels = groups_view(unknown, "g0.forward", linked_document(inference)[1])
    assert columns(kernels)[-2:] == [">time", ">GB/s"]
    assert all(len(row["cells"]) == len(columns(kernels)) for row in rows(kernels))
    assert any(fact["label"] == "time in kernels" for fact in after["facts"])
    assert "of the" in str(after["panes"]["g0.forward.graph"]["views"][0])


def test_a_long_name_fits_into_the_chart() -> None:
    long = "inductor_lab reduce-overhead"
    contenders = tuple(Contender(name) for name in ("eager", long))
    seconds = {"eager": (1.0, 1.1), long: (0.5, 0.6)}
    chart = bench_chart(replace(result(), contenders=contenders, timings=Timings(seconds)))
    assert chart is not None
    found = re.search(rf'x="([\d.]+)"[^>]*text-anchor="end">{long}<', written(chart))
    assert found and float(found[1]) - 7.25 * len(long) > 0
