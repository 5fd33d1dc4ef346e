from __future__ import annotations

import logging

import torch

import inductor_lab as lab
from inductor_lab.compiler.capture import symbolic_steps
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.model import document
from inductor_lab.widgets.steps import steps_view

LOGGER = "torch._dynamo.symbolic_convert.__trace_bytecode"


def helper(y, n):
    return y * n


def straight(x, n):
    y = torch.sin(x) * 2
    if x.shape[0] > 3:
        y = helper(y, n)
    return y


def breaking(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def test_every_instruction_with_its_stack_and_what_it_added():
    (run,) = lab.inspect(straight, torch.randn(8), 3).capture.runs
    assert run.function == "straight" and run.total == len(run.instructions)
    made = {line.split(" = ")[0]: step for step in run.instructions for line in step.added}
    assert made["sin"].stack[-1] == "L['x']" and made["sin"].opname.startswith("CALL")
    assert made["mul"].stack == ("sin", "2") and (made["mul"].opname, made["mul"].argument) == (
        "BINARY_OP", "*")
    inlined = [step for step in run.instructions if step.function == "helper"]
    assert inlined and {step.depth for step in inlined} == {1}
    assert ("mul", "y") in [pair for step in run.instructions for pair in step.renamed]
    assert "BINARY_OP *" in str(run)


def test_the_added_lines_are_the_captured_graph():
    c = lab.inspect(straight, torch.randn(8), 3)
    names: list[str] = []
    for step in c.capture.runs[0].instructions:
        for old, new in step.renamed:
            names[names.index(old)] = new
        names += [line.split(" = ")[0] for line in step.added]
    captured = [node.name for node in c.capture.graphs[0].nodes if node.op != "output"]
    assert sorted(names) == sorted(captured)


def test_a_graph_break_starts_again():
    runs = lab.inspect(breaking, torch.randn(8)).capture.runs
    assert [run.function for run in runs[:2]] == ["breaking", "breaking"]
    assert len(runs) == 3 and runs[2].compile_id != runs[0].compile_id
    shown = steps_view(lab.inspect(breaking, torch.randn(8)).capture, Links())
    titles = [run["title"] for run in shown["runs"]]
    assert "attempt 1 of 2" in titles[0] and "attempt 2 of 2" in titles[1]


def test_the_number_of_kept_instructions_is_limited(monkeypatch):
    monkeypatch.setattr(symbolic_steps, "KEPT", 5)
    (run,) = lab.inspect(straight, torch.randn(8), 3).capture.runs
    assert len(run.instructions) == 5 and run.total > 10


def test_listening_changes_nothing_and_prints_nothing(capfd):
    logger = logging.getLogger(LOGGER)
    before = logger.level, logger.propagate, list(logger.handlers)
    watched = lab.inspect(straight, torch.randn(8), 3)
    assert (logger.level, logger.propagate, logger.handlers) == before
    assert "TRACE" not in capfd.readouterr().err
    again = torch.compile(straight, backend="inductor_lab")(torch.ones(8), 3)
    torch.testing.assert_close(again, straight(torch.ones(8), 3))
    assert torch.equal(watched.compiled(torch.ones(8), 3), again)


def test_it_is_saved_and_shown(tmp_path):
    c = lab.inspect(straight, torch.randn(8), 3)
    loaded = lab.load(c.save(tmp_path / "steps.json"))
    assert str(loaded.capture.runs[0]) == str(c.capture.runs[0])
    view = document(loaded)["panes"]["steps"]["views"][0]
    assert view["kind"] == "steps" and view == document(c)["panes"]["steps"]["views"][0]
    assert any(things for *_, things in view["runs"][0]["rows"])



def test_a_cell_on_the_stack_needs_no_name() -> None:
    table = {"by": 3.0}

    def choose(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda v: v * table["by"], lambda v: v.sin(), (x,))

    c = lab.inspect(choose, torch.ones(3))
    assert c.result.eq(3).all() and c.capture.runs
