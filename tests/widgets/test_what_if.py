from __future__ import annotations

import asyncio
import importlib
import json
import re
import threading

import pytest
import torch
import torch._dynamo.config as dynamo_config

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BadOption, NotRunnable
from inductor_lab.widgets import live
from inductor_lab.widgets.compare import comparison_panes, verdict
from inductor_lab.widgets.compressed import unzipped
from inductor_lab.widgets.live import Connection, Explorer, changed_by
from inductor_lab.widgets.markup import text_of
from inductor_lab.widgets.model import linked_document
from inductor_lab.widgets.switches import switches
from tests.widgets.reading import rows
from tests.widgets.test_ladder import needs_triton


def test_a_forbidden_pair_is_not_fused_and_changes_the_numbers(inference):
    decision = inference.graphs[0].forward.schedule.decisions.all[0]
    other = inference.what_if(forbid=[(decision.producer, decision.consumer)])
    again = other.graphs[0].forward.schedule.decisions.about(decision.producer, decision.consumer)
    assert (again.fused, again.choice) == (False, "forbidden")
    assert other.after.kernels == inference.after.kernels + 1
    assert torch.equal(other.result, inference.result)
    kernels = dict((what, (old, new)) for what, old, new in inference.compare(other).rows)
    assert kernels["kernels"] == ("1", "2")
    assert "+" in str(inference.compare(other)) and "forward after" in str(inference.compare(other))


def test_changes_add_up_and_can_be_taken_back(inference):
    decision = inference.graphs[0].forward.schedule.decisions.all[0]
    pair = (decision.producer, decision.consumer)
    apart = inference.what_if(forbid=[pair])
    assert apart.what_if(force=[pair]).after.kernels == inference.after.kernels
    alone = apart.what_if(fusion=False)
    assert alone.after.kernels == inference.before.kernels
    assert alone.call.options.fusion.forbid == (pair,)


def test_a_pair_may_name_its_part(training):
    parts = training.graphs[0].parts
    pairs = [{(d.producer, d.consumer) for d in p.schedule.decisions if d.fused} for p in parts]
    pair = sorted(pairs[0] & pairs[1])[0]
    both = training.what_if(forbid=[pair])
    one = training.what_if(forbid=[(*pair, "g0.backward")])

    def choices(compilation):
        return [p.schedule.decisions.about(*pair).choice for p in compilation.graphs[0].parts]

    assert choices(both) == ["forbidden", "forbidden"]
    assert choices(one) == ["rules", "forbidden"]
    assert choices(one.what_if(force=[(*pair, "g0.backward")])) == ["rules", "forced"]
    meant = r"'g1\.backward'; did you mean 'g0\.backward'\?\n  Valid parts: g0\.f"
    with pytest.raises(BadOption, match=meant):
        training.what_if(forbid=[(*pair, "g1.backward")])


def test_the_budget_of_the_backward(training):
    def wide(x):
        return torch.exp(torch.sin(x)).tanh().sigmoid()

    kept = lab.inspect(wide, torch.randn(100, requires_grad=True))
    less = kept.what_if(memory_budget=0.0)
    assert less.call.options.memory_budget == 0.0
    assert kept.graphs[0].partition.cut_bytes >= less.graphs[0].partition.cut_bytes


def test_a_pass_that_is_left_out_does_nothing():
    def twice(x):
        return x.sin() + x.sin()

    c = lab.inspect(twice, torch.randn(8))
    other = c.what_if(rewrites_off=["common_subexpressions"])
    step = next(s for s in other.graphs[0].forward.rewrites.steps
                if s.name == "common_subexpressions")
    assert not step.changed
    assert any(s.changed for s in c.graphs[0].forward.rewrites.steps)


def test_what_cannot_be(inference, tmp_path):
    with pytest.raises(BadOption, match="nonsense"):
        inference.what_if(fusion_off=["nonsense"])
    loaded = lab.load(inference.save(tmp_path / "wave.json"))
    with pytest.raises(NotRunnable, match="loaded from a file"):
        loaded.what_if(fusion=False)


def test_every_switch_can_be_requested(training):
    changes = [change for group in switches() for _, change, _ in group["changes"]]
    assert {next(iter(c)) for c in changes} == {"fusion", "fusion_off", "rewrites_off"}
    for change in changes[:2] + changes[-1:]:
        assert "kernels" in verdict(training.compare(changed_by(training, change)))


def test_panes_are_plain_data_with_known_things(training):
    shown, links = linked_document(training)
    comparison = training.compare(training.what_if(fusion=False))
    panes = comparison_panes(comparison, links)
    assert json.loads(json.dumps(panes)) == panes
    assert len(links.data()["kind"]) == len(shown["links"]["kind"])
    lines = panes["whatif"]["views"][0]["blocks"][0]["lines"]
    assert {line[2] for line in lines} >= {"+", "-"}
    assert any(line[1] for line in lines if line[2] == "+")
    assert "no change" in verdict(training.compare(training.what_if()))


def test_a_connection_answers_and_reports_errors(inference, monkeypatch):
    connection = Connection(inference, linked_document(inference)[1])
    sent = []
    monkeypatch.setattr(connection, "send", sent.append)
    connection._answer(connection, {"id": "1", "changes": {"fusion": False}}, [])
    connection._answer(connection, {"id": "2", "changes": {"fusion_off": ["nonsense"]}}, [])
    connection._answer(connection, {"id": "3", "show": "assembly"}, [])
    assert "g0.forward.assembly" in sent[2]["panes"]
    assert sent[0]["id"] == "1" and "3 kernels" in sent[0]["verdict"]
    assert sent[1]["id"] == "2" and "nonsense" in sent[1]["error"]


def test_an_edited_kernel_that_hangs_is_stopped(inference, monkeypatch):
    """As in a notebook: the answer comes later, and another message stops the kernel."""
    connection = Connection(inference, linked_document(inference)[1])
    sent = []
    monkeypatch.setattr(connection, "send", sent.append)
    kernel = inference.graphs[0].forward.kernels[0]
    head, brace, body = str(kernel.code).partition("{")
    hanging = f"{head}{brace}\n    volatile bool more = true;\n    while (more) {{}}{body}"

    async def edit_and_stop():
        request = {"id": "1", "show": "kernel", "kernel": kernel.name, "part": "g0.forward"}
        connection._answer(connection, {**request, "text": hanging}, [])
        assert sent == []
        while not sent:
            connection._answer(connection, {"id": "2", "show": "stop"}, [])
            await asyncio.sleep(0.1)
            sent[:] = [answer for answer in sent if answer != {"id": "2"}]

    asyncio.run(edit_and_stop())
    (answer,) = sent
    assert answer["id"] == "1" and not answer["right"]
    assert re.search(r"stopped after \d+ s", answer["verdict"])


@pytest.mark.parametrize("show", [None, "kernel"])
def test_another_thread_answers_with_the_settings_of_the_user(inference, monkeypatch, show):
    """As JupyterLab does it; torch keeps its configuration for each thread."""
    with dynamo_config.patch(capture_scalar_outputs=True), torch.no_grad():
        connection = Connection(inference, linked_document(inference)[1])
    monkeypatch.setattr(connection, "send", lambda answer: None)
    seen = []

    def look(*args, **kwargs):
        seen.append((dynamo_config.capture_scalar_outputs, torch.is_grad_enabled()))
        raise BadOption("x", "y", "z")

    monkeypatch.setattr(live, "changed_by", look)
    monkeypatch.setattr(live, "edited_part", look)
    request = {"show": show, "kernel": "k", "text": "", "part": "g0.forward", "changes": {"f": 1}}
    for number in range(2):
        asked = (connection, {"id": str(number), **request}, [])
        thread = threading.Thread(target=connection._answer, args=asked)
        thread.start()
        thread.join()
    assert seen == [(True, False)] * 2


def test_an_interrupted_request_is_answered(inference, monkeypatch):
    """The notebook's stop button must not leave the page waiting."""
    connection = Connection(inference, linked_document(inference)[1])
    sent = []
    monkeypatch.setattr(connection, "send", sent.append)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(live, "changed_by", interrupted)
    connection._answer(connection, {"id": "1", "changes": {"fusion": False}}, [])
    assert sent == [{"id": "1", "error": "Stopped."}]


def test_assembly_reflects_the_changes(inference, monkeypatch):
    connection = Connection(inference, linked_document(inference)[1])
    sent = []
    monkeypatch.setattr(connection, "send", sent.append)
    for changes in ({}, {"fusion": False}):
        request = {"id": "1", "show": "assembly", "changes": changes}
        connection._answer(connection, request, [])
    one, three = (answer["panes"]["g0.forward.assembly"] for answer in sent)
    assert len(one["views"][0]["blocks"]) == 1 and "note" not in one
    assert len(three["views"][0]["blocks"]) == 3 and "changes" in three["note"]
    assert any(line[1] for block in three["views"][0]["blocks"] for line in block["lines"])


@needs_triton
def test_the_ladder_reflects_the_changes(inference, monkeypatch):
    """A rung has as many kernels as the schedule that is asked for, each with its source lines."""
    connection = Connection(inference, linked_document(inference)[1])
    sent = []
    monkeypatch.setattr(connection, "send", sent.append)
    for changes in ({}, {"fusion": False}):
        request = {"id": "1", "show": "ladder", "target": "cuda:90", "changes": changes}
        connection._answer(connection, request, [])
    one, three = (answer["panes"]["g0.forward.ladder"] for answer in sent)
    for rung, apart in zip(one["views"], three["views"], strict=True):
        assert (len(rung["blocks"]), len(apart["blocks"])) == (1, 3), rung["name"]
    assert "note" not in one and "changes" in three["note"]
    assert all(any(line[1] for line in block["lines"]) for block in three["views"][-1]["blocks"])


def test_a_benchmark_is_a_pane_and_forgets_nothing(inference, monkeypatch):
    inference.again(*inference.call.args)  # compiled, whatever other tests have torch forget
    stock = importlib.import_module("torch._inductor.async_compile").AsyncCompile
    stock.submit(int).result()  # in a thread of stock's, which a copy of this process lacks
    connection = Connection(inference, linked_document(inference)[1])
    sent = []
    monkeypatch.setattr(connection, "send", sent.append)
    monkeypatch.setattr("inductor_lab.widgets.bench_pane.SECONDS", 0.05)
    request = {"id": "1", "show": "bench", "changes": {"fusion": False}}
    connection._answer(connection, request, [])
    assert "error" not in sent[0], sent[0]["error"]
    views = {view["name"]: view for view in sent[0]["panes"]["bench"]["views"]}
    assert json.loads(json.dumps(sent[0])) == sent[0]
    assert rows(views["verdict"])[0]["cells"] == ["inductor_lab was timed with fusion=False"]
    assert {"eager", "inductor_lab"} <= {row["cells"][0] for row in rows(views["compilers"])}
    assert {text_of(bar[2]) for bar in views["per call"]["tree"][3:]} >= {"eager", "inductor_lab"}
    assert inference.again(*inference.call.args).hit


def test_the_widget_carries_the_same_document(inference):
    widget = inference.widget()
    assert isinstance(widget, Explorer)
    assert unzipped(widget.document) == linked_document(inference)[0]
    exported = [line for line in widget._esm.split("\n") if line.startswith("export")]
    assert exported == ["export default inductorLab.widget;"] and "\nimport " not in widget._esm


def test_outside_of_a_notebook_there_is_no_connection(inference):
    assert inference._repr_mimebundle_() is None
    assert ", null);" in inference._repr_html_()
