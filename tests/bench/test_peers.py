"""The benchmark next to other systems: what is timed, what is refused, and its tables."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.peers import __main__ as peers
from benchmarks.peers import results
from benchmarks.peers.in_jax import FUNCTIONS
from benchmarks.peers.results import Row
from benchmarks.peers.systems import EAGER, OURS, SYSTEMS, CannotRun, _torch, as_array
from benchmarks.peers.worker import calls
from benchmarks.peers.workloads import KERNELS, MODELS, WORK

ROW_SUM = "row sum (4096, 2048)"


def test_a_kernel_is_timed_next_to_eager_mode(tmp_path: Path) -> None:
    given = [ROW_SUM, "--systems", OURS, "OpenVINO", "--seconds", "0.1", "--busy"]
    assert peers.main([*given, "--out", str(tmp_path)]) == 0
    (row,) = results.load(tmp_path / "results.json")
    assert row.failures == {} and set(row.seconds) == set(row.busy) == {EAGER, OURS}
    assert row.best() == EAGER and row.ratio() == pytest.approx(
        np.median(np.divide(row.seconds[EAGER], row.seconds[OURS]))
    )
    assert max(row.errors.values()) < 1e-6 and min(row.first.values()) > 0
    table = (tmp_path / "table.md").read_text()
    assert ROW_SUM in table and "geometric mean of 1" in table


def test_a_finished_row_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = Row(ROW_SUM, "kernel", "float32", seconds={EAGER: [2.0, 4.0], OURS: [1.0, 1.0]})
    results.save([row], tmp_path / "results.json")
    assert peers.main([ROW_SUM, "--resume", "--out", str(tmp_path)]) == 0
    assert results.load(tmp_path / "results.json") == [row]
    assert "3.00x" in capsys.readouterr().out


def test_a_system_that_is_not_installed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(SYSTEMS["XLA"], packages=("no-such-package",))
    assert absent.missing == ("no-such-package",)
    settings = peers.Settings([absent], 1, 0.1, 60, False, False, Path("unused"))
    row = peers.measured(WORK[ROW_SUM], settings)
    assert row.failures == {"XLA": "not installed: no-such-package"} and row.seconds == {}


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (np.array([1.0, 4.0]), 0.0),
        (np.array([1.0, 3.0]), 0.25),
        (np.array([1.0, math.nan]), math.inf),
        (np.array([[1.0, 4.0]]), math.inf),
    ],
)
def test_differences(found: np.ndarray, error: float) -> None:
    assert peers.difference(np.array([1.0, 4.0]), found) == error


def test_rows_below_one_come_first() -> None:
    rows = [
        Row(name, "kernel", "float32", seconds={EAGER: [other], "stock": [9.0], OURS: [1.0]})
        for name, other in (("level", 1.0), ("won", 4.0), ("lost", 0.25))
    ]
    table = results.times(rows, "kernels, ms")
    assert [row[0] for row in table.rows] == ["lost", "level", "won", "geometric mean of 3"]
    assert [row[-1] for row in table.rows] == ["0.25x", "1.00x", "4.00x", "1.00x"]


def test_a_wrong_result_is_not_tolerated() -> None:
    assert Row("a", "model", "float32", errors={EAGER: 1e-7}).tolerance == 1e-5
    assert Row("a", "model", "bfloat16", errors={EAGER: 2e-3}).tolerance == pytest.approx(0.04)


def test_each_call_is_timed() -> None:
    took = calls(lambda: time.sleep(0.002), 0.0)
    assert len(took) == 2 and min(took) >= 0.002
    assert len(calls(lambda: None, 0.01)) > 2


def test_results_are_arrays_of_doubles_or_integers() -> None:
    assert as_array((torch.tensor([1.5]).bfloat16(), 2)).dtype == np.float64
    assert as_array(torch.tensor([True, False])).tolist() == [1, 0]


def _kernels() -> list[str]:
    return [work.name for work in KERNELS if work.name in FUNCTIONS]


def test_functions_in_jax_belong_to_kernels() -> None:
    assert len(_kernels()) == len(FUNCTIONS) >= 18


@pytest.mark.parametrize("name", ["T5 encoder 1x128", "ConvNeXt-tiny 1x3x224²"])
def test_models_are_the_same_in_every_process(name: str) -> None:
    first, again = (_torch(lambda module: module)(WORK[name], 2)() for _ in range(2))
    assert torch.equal(first, again)


def test_there_are_nine_models_or_more_in_two_precisions() -> None:
    assert len(MODELS) >= 9 and {work.dtype for work in MODELS} == {torch.float32, torch.bfloat16}
    assert len(KERNELS) >= 40


def test_a_kernel_that_is_not_written_in_jax() -> None:
    prepare: Callable[..., object] = SYSTEMS["XLA"].prepare
    with pytest.raises(CannotRun, match="not written in JAX"):
        prepare(WORK["BERT-base 1x128"], 2)
