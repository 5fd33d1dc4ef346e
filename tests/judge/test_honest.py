"""Honest candidates are accepted; `python -m tests.judge.honest` judges all of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from inductor_lab.debug.judge.judge import Judge
from inductor_lab.debug.untrusted.confine import confinable
from tests.judge.honest import ROOF, WRONG_REFERENCES, candidates, row

pytestmark = pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
CANDIDATES = {one.name: one for one in candidates()}
QUICK = ("abs 0", "nn.functional.celu 0", "nn.functional.gelu 0", "maximum 0", "cat 0", "std 0",
         "frexp 0", "as_strided_scatter 0", "fft.ifft 0")  # fmt: skip
SAMPLE = [name for name in [*CANDIDATES][::15] if name not in QUICK]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(roof=ROOF) as made:
        yield made


def accepted(judge: Judge, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = row(CANDIDATES[name], judge)
    assert found["verdict"] != "rejected", found


@pytest.mark.parametrize("name", QUICK)
def test_an_operator_is_accepted(judge: Judge, name: str) -> None:
    accepted(judge, name)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_further_candidate_is_accepted(judge: Judge, name: str) -> None:
    accepted(judge, name)


def test_there_are_enough_candidates() -> None:
    assert len(CANDIDATES) > 700 and len(WRONG_REFERENCES) < 10
