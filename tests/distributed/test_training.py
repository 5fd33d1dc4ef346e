"""Models shared out over several processes train as they do in eager mode."""

from __future__ import annotations

from typing import Any

import pytest

from tests.distributed.programs import SHARED_OUT, every_way, with_options
from tests.distributed.ranks import of_all, results_of

WAYS = tuple(way.__name__ for way in SHARED_OUT)
FOUR = ("ddp", "fsdp", "tensor_parallel")


@pytest.fixture(scope="module")
def on_two() -> list[Any]:
    return of_all(results_of(2, every_way, WAYS, 2))


@pytest.fixture(scope="module")
def on_four() -> list[Any]:
    return of_all(results_of(4, every_way, FOUR, 1))


@pytest.mark.parametrize("way", WAYS)
def test_two_processes_train_as_in_eager_mode(way: str, on_two: list[Any]) -> None:
    check(way, on_two)


@pytest.mark.parametrize("way", FOUR)
def test_four_processes_do(way: str, on_four: list[Any]) -> None:
    check(way, on_four)


def check(way: str, ranks: list[Any]) -> None:
    for found in ranks:
        eager, compiled, *again = found[way]
        assert eager[-1] < eager[0] / 100, "it learns"
        assert compiled == pytest.approx(eager, rel=1e-4, abs=1e-6)
        assert all(one == compiled for one in again), "another run gives the same bits"


def test_ranks_that_compile_otherwise_begin_the_same_collectives_in_the_same_order() -> None:
    options: list[dict[str, Any]] = [{}, {"passes_off": "all"}, {"fusion": {"enabled": False}},
                                     {"matmul": "aten", "cache": False}]  # fmt: skip
    for eager, compiled in of_all(results_of(4, with_options, options)):
        assert compiled == pytest.approx(eager, rel=1e-4)
