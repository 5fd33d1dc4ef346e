"""Blame of random programs ends in a verdict; `python -m tests.fuzz.blame` does 500.

Blame of stock reports no fault for programs that stock compiles correctly;
`python -m tests.fuzz.blame_stock` tries more.
"""

from __future__ import annotations

import pytest

from tests.fuzz import blame_stock
from tests.fuzz.blame import blame_programs


def blamed(count: int, seed: int) -> None:
    verdicts, failures = blame_programs(count, seed)
    assert not failures, "\n".join(failures)
    assert verdicts.total() == count


@pytest.mark.filterwarnings("ignore")
def test_blame_of_random_programs_ends_in_a_verdict() -> None:
    blamed(3, 7)


@pytest.mark.filterwarnings("ignore")
def test_blame_of_sixty_random_programs() -> None:
    blamed(60, 8)


def check_stock(count: int, seed: int) -> None:
    verdicts, false = blame_stock.blame_programs(count, seed)
    assert not false, "\n".join(false)
    assert verdicts.total() == count and verdicts["right"] + verdicts["rounding"] >= count * 0.8


@pytest.mark.filterwarnings("ignore")
def test_stock_is_not_blamed_for_a_correct_program() -> None:
    check_stock(1, 3)


@pytest.mark.filterwarnings("ignore")
def test_stock_is_not_blamed_for_twelve_correct_programs() -> None:
    check_stock(12, 1)
