"""A rank that fails does not leave the others without a word."""

from __future__ import annotations

from tests.distributed.programs import compiled_together
from tests.distributed.ranks import results_of
from tests.processes import Lost


def test_a_rank_that_cannot_compile_is_named_to_the_others() -> None:
    other, failed = results_of(2, compiled_together, 1, "compile")
    assert "the seeded fault" in failed
    assert other.startswith("RankFailed: rank 0 was in a collective, and rank 1 could not go on")
    assert "the seeded fault" in other


def test_a_rank_that_is_killed_is_named_to_the_others() -> None:
    other, failed = results_of(2, compiled_together, 1, "kill")
    assert isinstance(failed, Lost) and "SIGKILL" in failed.why
    assert other.startswith("RankFailed: rank 0 was in a collective, and rank 1, process ")
    assert "has ended" in other
