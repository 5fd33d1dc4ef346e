"""The machine's limits: measured once, kept on disk, measured again where the file is no good."""

from __future__ import annotations

from pathlib import Path

import pytest

import inductor_lab as lab
from inductor_lab.bench import machine as module
from inductor_lab.bench.machine import Ceilings, Effort, Machine, ceilings

HERE = Machine("a processor", 2, "2.13")
LIMITS = Ceilings(HERE, ((1_000, 4e9), (1_000_000, 2e9)), {"float32": 1e11, "float64": 5e10})


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(module.EFFORTS, "cpu", Effort((1 << 14, 1 << 20), 64, 1))
    monkeypatch.setattr(module, "SECONDS_EACH", 0.0)
    return tmp_path


def test_measured_once_and_kept(empty_cache: Path) -> None:
    first = lab.bench.ceilings()
    assert all(rate > 1e6 for _, rate in first.bandwidth) and first.flop_rates["float32"] > 1e6
    assert ceilings() == first
    assert ceilings(fresh=True) != first
    assert "GB/s" in str(first) and "thread" in str(first)


def test_a_damaged_file_is_measured_again(empty_cache: Path) -> None:
    ceilings()
    (kept,) = empty_cache.rglob("ceilings/*.json")
    kept.write_text("{")
    assert ceilings().bandwidth
    assert kept.read_text() != "{"


def test_small_work_has_the_bandwidth_of_a_cache() -> None:
    assert LIMITS.bytes_per_second(10) == 4e9
    assert LIMITS.bytes_per_second(10**9) == 2e9
    assert 2e9 < LIMITS.bytes_per_second(30_000) < 4e9


def test_the_roof_is_the_slower_of_the_two() -> None:
    assert LIMITS.seconds(10**9, 0) == pytest.approx(0.5)
    assert LIMITS.seconds(0, 10**11) == pytest.approx(1.0)
    assert LIMITS.seconds(10**9, 10**11) == pytest.approx(1.0)
    assert LIMITS.seconds(0, 10**11, "float64") == pytest.approx(2.0)
    assert LIMITS.seconds(0, 10**11, "int64") == pytest.approx(1.0)
