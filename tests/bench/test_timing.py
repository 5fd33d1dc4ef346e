"""Timings: who takes longer is seen, and the numbers are what they say."""

from __future__ import annotations

import gc
import time

import pytest

from inductor_lab.bench.timing import Timings, compare


def test_the_slower_one_is_seen() -> None:
    timings = compare(
        {"one": lambda: time.sleep(0.002), "two": lambda: time.sleep(0.006)}, rounds=5
    )
    assert timings.rounds == 5
    assert 2 <= timings.median_ms("one") < timings.median_ms("two")
    assert timings.ratio("two", "one") > 1.5
    assert gc.isenabled()


def test_they_take_turns_in_changing_order() -> None:
    seen: list[str] = []

    def called(name: str):
        def function() -> None:
            seen.append(name)
            time.sleep(0.001)

        return function

    compare({"a": called("a"), "b": called("b")}, rounds=4)
    assert "".join(seen[4:]) == "abbaabba"


def test_at_least_three_rounds_however_slow() -> None:
    assert compare({"slow": lambda: time.sleep(0.01)}, seconds=0).rounds == 3


def test_quick_calls_are_repeated_within_a_sample() -> None:
    calls = 0

    def quick(step: int) -> None:
        nonlocal calls
        calls += step

    timings = compare({"quick": quick}, 1, rounds=3)
    assert calls > 50 and timings.median_ms("quick") < 1


def test_statistics() -> None:
    timings = Timings({"a": (1.0, 2.0, 3.0), "b": (2.0, 2.0, 12.0)})
    assert timings.median_ms("a") == 2000
    assert timings.ratio("b", "a") == 2.0  # of 2, 1 and 4
    assert timings.spread("a") == pytest.approx(0.5)
    assert "2.00x of a" in str(timings)
