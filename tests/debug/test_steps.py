"""Stepping through a compiled call, and the file of its host program."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.debug.explore.steps import BufferState
from inductor_lab.widgets.debug import html
from inductor_lab.widgets.debug_live import LiveSteps, bundle

EVIL = "<img src=x onerror=alert(1)>"


def loss(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, -1)
    return (y * y).sum()


@pytest.fixture(scope="module")
def compilation() -> Compilation:
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(7, 7, generator=generator) for _ in range(2))
    return lab.inspect(loss, x.requires_grad_(), w, options={"memory_pool": 0})


def test_every_line_runs_and_the_results_equal_the_call(compilation: Compilation) -> None:
    steps = compilation.steps()
    done = list(steps)
    assert steps.finished and done == steps.done
    assert list(steps.results) == ["g0.forward", "g0.backward"]
    torch.testing.assert_close(steps.results["g0.forward"][0], compilation.result.detach())
    x, w = compilation.call.args  # type: ignore[union-attr]
    (expected,) = torch.autograd.grad(loss(x, w), x)
    torch.testing.assert_close(steps.results["g0.backward"][0], expected)


def test_changed_buffers_are_listed(compilation: Compilation) -> None:
    kernels = {kernel.name for part in compilation.parts for kernel in part.kernels}
    steps = compilation.steps().rest()
    called = [step for step in steps.done if step.kernel]
    assert {step.kernel for step in called} == kernels
    assert all(step.made for step in called), "a kernel changes what it stores"
    assert any(step.freed for step in steps.done)
    softmax = next(step for step in called if step.span)
    assert softmax.span is not None and "softmax" in softmax.span.code
    assert max(step.held for step in steps.done) >= 3 * 7 * 7 * 4


def test_the_text_of_a_buffer() -> None:
    value = torch.tensor([0.0, 1.0, 2.0, 2.0, float("nan"), float("inf")])
    state = BufferState.of("buf0", value)
    assert (state.low, state.high, state.nan, state.inf) == (0.0, 2.0, 1, 1)
    assert sum(state.histogram) == 4 and state.histogram[-1] == 2
    assert state.nbytes == 24 and state.first == ("0", "1", "2", "2")
    assert "1 NaN" in str(state) and "█" in str(state)
    assert BufferState.of("b", torch.ones(3, dtype=torch.bool)).first == ("True",) * 3
    assert BufferState.of("e", torch.empty(0)).histogram == ()


def test_calls_after_stepping_are_unchanged(compilation: Compilation) -> None:
    compilation.steps()
    x, w = compilation.call.args  # type: ignore[union-attr]
    torch.testing.assert_close(compilation.compiled(x, w), loss(x, w))  # type: ignore[misc]


def test_stepping_writes_to_copies() -> None:
    def count(state: torch.Tensor) -> torch.Tensor:
        return state.add_(1) * 2

    state = torch.zeros(4)
    compilation = lab.inspect(count, state)
    after = state.clone()
    steps = compilation.steps().rest()
    assert torch.equal(state, after)
    assert torch.equal(steps.results["g0.forward"][0], (after + 1) * 2)


def test_a_debugger_can_break_in_the_file(compilation: Compilation) -> None:
    part = compilation.parts[0]
    assert part.executable is not None
    file = Path(part.executable.file)
    assert file.read_text(encoding="utf-8") == str(part.host)
    lines: list[int] = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename == str(file) and event == "line":
            lines.append(frame.f_lineno)
        return trace

    import sys

    x, w = compilation.call.args  # type: ignore[union-attr]
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        part.executable.run(x.detach(), w)
    finally:
        sys.settrace(before)
    text = str(part.host).splitlines()
    assert lines and any("cpp_fused" in text[line - 1] for line in lines)


def test_the_text_is_available_without_the_cache() -> None:
    import linecache

    compilation = lab.inspect(torch.sin, torch.ones(3), options={"cache": False})
    executable = compilation.parts[0].executable
    assert executable is not None
    assert "".join(linecache.getlines(executable.file)) == str(compilation.parts[0].host)


def test_a_loaded_compilation_cannot_be_stepped(compilation: Compilation, tmp_path: Path) -> None:
    loaded = lab.load(compilation.save(tmp_path / "c.json"))
    with pytest.raises(NotRunnable, match="loaded from a file"):
        loaded.steps()
    with pytest.raises(NotRunnable, match="loaded from a file"):
        loaded.blame()


def test_the_widget_steps(compilation: Compilation) -> None:
    steps = compilation.steps()
    widget = LiveSteps(steps)
    first = str(widget.tree)
    widget._asked(None, {"do": "next"}, None)
    assert len(steps.done) == 1 and str(widget.tree) != first
    widget._asked(None, {"do": "kernel"}, None)
    assert steps.done[-1].kernel
    widget._asked(None, {"do": "rest"}, None)
    assert steps.finished and "data-do" not in str(widget.tree)


def test_a_cell_keeps_its_output_without_widgets(compilation: Compilation) -> None:
    """JupyterLab prefers widgets to HTML, but a notebook opened later has no widget model."""
    kept = bundle(compilation.steps(), view=False)
    assert kept.keys() == {"text/plain", "text/html"} and "stepsInPage" in kept["text/html"]
    view = bundle(compilation.steps(), view=True)
    assert "application/vnd.jupyter.widget-view+json" in view
    assert "def call(args)" in kept["text/html"] and "def call(args)" in view["text/html"]


class Reader(HTMLParser):
    """Collects elements and text; accepts invalid HTML, as browsers do."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


def test_user_text_is_escaped_in_pages(compilation: Compilation) -> None:
    def named(x: torch.Tensor) -> torch.Tensor:
        return x + len("<img src=x onerror=alert(1)>")

    named.__name__ = EVIL
    with lab.faults.wrong_neg():
        blamed = lab.blame(named, torch.ones(2))
        tried = lab.backends(named, torch.ones(2), only=["inductor_lab"])
    for value in (blamed, tried, lab.inspect(named, torch.ones(2)).steps().rest()):
        page = value._repr_html_() or ""
        reader = Reader()
        reader.feed(page)
        assert "img" not in reader.tags and "table" in reader.tags
        assert not re.search(r"https?://", page)
        assert EVIL.replace("<", "&lt;").replace(">", "&gt;") in page or "&lt;img" in page


def test_the_page_of_a_fault() -> None:
    function, arguments, *_ = lab.faults.CATALOGUE["wrong_neg"].example()
    with lab.faults.wrong_neg():
        blamed = lab.blame(function, *arguments)
    page = html(blamed)
    assert 'class="lab-bad"' in page and "a = torch.neg(x1)" in page
    assert page.count(escape(blamed.summary)) == 1


def test_a_tensor_passed_twice_is_one_tensor_in_copies() -> None:
    """TorchDynamo guards on the identity of the two arguments."""
    compilation = lab.inspect(lambda x, y: x.sin() + y, x := torch.ones(3), x)
    (step,) = [s for s in compilation.steps() if s.kernel]
    assert step.made[0].shape == (3,)


class Counting(torch.nn.Module):
    """Each call recompiles, because a number in the code changes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x.sin() * self.calls


def test_a_call_that_changes_its_guarded_state_can_be_stepped() -> None:
    """Its state is restored, so the code runs.  Measurements with several calls are refused."""
    module, x = Counting(), torch.ones(4)
    found = lab.inspect(module, x)
    steps = found.steps().rest()
    assert steps.finished and module.calls == 1
    torch.testing.assert_close(steps.results["g0.forward"][0], x.sin() * 2)
    for ask in (lambda: found.profile(steps=2), lambda: found.measure(seconds=0.01)):
        with pytest.raises(NotRunnable, match="each call of Counting recompiles"):
            ask()


def test_a_benchmark_of_a_function_that_always_recompiles_has_no_kernels() -> None:
    result = lab.bench(Counting(), torch.ones(4), against="eager", seconds=0.05, cold=False)
    assert result.steps == () and "inductor_lab" in str(result)
