"""Models distributed over several processes train as in eager mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.distributed.programs import SHARED_OUT, each_its_own, every_way, with_checks
from tests.distributed.ranks import of_all, results_of

WAYS = tuple(way.__name__ for way in SHARED_OUT)
FOUR = ("ddp", "fsdp", "tensor_parallel")


@pytest.fixture(scope="module")
def on_two() -> list[Any]:
    return of_all(results_of(2, every_way, WAYS, 2))


@pytest.fixture(scope="module")
def on_four() -> list[Any]:
    return of_all(results_of(4, every_way, FOUR, 2))


@pytest.mark.parametrize("way", WAYS)
def test_two_processes_train_as_in_eager_mode(way: str, on_two: list[Any]) -> None:
    check(way, on_two)


@pytest.mark.parametrize("way", FOUR)
def test_four_processes_train_as_in_eager_mode(way: str, on_four: list[Any]) -> None:
    check(way, on_four)


def check(way: str, ranks: list[Any]) -> None:
    for found in ranks:
        eager, compiled, *again = found[way]
        assert eager[-1] < eager[0] / 100, "it learns"
        assert compiled == pytest.approx(eager, rel=1e-4, abs=1e-6)
        assert all(one == compiled for one in again), "another run gives the same bits"


def same_order(ranks: list[Any]) -> None:
    (losses, begun, _), *others = ranks
    assert len(begun) > 10
    for other, begun_there, _ in others:
        assert begun_there == begun, "the same collectives in the same order"
        assert other == pytest.approx(losses, rel=1e-6), "all see one batch"


def test_one_rank_loads_graphs_from_disk_while_the_other_compiles(tmp_path: Path) -> None:
    """A graph with DTensors that another process has compiled is also loaded."""
    full, empty = str(tmp_path / "full"), str(tmp_path / "empty")
    first = of_all(results_of(2, each_its_own, [{}] * 2, [full] * 2))
    again = of_all(results_of(2, each_its_own, [{}] * 2, [full, empty]))
    assert [counted.get("autograd_cache_saved") for *_, counted in first] == [1, 1]
    assert [counted.get("autograd_cache_hit") for *_, counted in again] == [1, None]
    same_order(first)
    same_order(again)
    assert [losses for losses, *_ in again] == [losses for losses, *_ in first], "the same bits"


def test_ranks_with_different_options_start_collectives_in_the_same_order(
    tmp_path: Path,
) -> None:
    options: list[dict[str, Any]] = [{}, {"passes_off": "all"}, {"fusion": {"enabled": False}},
                                     {"matmul": "aten", "cache": False}]  # fmt: skip
    same_order(of_all(results_of(4, each_its_own, options, [str(tmp_path)] * 4)))


def test_freed_storages_of_parameters_are_not_read() -> None:
    for eager, compiled in of_all(results_of(2, with_checks, 3)):
        assert compiled == pytest.approx(eager, rel=1e-4)
