"""The choice of blocks for given times (tests/gpu/test_tune_blocks.py measures times)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton")

from inductor_lab.compiler.base.errors import CacheRefused
from inductor_lab.compiler.runtime.triton import tune_blocks
from inductor_lab.compiler.runtime.triton.tune_blocks import BlockChoice, Tuned, copies
from tests.codegen.triton_programs import kernels_of


class Times:
    """Replaces a GPU: the last candidate takes the fraction `last` of the time of the others."""

    def __init__(self, last: float) -> None:
        self.last, self.asked = last, 0

    def __call__(self, candidates: Mapping[str, Any], arguments: Any) -> dict[str, float]:
        self.asked += 1
        *others, last = candidates
        return dict.fromkeys(others, 1e-3) | {last: self.last * 1e-3}


def tuned(monkeypatch: pytest.MonkeyPatch, measure: Any, cache: bool = True) -> Tuned:
    monkeypatch.setattr(tune_blocks, "timed", measure)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    (kernel,) = kernels_of(lambda x: x.softmax(-1), torch.randn(64, 300))
    return Tuned(kernel, cache)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("last", "is_taken"), [(0.9, True), (0.98, False), (1.2, False)])
def test_the_fastest_blocks_are_chosen_and_ties_keep_the_prediction(
    last: float, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tuned(monkeypatch, Times(last))
    launcher = one._chosen(())
    assert (launcher is not one.usual) == is_taken
    assert one.choice is not None and one.choice.chosen in str(one.choice)
    assert (one.choice.chosen == one.choice.seconds[-1][0]) == is_taken


def test_without_alternatives_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(0.5)
    one = tuned(monkeypatch, times)
    monkeypatch.setattr(tune_blocks, "variants", lambda kernel: [])
    assert one._chosen(()) is one.usual and not times.asked and one.choice is None


def test_times_are_stored_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Times(0.5), Times(2.0)
    one = tuned(monkeypatch, first)
    one._chosen(())
    again = tuned(monkeypatch, second)
    again._chosen(())
    assert (first.asked, second.asked) == (1, 0) and one.choice == again.choice
    tuned(monkeypatch, second, cache=False)._chosen(())
    assert second.asked == 1


def test_tuning_works_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise CacheRefused("not yours")

    monkeypatch.setattr(tune_blocks, "open_cache", refuse)
    times = Times(0.5)
    one = tuned(monkeypatch, times)
    assert one._chosen(()) is not one.usual and times.asked == 1


def test_without_memory_for_copies_nothing_is_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(candidates: Any, arguments: Any) -> None:
        raise torch.OutOfMemoryError("no more")

    one = tuned(monkeypatch, full)
    with pytest.warns(UserWarning, match="not enough memory to measure the blocks of triton_"):
        assert one._chosen(()) is one.usual
    assert one.choice is None


def test_copies_share_memory_like_the_originals() -> None:
    x = torch.arange(12.0)
    whole, part, other, number = copies([x, x[3:].view(3, 3).t(), torch.ones(2), 7])
    assert number == 7 and torch.equal(whole, x) and torch.equal(part, x[3:].view(3, 3).t())
    part.zero_()
    assert torch.equal(whole[3:], torch.zeros(9)) and torch.equal(x, torch.arange(12.0))
    assert part.stride() == (1, 3) and other.data_ptr() not in (whole.data_ptr(), x.data_ptr())


def test_the_text_of_a_choice() -> None:
    choice = BlockChoice("triton_sum_0", (("XBLOCK 1, 4 warps", 2e-4), ("XBLOCK 2, 4 warps", 1e-4)))
    first, best, usual = str(choice).splitlines()
    assert first == "triton_sum_0" and repr(choice) == "<triton_sum_0: XBLOCK 2, 4 warps>"
    assert best.split() == ["XBLOCK", "2,", "4", "warps", "0.1000", "ms,", "chosen"]
    assert usual.split() == ["XBLOCK", "1,", "4", "warps", "0.2000", "ms"]
