"""The small interpreter of the labs gives the results of torch, for programs and for schedules."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import NeedsTorch
from inductor_lab.course.given.fusion import SIX, inputs_of_six
from inductor_lab.course.interpret_numpy import (
    inputs_for,
    program_with_numpy,
    schedule_with_numpy,
)


def agree(forward, wanted) -> None:
    arrays = inputs_for(forward.loops)
    results = forward.loops.run(*map(torch.from_numpy, arrays))
    assert len(results) == len(wanted)
    for found in (
        program_with_numpy(forward.loops, arrays), schedule_with_numpy(forward.schedule, arrays)
    ):  # fmt: skip
        for one, other in zip(found, results, strict=True):
            largest = float(other.double().abs().max())  # NumPy sums a product in another order
            torch.testing.assert_close(torch.tensor(one), other, rtol=1.3e-6,
                                       atol=max(1e-5, 2e-6 * largest))  # fmt: skip


@pytest.mark.parametrize("function", SIX, ids=lambda function: function.__name__)
def test_the_six_programs(function) -> None:
    results = function(*inputs_of_six())
    found = lab.inspect(function, *inputs_of_six()).graphs[0].forward
    agree(found, results if isinstance(results, tuple) else (results,))


def windows(x):
    joined = torch.cat([x, x * 2], 1)
    return joined.flip(1).reshape(-1, 6).amax(1), torch.where(x > 0, x, -x).T[2:]


def test_masks_quotients_and_views_of_outputs() -> None:
    x = torch.randn(4, 6)
    agree(lab.inspect(windows, x).graphs[0].forward, windows(x))


def test_what_it_does_not_have() -> None:
    forward = lab.inspect(lambda x: x.cumsum(0), torch.randn(4)).graphs[0].forward
    with pytest.raises(NeedsTorch):
        program_with_numpy(forward.loops, inputs_for(forward.loops))
