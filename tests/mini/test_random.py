"""Random programs from fixed seeds: results, gradients, other sizes, all stages."""

from __future__ import annotations

import pytest

from tests.mini.random_programs import check_random

FEW = {"default": (21, 4), "gradients": (22, 3), "sizes": (23, 2)}
MANY = {"default": (24, 90), "gradients": (25, 70), "sizes": (26, 40)}
"""Seed and number of programs; the many are 200."""


def check(seed: int, count: int, way: str) -> None:
    options = {} if way == "default" else {way: True}
    assert check_random(count, seed, **options) == count


@pytest.mark.parametrize("way", FEW)
def test_a_few_random_programs(way: str) -> None:
    check(*FEW[way], way)


@pytest.mark.parametrize("way", MANY)
def test_two_hundred_random_programs(way: str) -> None:
    check(*MANY[way], way)
