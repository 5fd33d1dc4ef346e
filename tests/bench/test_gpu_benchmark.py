"""The GPU benchmark without a GPU: correct workloads are timed, wrong ones are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gpu, gpu_measure
from benchmarks.gpu_measure import EAGER, OURS, WAYS, difference, measured
from benchmarks.gpu_workloads import First, GpuWorkload, floats


def _small(gradient: bool = False) -> GpuWorkload:
    def build() -> Any:
        return (lambda x: torch.softmax(x, -1)), (floats(50, 60, grad=gradient),)

    return GpuWorkload("softmax (50, 60)", build, gradient=gradient)


@pytest.mark.parametrize("gradient", [False, True])
def test_a_workload_is_checked_and_timed(gradient: bool) -> None:
    found = measured(_small(gradient), [EAGER, OURS], 0.05)
    ways = found["ways"]
    assert ways.keys() == {EAGER, OURS, "copy"}
    assert all(entry["ms"] > 0 and "failure" not in entry for entry in ways.values())
    assert ways[OURS]["error"] < 1e-6


def test_a_wrong_workload_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAYS, OURS, lambda f: lambda x: f(x) + 1e-3)  # type: ignore[arg-type]
    monkeypatch.setitem(WAYS, "ours graphs", lambda f: lambda x: f(x)[:1])  # type: ignore[arg-type]
    ways = measured(_small(), [EAGER, OURS, "ours graphs"], 0.05)["ways"]
    assert "wrong" in ways[OURS]["failure"] and "ms" not in ways[OURS]
    assert "wrong" in ways["ours graphs"]["failure"]


def test_a_module_in_double_precision() -> None:
    model = First(torch.nn.Sequential(torch.nn.Linear(64, 40)))
    x = torch.randn(3, 64)
    exact = gpu_measure.in_float64(model, (x,), False)
    assert 0 < difference([model(x)], exact) < 1e-6 and next(model.parameters()).dtype == x.dtype
    assert difference([torch.full((40,), torch.nan)], exact) == float("inf")


def test_the_table_is_written_whatever_failed(tmp_path: Path) -> None:
    run = gpu.Run(tmp_path, float("inf"), (), 1, 1.0, tmp_path)
    run.keep("machine", value={"name": "a GPU"})
    run.keep("checks", "tests", value={"status": 1, "end": ["1 failed"]})
    run.keep("first", "softmax", "stock", value={"first": 4.0})
    run.keep("first", "softmax", "ours", value={"first": 1.0})
    ways = {"eager": {"ms": 2.0}, "stock": {"ms": 1.5, "busy": 1.4, "launches": 2},
            "ours": {"ms": 1.0}, "ours graphs": {"failure": "Wrong: off"}}  # fmt: skip
    run.keep("times", "softmax", value={"kind": "kernel", "ways": ways})
    run.keep("times", "cumsum", value={"failure": "status -11", "end": []})
    text = (tmp_path / "table.txt").read_text()
    for expected in ("1 failed", "0.25", "1.50", "status -11", "Wrong: off"):
        assert expected in text
    assert json.loads((tmp_path / "results.json").read_text()) == run.found


def test_a_crash_affects_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
import json, os, sys
for name in sys.argv[1:]:
    if name.startswith("--"):
        break
    print("other output")
    if name == "bad":
        print("the reason", file=sys.stderr, flush=True)
        os._exit(3)
    print(json.dumps({"workload": name, "kind": "kernel", "ways": {}}), flush=True)
"""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "gpu_measure.py").write_text(program)
    workloads = [GpuWorkload(name, floats) for name in ("a", "bad", "b")]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gpu, "chosen", lambda run: workloads)
    run = gpu.Run(tmp_path, float("inf"), (), 1, 1.0, tmp_path)
    gpu.times(run, 60)
    assert list(run.found["times"]) == ["a", "bad", "b"]
    assert run.found["times"]["bad"] == {"failure": "status 3", "end": ["the reason"]}
    assert "failure" not in run.found["times"]["b"]
