from __future__ import annotations

import json

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import CannotWrite
from inductor_lab.compiler.base.observer import Phase, in_order
from inductor_lab.saved.trace import chrome_trace
from inductor_lab.widgets.time import rows_of


def wave(x):
    return ((x + 1) * 2).sin()


@pytest.fixture(scope="module")
def compilation():
    return lab.inspect(wave, torch.randn(100, requires_grad=True))


def test_the_trace_has_every_phase_inside_the_call(compilation, tmp_path):
    trace = json.loads(compilation.trace(tmp_path / "wave.json").read_text())
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    names = {event["name"] for event in events}
    assert {"total", "forward.lower", "backward.codegen", "entire_frame_compile"} <= names
    total = next(event for event in events if event["name"] == "total")
    slack = 20_000  # of the two clocks, in microseconds
    for event in events:
        assert event["dur"] >= 0 and event["ts"] >= 0
        assert event["ts"] + event["dur"] <= total["ts"] + total["dur"] + slack
    tracks = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert tracks == {"inductor_lab", "TorchDynamo"}


def test_phases_add_up_to_the_seconds(compilation):
    summed: dict[str, float] = {}
    for phase in compilation.phases:
        if phase.track == "inductor_lab":
            summed[phase.name] = summed.get(phase.name, 0.0) + phase.seconds
    assert summed == pytest.approx(dict(compilation.seconds))


def test_times_count_from_the_first_start_and_outer_phases_come_first():
    given = [Phase("inner", "a", 11.0, 1.0), Phase("outer", "a", 10.0, 4.0),
             Phase("inner first", "a", 10.0, 0.5)]
    assert in_order(given) == (Phase("outer", "a", 0.0, 4.0), Phase("inner first", "a", 0.0, 0.5),
                               Phase("inner", "a", 1.0, 1.0))
    assert rows_of(in_order(given)) == [0, 1, 1]
    events = chrome_trace("f", in_order(given))["traceEvents"]
    assert [(e["ts"], e["dur"]) for e in events if e["ph"] == "X"] == [
        (0.0, 4e6), (0.0, 5e5), (1e6, 1e6)]


def test_a_place_that_cannot_be_written(compilation, tmp_path):
    with pytest.raises(CannotWrite, match="folder that exists"):
        compilation.trace(tmp_path / "nowhere" / "wave.json")


def test_phases_are_saved(compilation, tmp_path):
    assert lab.load(compilation.save(tmp_path / "wave.json")).phases == compilation.phases
