"""Kernels under torch's profiler, and `c.profile()`."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import inductor_lab as lab
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.debug.profile import FEWEST
from inductor_lab.widgets.svg import width_of


def layer(x, w):
    y = torch.softmax((x @ w).sin(), -1)
    return y.cumsum(0) * 2


@pytest.fixture(scope="module")
def arguments():
    torch.manual_seed(0)
    return torch.randn(256, 256, requires_grad=True), torch.randn(256, 256)


@pytest.fixture(scope="module")
def compilation(arguments):
    return lab.inspect(layer, *arguments)


def events_of(path):
    found = json.loads(path.read_text())["traceEvents"]
    return {event["name"]: event for event in found if "cpp_fused" in str(event.get("name"))}


def test_the_profiler_of_torch_sees_every_kernel(compilation, arguments, tmp_path):
    part = compilation.graphs[0].forward
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        result = compilation.compiled(*arguments)
    assert torch.equal(result, compilation.compiled(*arguments))
    rows = {row.key: row.count for row in seen.key_averages()}
    assert {kernel.name for kernel in part.kernels} <= set(rows)
    assert all(rows[kernel.name] == 1 for kernel in part.kernels)
    seen.export_chrome_trace(str(tmp_path / "trace.json"))
    events = events_of(tmp_path / "trace.json")
    for kernel in part.kernels:
        about = events[kernel.name]["args"]
        assert set(about["nodes"].split(", ")) == set(kernel.group.origins)
    softmax = next(e for name, e in events.items() if "exp" in name)
    assert "torch.softmax" in softmax["args"]["source"]


def test_a_backward_and_torch_compile_are_seen_too(arguments):
    x, w = arguments
    compiled = torch.compile(layer, backend="inductor_lab")
    compiled(x, w).sum().backward()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        compiled(x, w).sum().backward()
    kernels = [row.key for row in seen.key_averages() if row.key.startswith("cpp_fused")]
    assert len(kernels) >= 3


def test_equal_kernels_keep_their_own_nodes(tmp_path):
    def twice(x, w):
        return ((x @ w).sin() @ w).sin() @ w

    x = torch.randn(64, 64)
    c = lab.inspect(twice, x, x)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        c.compiled(x, x)
    seen.export_chrome_trace(str(tmp_path / "trace.json"))
    found = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    nodes = [e["args"]["nodes"] for e in found if str(e.get("name")).startswith("cpp_fused")]
    assert sorted(nodes) == ["sin", "sin_1"]


def test_the_rows_sum_to_the_time_of_the_call(known_limits, compilation):
    found = compilation.profile(steps=5)
    assert found.steps == 5 and found.plain_seconds > 0
    assert found.plain_seconds * (1 + found.clock_cost) == pytest.approx(found.call_seconds)
    total = found.kernel_seconds + found.library_seconds + found.host_seconds
    assert total == pytest.approx(found.call_seconds)
    assert sum(row.seconds for row in found.rows) < found.call_seconds
    assert {row.part for row in found.rows} == {"g0.forward", "g0.backward"}
    mm = next(row for row in found.rows if not row.generated and row.part == "g0.forward")
    assert any("x @ w" in line for line in mm.lines) and mm.flops >= 2 * 256**3
    assert "between kernels" in str(found) and found.rows[0].name in str(found)


def test_every_step_of_a_model_is_counted_once(known_limits):
    """MobileBERT with two layers of full width, 4 x 128 tokens: no step is lost or counted twice.

    `python -m benchmarks.profiler` runs all layers and measures the overhead of timers.
    """
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.MobileBertConfig(num_hidden_layers=2, vocab_size=1000)
    model = transformers.MobileBertForQuestionAnswering(config).eval()
    words = torch.randint(0, 1000, (4, 128))
    with torch.no_grad():
        found = lab.inspect(lambda ids: model(ids).start_logits, words).profile(steps=3)
    shares = sum(found.share(row.seconds) for row in found.rows) + found.share(found.host_seconds)
    assert shares == pytest.approx(1.0, abs=0.05) and found.host_seconds > 0
    assert sum(row.calls for row in found.rows) == len(found.events) > 50
    ends = [event.start + event.seconds for event in found.events]
    assert all(end <= after.start for end, after in zip(ends, found.events[1:], strict=False))
    for row in found.rows:
        one = [event.seconds for event in found.events if event.name == row.name]
        assert len(one) == sum(r.calls for r in found.rows if r.name == row.name)
        assert min(one) > 0
    assert any("self.query" in line or "linear" in line for row in found.rows for line in row.lines)


def test_calls_of_one_library_have_a_row_for_each_user_line(known_limits):
    def products(a, b):
        for _ in range(2):
            a = a @ b
            a = a.sin()
        a = b @ a
        a = a.sin()
        return (a @ b[:, :8]).sum()

    x = torch.randn(32, 32, requires_grad=True)
    found = lab.inspect(products, x, torch.randn(32, 32)).profile(steps=2)
    rows = [row for row in found.rows if row.name == "aten.mm.default"]
    calls = {(row.part, row.lines[0].partition("  ")[2]): row.calls for row in rows}
    assert calls["g0.forward", "a = a @ b"] == 2
    assert calls["g0.forward", "return (a @ b[:, :8]).sum()"] == 1
    assert len({row.where for row in rows}) == len(rows) > 2
    equal = [row for row in found.rows if row.generated and "sin" in row.lines[0]]
    assert [(row.calls, len(row.lines)) for row in equal if row.part == "g0.forward"] == [(3, 2)]
    assert all(row.where in str(found) for row in rows)


def test_a_timeline_and_a_trace(known_limits, compilation, tmp_path):
    found = compilation.profile(steps=3)
    steps = sum(len(part.schedule.steps) for part in compilation.parts)
    assert len(found.events) == steps and found.events[0].start == 0.0
    starts = [event.start for event in found.events]
    assert starts == sorted(starts)
    written = json.loads(found.trace(tmp_path / "run.json").read_text())["traceEvents"]
    names = {event["name"] for event in written}
    assert {row.name for row in found.rows} <= names and "forward.codegen" in names
    drawn = found.plot("timeline")
    bar = re.compile(r'<svg [^>]*width="([\d.]+)"[^>]*><text [^>]*>([^<]*)')
    bars = bar.findall(drawn.partition("<g")[2])
    assert drawn.startswith("<svg") and any(name.endswith("…") for _, name in bars)
    assert all(width_of(name) <= float(width) for width, name in bars)
    html = found._repr_html_()
    assert "without timers" in html and "torch.softmax" in html and "<script" not in html


def test_a_slow_call_is_made_fewer_times(known_limits, compilation, monkeypatch):
    """Twenty calls of a model on a busy machine took minutes."""
    monkeypatch.setattr("inductor_lab.debug.profile.PATIENCE", 0.0)
    found = compilation.profile(steps=20)
    assert found.steps == FEWEST and f"{FEWEST} calls each" in found._repr_html_()
    assert compilation.profile(steps=2).steps == 2


def test_negative_timer_overhead_is_reported_as_noise(known_limits, compilation):
    found = replace(compilation.profile(steps=1), clock_cost=0.02)
    assert "(+2.0% with them)" in str(found) and "timer overhead +2.0 %" in found._repr_html_()
    noisy = replace(found, clock_cost=-0.3)
    for text in (str(noisy), noisy._repr_html_()):
        assert "30" not in text.partition("without timers")[2].partition(")")[0]
        assert "noise" in text


def test_unknown_roofs_have_no_column(known_limits, compilation):
    found = compilation.profile(steps=1)
    unknown = replace(found, rows=tuple(replace(row, roof=None) for row in found.rows))
    assert "of roof" in str(found) and "of roof" not in str(unknown)
    page = unknown._repr_html_()
    assert "of the roof" in found._repr_html_() and "of the roof" not in page
    assert page.count("<th ") == 9 and page.count("<td") == 9 * (len(found.rows) + 1)


def test_a_loaded_compilation_cannot_be_profiled(compilation, tmp_path):
    with pytest.raises(NotRunnable):
        lab.load(compilation.save(tmp_path / "c.json")).profile()


def test_without_a_profiler_a_call_only_checks_for_one():
    c = lab.inspect(torch.sin, torch.randn(8))
    names = c.graphs[0].forward.executable.call.__globals__
    (kernel,) = c.graphs[0].forward.kernels
    assert type(names[kernel.name]).__name__ == "_FuncPtr"
    entered = []

    def listen(frame, event, argument) -> None:
        if event == "call":
            entered.append(frame.f_code)

    call, x = names["call"], torch.randn(8)
    sys.setprofile(listen)
    try:
        call([x])
    finally:
        sys.setprofile(None)
    assert entered[:2] == [call.__code__, names["_program"].__code__]
    assert names["_recorded"].__code__ not in entered


def test_columns_are_separated_and_steps_must_be_a_number(known_limits, compilation):
    found = compilation.profile(steps=1)
    slow = replace(found.rows[0], calls=1, seconds=10.0, nbytes=7970, flops=7970)
    assert "      1  7.97e-07  7.97e-07" in str(replace(found, rows=(slow,)))
    for wrong in ("a", -1):
        with pytest.raises(lab.errors.BadArguments):
            compilation.profile(steps=wrong)
    for wrong in ("x", -1):
        with pytest.raises(lab.errors.BadArguments):
            compilation.measure(wrong)
