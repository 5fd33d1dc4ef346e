"""The race detector: seeded races are found with their lines, and correct kernels have none."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.course import kernels

pytest.importorskip("triton")

from inductor_lab.course.gpu import Trace, descend, run_kernel

RACES = {name: one for name, one in vars(kernels).items() if name.startswith("racy_")}
RIGHT = {name: one for name, one in vars(kernels).items() if name.startswith("right_")}
SIZES = ((1, 4), (7, 4), (8, 4), (13, 4), (30, 8), (64, 8))
"""Numbers of elements, and the length of a block."""


def launched(
    kernel: Callable[..., Any], count: int, block: int, backwards: bool = False
) -> Trace:
    """The trace of a kernel with x, a result and a scratch tensor, the count and the programs."""
    programs = -(-count // block)
    x, out, scratch = torch.arange(1.0, count + 1), torch.zeros(count), torch.zeros(64).int()
    return run_kernel(kernel, (programs,), x, out, scratch, count, programs, backwards=backwards,
                      BLOCK=block)  # fmt: skip


def test_there_are_enough_kernels() -> None:
    assert len(RACES) >= 20
    assert len(RIGHT) * len(SIZES) >= 100


@pytest.mark.parametrize("name", RACES)
def test_a_seeded_race_is_found(name: str) -> None:
    found = [race for backwards in (False, True)
             for race in launched(RACES[name], 30, 8, backwards).races()]  # fmt: skip
    assert found, f"{name} has no race"
    lines = inspect.getsource(RACES[name]).splitlines()
    marked = {line.strip() for line in lines if line.endswith("  # race")}
    told = {line for race in found for line in (race.first.line, race.second.line)}
    assert told & marked, (told, marked)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize(("count", "block"), SIZES)
def test_a_right_kernel_has_no_race(name: str, count: int, block: int) -> None:
    for backwards in (False, True):
        trace = launched(RIGHT[name], count, block, backwards)
        assert trace.accesses and not trace.races(), str(trace.races()[0])


def test_the_counts_are_those_of_the_kernel() -> None:
    trace = launched(kernels.right_copy, 30, 8)
    assert trace.times(0) == 1 and trace.times(1) == 0 and trace.times(1, stored=True) == 1
    assert "argument 0: elements: 30; loads per element: 1.00" in str(trace)


def test_a_kernel_is_compiled_down_to_machine_code() -> None:
    x, scratch = torch.zeros(30), torch.zeros(64).int()
    stages = descend(kernels.right_total, x, x, scratch, 30, 2, BLOCK=16)
    assert list(stages) == ["ttir", "ttgir", "llir", "ptx", "cubin"]
    assert "tt.atomic_rmw" in stages["ttir"] and ".target sm_90" in stages["ptx"]
    assert isinstance(stages["cubin"], bytes)
