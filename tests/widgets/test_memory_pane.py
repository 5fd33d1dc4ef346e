"""The pane of the explorer that measures the memory of one step on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.memory import measure
from inductor_lab.debug.memory.runs import Compiled
from inductor_lab.debug.memory.step_memory import MemoryRun
from inductor_lab.widgets import home, memory_pane
from inductor_lab.widgets.live import Connection
from inductor_lab.widgets.markup import inside, text_of
from inductor_lab.widgets.model import document, linked_document
from tests.widgets.reading import columns, rows, tables
from tests.widgets.test_step_memory import example


def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.relu(x @ w)
    return (torch.softmax(h @ w, -1) * h).sum()


def inspected(compiler: str, **options: Any) -> Any:
    x, w = torch.randn(32, 16), torch.randn(16, 16, requires_grad=True)
    return lab.inspect(layer, x, w, compiler=compiler, options=options)


def asked(compilation: Any, monkeypatch: pytest.MonkeyPatch, **request: Any) -> Any:
    """The answer of a live explorer, as the page gets it."""
    connection, sent = Connection(compilation, linked_document(compilation)[1]), []
    monkeypatch.setattr(connection, "send", sent.append)
    connection._answer(connection, {"id": "1", **request}, [])
    assert json.loads(json.dumps(sent[0])) == sent[0]
    return sent[0]


@pytest.mark.parametrize("compiler", ["inductor_lab", "stock"])
def test_a_live_explorer_measures_the_step(
    compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = inspected(compiler)
    weight = c.call.args[1]
    answer = asked(c, monkeypatch, show="memory")
    assert "error" not in answer, answer.get("error")
    assert weight.grad is None, "the step runs in a process of its own"
    assert list(answer["panes"]) == ["step_memory"]
    peaks, *held = answer["panes"]["step_memory"]["views"]
    assert [row["cells"][0] for row in rows(peaks)] == ["eager", "stock", "inductor_lab"]
    assert [view["name"] for view in held] == ["eager", "stock", "inductor_lab"]
    (chart,) = inside(peaks["tree"], "svg")
    assert not any(inside(chart, "style")), "its colours are those of the explorer"
    assert rows(held[0])[0]["things"], "a holder leads to its line"
    assert "argument" in {row["cells"][1] for row in rows(held[2])}


def test_the_step_is_compiled_with_the_options_of_the_explorer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def compiled_run(who: Any, step: Any, options: Any, limit: float) -> Any:
        seen.append((who, options.memory_budget, step.args))
        return Compiled(MemoryRun(who, failure="not measured"))

    monkeypatch.setattr(measure, "compiled_run", compiled_run)
    c = inspected("inductor_lab")
    answer = asked(c, monkeypatch, show="memory", changes={"memory_budget": 0.25})
    assert [(who, budget) for who, budget, _ in seen] == [("stock", 0.25), ("inductor_lab", 0.25)]
    assert all(args[0] is c.call.args[0] for _, _, args in seen)
    (failed,) = {row["cells"][3] for row in rows(answer["panes"]["step_memory"]["views"][0])[1:]}
    assert failed == "not measured"


def test_a_call_that_cannot_be_repeated_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def logged(x: torch.Tensor) -> torch.Tensor:
        (tmp_path / "log").write_text("called")
        return x.sin()

    answer = asked(lab.inspect(logged, torch.ones(4)), monkeypatch, show="memory")
    (view,) = answer["panes"]["step_memory"]["views"]
    assert not tables(view)
    said = text_of(view["tree"])
    assert said.startswith("The memory of this step was not measured: the step cannot be repeated:")


def test_code_for_another_machine_has_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    c = lab.inspect(torch.sin, torch.ones(4), target="cuda:90")
    (view,) = asked(c, monkeypatch, show="memory")["panes"]["step_memory"]["views"]
    assert text_of(view["tree"]).startswith("Compiled for cuda:90 without running:")


def test_a_saved_page_says_that_it_cannot_run_the_call(tmp_path: Path) -> None:
    c = inspected("stock")
    for shown in (document(c), document(lab.load(c.save(tmp_path / "c.lab.json")))):
        (view,) = shown["panes"]["step_memory"]["views"]
        assert "a saved page or file cannot run the call" in text_of(view["tree"])
        assert shown["groups"][-1]["panes"] == ["time", "step_memory"]


def test_an_explorer_of_stock_is_live_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no changes of options: the page offers those of `switches`."""
    c = inspected("stock")
    assert document(c)["switches"] == [] and ", null);" in c._repr_html_()
    monkeypatch.setattr(home, "in_kernel", lambda: True)
    monkeypatch.setattr(home, "wants_view", lambda: False)
    assert ", null);" not in c._repr_html_()
    assert isinstance(Connection._open[-1], Connection)
    again = asked(c, monkeypatch, show="again", edits={"L['x']": {"size": [8, 16]}})
    assert "recompiled" in again["verdict"]


def test_the_pane_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_pane, "measured_memory", lambda _: example())
    c = lab.inspect(layer, torch.ones(2, 2), torch.ones(2, 2))
    lab.language("zh")
    try:
        shown = memory_pane.memory_pane(c, linked_document(c)[1])
    finally:
        lab.language("en")
    assert columns(shown["views"][0]) == ["编译器", ">峰值", ">为反向保留", "峰值位置", "源代码行"]
    assert "独立进程" in text_of(shown["views"][0]["tree"])
