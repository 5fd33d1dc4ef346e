"""What programs read and set in widgets: `selected`, `view` and `value`."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
import traitlets

import inductor_lab as lab
from inductor_lab.compiler.base.errors import MissingPackage, UnknownName
from inductor_lab.widgets.bench_widget import rows_by_view
from inductor_lab.widgets.home import Page
from inductor_lab.widgets.live import Explorer
from inductor_lab.widgets.markup import inside, text_of
from tests.widgets.test_bench import every, nothing_yet, result

CODE = "g0.forward.code"


@pytest.fixture
def explorer(inference) -> Explorer:
    return inference.widget()


def lines_of(explorer: Explorer, stage: str) -> range:
    return explorer._places._stages[stage][0].numbers


def test_an_explorer_opens_at_its_source_with_nothing_selected(explorer) -> None:
    assert (explorer.selected, explorer.view, explorer.value) == ({}, "source", {})
    synchronised = {name for name, trait in explorer.traits(sync=True).items()}
    assert {"selected", "view", "value", "document"} <= synchronised


def test_a_selection_has_its_stage_and_is_the_value(explorer, inference) -> None:
    seen: list[Any] = []
    explorer.observe(lambda change: seen.append(change["new"]), "value")
    kernel = inference.graphs[0].forward.kernels[0].name
    explorer.selected = {"kernel": kernel}
    explorer.selected = {"stage": CODE, "kernel": kernel, "line": 2}
    explorer.selected = {"line": lines_of(explorer, "source")[0]}
    explorer.selected = {"stage": "g0.forward.graph", "node": "sin"}
    explorer.selected = {}
    assert [each.get("stage") for each in seen] == [CODE, CODE, "source", "g0.forward.graph", None]
    assert seen[0] == {"kernel": kernel, "stage": CODE} and explorer.value == {}


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"stage": "g0.forward.cod"}, r"unknown stage 'g0.forward.cod'; did you mean '(.*)'\?\n"
                                      r"  Valid stages: source, g0.captured"),
        ({"kernel": "cpp_fused"}, r"Valid kernels: *$"),
        ({"stage": CODE, "kernel": "k"}, "unknown kernel 'k'\n  Valid kernels: cpp_fused_"),
        ({"stage": CODE, "line": 9999}, r"has no line 9999\n  Valid lines: 1 to \d+ of cpp_fused_"),
        ({"stage": "g0.forward.graph", "line": "2"}, "has no line '2'"),
        ({"node": "sine"}, "unknown node 'sine'"),
        ({"file": "a.py"}, "unknown key 'file'\n  Valid keys: stage, kernel, line, node"),
        ({"stage": ["source"]}, "unknown stage"),
    ],
)  # fmt: skip
def test_a_wrong_selection_names_what_is_allowed(explorer, wanted, says) -> None:
    explorer.selected = before = {"stage": "g0.forward.graph", "node": "sin"}
    with pytest.raises(UnknownName, match=says):
        explorer.selected = wanted
    assert explorer.selected == explorer.value == before


def test_a_wrong_view_changes_nothing(explorer) -> None:
    explorer.view = CODE
    with pytest.raises(traitlets.TraitError, match=r"did you mean 'g0.forward.loops'"):
        explorer.view = "g0.forward.lops"
    with pytest.raises(traitlets.TraitError, match="read-only"):
        explorer.value = {"stage": "source"}
    assert explorer.view == CODE


def test_a_page_that_sends_a_wrong_value_changes_nothing(explorer) -> None:
    """As `jslink` in a page can do it: several traits in one message."""
    with pytest.raises(UnknownName, match="unknown view"):
        explorer.set_state({"selected": {"stage": CODE, "line": 1}, "view": "nowhere"})
    assert (explorer.selected, explorer.view) == ({}, "source")
    explorer.set_state({"selected": {"stage": CODE, "line": 1}, "view": CODE})
    assert explorer.value == {"stage": CODE, "line": 1}


def test_panes_made_on_request_are_views_too(explorer, monkeypatch) -> None:
    monkeypatch.setattr(explorer, "send", lambda answer: None)
    with pytest.raises(UnknownName):
        explorer.view = "whatif"
    explorer._answer(explorer, {"id": "1", "changes": {"fusion": False}}, [])
    explorer.view = "whatif"


def test_an_explorer_of_stock_has_the_same_traits() -> None:
    widget = lab.inspect(torch.sin, torch.ones(8), compiler="stock").widget()
    widget.view = "g0.forward.code"
    assert isinstance(widget, Explorer) and widget.view == "g0.forward.code"


# ---- benchmarks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", [*every(), *nothing_yet()], ids=repr)
def test_every_row_of_a_result_can_be_selected(shown) -> None:
    widget = shown.widget()
    assert widget.value == json.loads(json.dumps(shown.to_dict())) and widget.selected == {}
    for view, rows in rows_by_view(shown).items():
        widget.view = view
        for row in rows:
            widget.selected = row
            chosen = [tr for tr in inside(widget.tree, "tr") if tr[1].get("aria-current") == "true"]
            assert len(chosen) == 1 and widget.view == view
            assert str(next(iter(row.values()))) in text_of(chosen[0]).replace(",", "")
            assert json.loads(chosen[0][1]["data-select"]) == {}


def test_a_selected_kernel_is_in_the_view_of_kernels() -> None:
    widget = result().widget()
    assert [text_of(b) for b in inside(widget.tree, "button")] == ["contenders", "kernels"]
    widget.selected = {"kernel": "aten.mm.default"}
    assert widget.view == "kernels"
    with pytest.raises(UnknownName, match=r"Valid selections: {'contender': 'eager'}, "):
        widget.selected = {"contender": "eagre"}
    with pytest.raises(UnknownName, match="unknown view 'kernel'; did you mean 'kernels'"):
        widget.view = "kernel"
    assert widget.selected == {"kernel": "aten.mm.default"}


# ---- steps ---------------------------------------------------------------------------------------


def test_a_stepper_goes_to_the_selected_statement_and_back(training) -> None:
    steps = training.steps()
    widget = steps.widget()
    assert (widget.selected, widget.view, widget.value) == ({}, "g0.forward", {})
    kernel = training.graphs[0].forward.kernels[0].name
    widget.selected = {"kernel": kernel}
    assert widget.selected["kernel"] == kernel and steps.done[-1].kernel == kernel
    buffers, line = widget.value, widget.selected["line"]
    assert buffers and all(len(each["shape"]) == 1 for each in buffers.values())
    assert json.loads(json.dumps(buffers)).keys() == buffers.keys()
    widget.view = "g0.backward"
    assert steps.done[-1].where == widget.selected["stage"] == "g0.backward"
    ran = len(steps.done)
    widget.selected = {"stage": "g0.forward", "line": line}
    assert (widget.view, widget.value, len(steps.done)) == ("g0.forward", buffers, ran)
    assert "data-do" in str(widget.tree)
    widget.selected = {}
    assert (widget.value, widget.view, len(steps.done)) == ({}, "g0.forward", ran)


def test_a_stepper_refuses_what_it_does_not_have(training) -> None:
    widget = training.steps().widget()
    with pytest.raises(UnknownName, match=r"Valid lines: 1 to \d+"):
        widget.selected = {"line": 999}
    with pytest.raises(UnknownName, match=r"Valid views: g0\.forward, g0\.backward"):
        widget.view = "g1.forward"
    with pytest.raises(UnknownName, match="Valid kernels: "):
        widget.selected = {"stage": "g0.forward", "kernel": "none"}
    with pytest.raises(UnknownName, match=r"Valid keys: stage, kernel, line$"):
        widget.selected = {"node": "sin"}
    assert widget.selected == {} and widget._steps.done == []


# ---- marimo --------------------------------------------------------------------------------------


def test_marimo_shows_widgets(inference, training) -> None:
    for value in (inference, training.steps(), result()):
        assert type(value._display_()).__name__ == type(value.widget()).__name__


def test_without_the_library_of_widgets_marimo_shows_html(inference, monkeypatch) -> None:
    def missing(self):
        raise MissingPackage("anywidget")

    monkeypatch.setattr(type(inference), "widget", missing)
    with pytest.warns(UserWarning, match="not live: anywidget is missing"):
        shown = inference._display_()
    assert isinstance(shown, Page) and "lab-explorer" in shown._repr_html_()
