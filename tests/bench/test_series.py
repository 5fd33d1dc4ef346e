"""Several benchmarks in one: over sizes, and four programs in three modes."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.bench.progress import Progress
from inductor_lab.compiler.base.errors import BadArguments


def wave(x):
    return ((x + 1) * 2).sin()


class StopAt(Progress):
    def __init__(self, word: str) -> None:
        self.word = word
        self.last = None

    def update(self, done, doing, result) -> None:
        if self.word in doing:
            raise KeyboardInterrupt

    def finished(self, result) -> None:
        self.last = result


def test_sweep(tmp_path) -> None:
    sizes = (10, 1000, 100_000)
    result = lab.bench.sweep(wave, torch.randn, sizes, against=["eager"], seconds=0.02)
    assert result.sizes == sizes and result.complete
    assert [found.work for found in result.results] == [
        f"wave {size:,}(f32[{size}])" for size in sizes]  # fmt: skip
    (table,) = result.tables
    assert [row[0] for row in table.rows] == ["10", "1,000", "100,000"]
    assert lab.bench.load(result.save(tmp_path / "sweep.json")) == result


def test_a_sweep_that_is_stopped_keeps_the_sizes_before() -> None:
    stop = StopAt("2 of 3: wave 1,000: timing, round")
    result = lab.bench.sweep(
        wave, torch.randn, (10, 1000, 100_000), against=["eager"], seconds=1, progress=stop
    )
    assert not result.complete and len(result.results) == 2
    assert result.results[0].complete and not result.results[1].complete
    assert stop.last == result and "at 2 of 3 sizes" in str(result)


def test_no_sizes() -> None:
    with pytest.raises(BadArguments, match="no sizes"):
        lab.bench.sweep(wave, torch.randn, ())


def test_an_experiment_in_three_modes(tmp_path) -> None:
    result = lab.bench.four_experiments(["trig"], seconds=0.05)
    (table,) = result.tables
    assert [row[1] for row in table.rows] == [
        "inductor_lab", "inductor_lab reduce-overhead", "inductor_lab max-autotune"]  # fmt: skip
    for row in table.rows:
        program, _, compile_seconds, before, after, change, _ = row
        assert "gradient" in program and compile_seconds.endswith(" s")
        assert before and after and change
    assert [bool(row[-1]) for row in table.rows] == [False, True, True]
    assert lab.bench.load(result.save(tmp_path / "four.json")) == result


def test_an_unknown_experiment() -> None:
    with pytest.raises(BadArguments, match="unknown program 'quantum'"):
        lab.bench.four_experiments(["quantum"])


def test_all_four() -> None:
    pytest.importorskip("transformers")
    result = lab.bench.four_experiments(modes=["default"], seconds=0.1)
    assert len(result.results) == 4 and result.complete
    assert all(contender.agrees and not contender.failure
               for found in result.results for contender in found.contenders)  # fmt: skip


def test_modes_are_compared_on_one_call():
    from inductor_lab.bench import modes

    x = torch.randn(100)
    found = modes(torch.sin, x, modes=["default", "max-autotune"], against=["eager"], seconds=0.1,
                  cold=False)  # fmt: skip
    names = [contender.name for contender in found.contenders]
    assert names[0] == "eager" and len(names) == 3 and "max-autotune" in names[2]
