"""Timings: the slower function is found, and the statistics are correct."""

from __future__ import annotations

import gc
import time

import pytest

from inductor_lab.bench.timing import Timings, compare


def test_the_slower_function_is_found() -> None:
    timings = compare(
        {"one": lambda: time.sleep(0.002), "two": lambda: time.sleep(0.006)}, rounds=5
    )
    assert timings.rounds == 5
    assert 2 <= timings.median_ms("one") < timings.median_ms("two")
    assert timings.ratio("two", "one") > 1.5
    assert gc.isenabled()


def test_functions_are_interleaved_in_changing_order() -> None:
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


def verdict(seconds: dict[str, tuple[float, ...]]) -> str:
    return Timings(seconds).verdict("new", "old")


def test_a_verdict_needs_rounds_that_agree() -> None:
    old = (1.9, 2.0, 2.1, 1.9, 2.0, 2.1, 2.0)
    half = tuple(seconds / 2 for seconds in old)
    assert verdict({"old": old, "new": half}) == "2x faster than old"
    assert verdict({"old": half, "new": old}) == "2x slower than old"
    assert verdict({"old": old, "new": old}) == "as fast as old, 1.00 to 1.00x"


def test_a_verdict_is_the_interval() -> None:
    old, new = (2.0,) * 7, (1.0, 1.05, 0.95, 1.0, 1.02, 0.9, 1.0)
    assert verdict({"old": old, "new": new}) == "1.9 to 2.2x faster than old"
    assert verdict({"old": new, "new": old}) == "1.9 to 2.2x slower than old"
    near = (1.999, 1.9, 1.95, 1.97, 1.9, 1.93, 1.998)
    assert verdict({"old": old, "new": near}) == "up to 1.05x faster than old"


def test_rounds_that_disagree_are_too_noisy() -> None:
    wild = (1.0, 9.0, 0.2, 4.0, 0.5, 2.0, 1.5)
    assert verdict({"old": (1.0,) * 7, "new": wild}).startswith("too noisy to tell: 0.11x to 5.00x")
    assert verdict({"old": (1.0, 1.0), "new": (1.0, 1.0)}) == "inconclusive: only 2 rounds"


def test_more_rounds_narrow_the_interval() -> None:
    few = tuple(0.8 + 0.4 * (n / 6) for n in range(7))
    many = tuple(0.8 + 0.4 * (n / 99) for n in range(100))
    wide = Timings({"old": (1.0,) * 7, "new": few}).interval("new", "old")
    narrow = Timings({"old": (1.0,) * 100, "new": many}).interval("new", "old")
    assert wide[0] < narrow[0] < 1 < narrow[1] < wide[1]


def test_samples_of_another_moment_are_not_paired() -> None:
    """The range of the quotient of the two medians' intervals, whatever the order of samples."""
    old = tuple(2.0 + 0.01 * n for n in range(20))
    found = Timings({"old": old, "new": (1.0,) * 7}, apart=("old",))
    low, high = found.median_interval("old")
    assert found.rounds == 7 and found.interval("new", "old") == (low, high)
    assert found.ratio("new", "old") == pytest.approx(1 / 2.095)
    assert found.verdict("new", "old").startswith("2 to 2.")
    assert found.of("new", "old").apart == ("old",) and found.of("new").apart == ()
    few = Timings({"old": old[:2], "new": (1.0,) * 7}, apart=("old",))
    assert few.verdict("new", "old") == "inconclusive: only 2 rounds"


def test_complete_rounds_are_kept_after_an_interrupt() -> None:
    kept, calls = [], 0

    def stopping() -> None:
        nonlocal calls
        calls += 1
        time.sleep(0.001)
        if calls > 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs = {"quiet": lambda: time.sleep(0.001), "stopping": stopping}
        compare(jobs, rounds=50, after_round=kept.append)
    timings = kept[-1]()
    assert timings.rounds == 4 and {len(s) for s in timings.seconds.values()} == {4}
