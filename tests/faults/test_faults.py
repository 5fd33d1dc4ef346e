"""The short form of the fault tests: no attempt is a defect, and each kind was tried."""

from __future__ import annotations

import pytest

from tests.faults.outcome import CLEAR, DEFECT, OK, SKIPPED, Tried, judged
from tests.faults.run import FAMILIES, table, tried


@pytest.mark.parametrize("name", FAMILIES)
def test_short_form(name: str) -> None:
    attempts = list(tried(name, short=True, seed=1))
    done = [each for each in attempts if each.outcome != SKIPPED]
    assert len(done) >= 5 or (len(attempts) == 1 and not done), table(name, attempts)
    assert [each for each in done if each.outcome == DEFECT] == []


def test_what_counts_as_clear() -> None:
    from inductor_lab.compiler.base.errors import CacheRefused, CompilerDefect

    def raises(error: BaseException) -> tuple[str, str]:
        def call() -> None:
            raise error

        return judged(call)

    assert judged(lambda: None) == (OK, "")
    assert raises(CacheRefused("not ours"))[0] == CLEAR
    assert raises(CompilerDefect("lower", KeyError("x")))[0] == DEFECT
    assert raises(KeyError("x"))[0] == raises(AssertionError())[0] == DEFECT


def test_the_table_counts() -> None:
    text = table("family", [Tried("a", OK), Tried("a", DEFECT, "why"), Tried("b", CLEAR)])
    assert [line.split() for line in text.splitlines()] == [
        ["family", "a", "2", "1", "1"], ["family", "b", "1", "1"]]  # fmt: skip
