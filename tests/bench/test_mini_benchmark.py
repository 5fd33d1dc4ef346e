"""The table of `python -m benchmarks.mini`: its columns, and the mark for slow workloads."""

from __future__ import annotations

import re

import pytest
import torch

from benchmarks import mini


def test_a_row_has_three_times_a_ratio_and_a_mark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mini, "WORKLOADS", {"row sum": (lambda x: (x * x).sum(1), (16, 64))})
    threads = str(torch.get_num_threads())
    for goal, marked in ((1e9, False), (0.0, True)):
        monkeypatch.setattr(mini, "GOAL", goal)
        torch.compiler.reset()
        mini.main(["row", "--rounds", "3", "--threads", threads])
        head, row, where = capsys.readouterr().out.strip().split("\n", 2)
        assert head.split() == ["eager", "mini", "full", "mini/full"] and "torch" in where
        assert re.match(r"row sum +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+( |$)", row)
        assert ("more than" in row) == marked
