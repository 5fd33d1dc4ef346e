"""The machine's limits: measured once, stored on disk, measured again if the file is invalid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench import machine as module
from inductor_lab.bench.kernels import Measured
from inductor_lab.bench.machine import (
    SWEEPS,
    Ceilings,
    Effort,
    Machine,
    agreed,
    ceilings,
    keep,
    measured,
)
from inductor_lab.compiler.step_time import StepTime

HERE = Machine("a processor", 2, "2.13")
LIMITS = Ceilings(HERE, ((1_000, 4e9), (1_000_000, 2e9)), {"float32": 1e11, "float64": 5e10})


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(module.EFFORTS, "cpu", Effort((1 << 14, 1 << 20), 64, 1))
    monkeypatch.setattr(module, "SECONDS_EACH", 0.0)
    monkeypatch.setattr(module, "AGREE", 1e9)  # such short measurements never agree
    return tmp_path


def test_products_without_vectors_are_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six sweeps of four products of 1024 by 1024 bfloat16 took a minute on a laptop."""
    asked: list[tuple[str, int]] = []

    def product(dtype: torch.dtype, device: str, size: int, gpu: bool) -> float:
        asked.append((str(dtype), size))
        return (2.6 if dtype == torch.bfloat16 else 0.05) * (size / 1024) ** 3

    monkeypatch.setattr(module, "_product", product)
    monkeypatch.setattr(module, "_copied", lambda nbytes, device: 1e9)
    rates = module._sweep("cpu")
    assert [size for name, size in asked if name == "torch.bfloat16"] == [256, 512]
    assert [size for name, size in asked if name == "torch.float32"] == [256, 1024]
    assert rates["bfloat16"] == pytest.approx(2 * 1024**3 / 2.6)


def test_measured_once_and_kept(empty_cache: Path) -> None:
    first = lab.bench.ceilings()
    assert all(rate > 1e6 for _, rate in first.bandwidth) and first.flop_rates["float32"] > 1e6
    assert ceilings(fresh=True).flop_rates != first.flop_rates
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


def test_valid_limits_on_disk_are_used(empty_cache: Path) -> None:
    found = ceilings()
    assert ceilings() == found
    keep(replace(found, on="2020-01-01"))
    assert ceilings().on > "2026"


def test_limits_of_a_busy_machine_are_measured_again(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that was stored once: 0.1 GB/s for a megabyte.  Any copy is faster."""
    busy = replace(ceilings(), bandwidth=((1 << 14, 1e6), (1 << 20, 1e6)))
    keep(busy)
    monkeypatch.setattr(module, "AGREE", 2.0)
    monkeypatch.setattr(module, "SWEEPS", 1)
    assert ceilings().bytes_per_second(1 << 20) > 1e8


def sweeps(*rates: float):
    found = iter(rates)
    return lambda: {1 << 20: next(found), "float32": 1e11}


def test_limits_are_measured_until_they_agree() -> None:
    rates, doubt = agreed(sweeps(4e9, 9e9, 1e10, 5e10))
    assert rates == {1 << 20: 1e10, "float32": 1e11} and doubt == ""


def test_a_machine_that_never_agrees_is_refused() -> None:
    rates, doubt = agreed(sweeps(*(1e9 * 2**n for n in range(SWEEPS))))
    assert rates[1 << 20] == 1e9 * 2 ** (SWEEPS - 1)
    assert "too noisy" in doubt and "copies of 1.0 MB still differ by a factor of 2.0" in doubt


def test_bandwidth_never_falls_as_arrays_shrink(empty_cache: Path) -> None:
    found = measured("cpu")
    rates = [rate for _, rate in found.bandwidth]
    assert rates == sorted(rates, reverse=True)
    raised = LIMITS.raised(100_000, 9e9, 1e12, "float64")
    assert raised.bandwidth == ((1_000, 9e9), (100_000, 9e9), (1_000_000, 2e9))
    assert raised.flop_rates == {"float32": 1e11, "float64": 1e12}


def test_limits_in_doubt_give_no_roof() -> None:
    time = StepTime("cpp_fused_sin_0", True, 1e-3, 0.0, nbytes=10**6, flops=10**6)
    step = Measured(time, "cpu", "float32")
    sure = step.under(LIMITS)
    assert sure.share == pytest.approx(0.5) and "50 % of the memory roof" in str(sure)
    unsure = step.under(replace(LIMITS, doubt="too noisy"))
    assert unsure.roof is None and unsure.share_text == "" and "roof" not in str(unsure)
