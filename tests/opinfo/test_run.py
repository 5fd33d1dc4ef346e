"""The command: parts of an op, stopping and going on, what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.opinfo import run
from tests.opinfo.check import Settings, Verdict
from tests.opinfo.table import read
from tests.opinfo.workers import MOST, Part


def test_a_part_has_samples_without_a_verdict() -> None:
    assert Part("add", Settings(), frozenset({0, 2})).todo(5) == [1, 3, 4]
    assert len(Part("add", Settings()).todo(1000)) == MOST


def test_a_run_continues_after_a_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, summary = tmp_path / "results.jsonl", tmp_path / "summary.json"
    known = Verdict("amax", "float32", 0, "wrong", "an earlier verdict")
    results.write_text(known.to_json() + "\n")
    given = ["--ops", "amax", "--samples", "3", "--stage", "loops", "--jobs", "1"]
    where = ["--results", str(results), "--summary", str(summary)]
    assert run.main([*given, *where]) == 1
    found = read(results)
    assert sorted(v.sample for v in found.verdicts) == [0, 1, 2]
    assert found.counts == {("amax", "float32"): 3} and not found.unfinished("amax", "float32")
    assert [v.detail for v in found.verdicts if v.verdict != "agree"] == ["an earlier verdict"]
    (sums,) = json.loads(summary.read_text())["dtypes"]
    assert (sums["pairs"], sums["agree"], sums["wrong"]) == (3, 2, 1)
    assert "1 of 1 (op, dtype) finished" in capsys.readouterr().out


def test_a_run_without_time_lists_the_remaining_ops(tmp_path: Path) -> None:
    results, summary = tmp_path / "results.jsonl", tmp_path / "summary.json"
    given = ["--ops", "amax", "--samples", "3", "--stage", "loops", "--minutes", "1e-9"]
    run.main([*given, "--results", str(results), "--summary", str(summary)])
    assert json.loads(summary.read_text())["unfinished"] == ["amax float32"]
    assert not read(results).verdicts
