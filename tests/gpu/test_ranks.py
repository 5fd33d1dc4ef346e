"""Models distributed over two GPUs train as in eager mode."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.distributed.programs import SHARED_OUT, every_way, small_messages, with_checks
from tests.distributed.ranks import of_all, results_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]
WAYS = tuple(way.__name__ for way in SHARED_OUT)


@pytest.fixture(scope="module")
def ranks() -> list[Any]:
    return of_all(results_of(2, every_way, WAYS, 1, backend="nccl"))


@pytest.mark.parametrize("way", WAYS)
def test_two_gpus_train_as_in_eager_mode(way: str, ranks: list[Any]) -> None:
    for found in ranks:
        eager, compiled = found[way]
        assert eager[-1] < eager[0] / 100, "it learns"
        assert compiled == pytest.approx(eager, rel=1e-3, abs=1e-5)


def test_small_messages_are_merged_and_values_are_those_of_eager_mode() -> None:
    (sent, _), other = of_all(results_of(2, small_messages, backend="nccl"))
    assert sent == other[0] == ["all_reduce", "all_reduce_coalesced"]


def test_freed_parameter_storages_are_not_read() -> None:
    for eager, compiled in of_all(results_of(2, with_checks, 3, backend="nccl")):
        assert compiled == pytest.approx(eager, rel=1e-3)
