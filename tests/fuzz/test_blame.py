"""Blame of random programs ends in a verdict; `python -m tests.fuzz.blame` does 500."""

from __future__ import annotations

import pytest

from tests.fuzz.blame import blame_programs


def blamed(count: int, seed: int) -> None:
    verdicts, failures = blame_programs(count, seed)
    assert not failures, "\n".join(failures)
    assert verdicts.total() == count


@pytest.mark.filterwarnings("ignore")
def test_any_program_is_blamed() -> None:
    blamed(3, 7)


@pytest.mark.filterwarnings("ignore")
def test_sixty_programs_are_blamed() -> None:
    blamed(60, 8)
