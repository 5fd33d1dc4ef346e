"""The rounding error that is estimated by perturbing each operator."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inductor_lab.debug.compare.precision import BITS
from inductor_lab.debug.compare.values import call
from inductor_lab.debug.perturb import STEPS, Move, Perturbed, judge_perturbed, reference

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@pytest.mark.parametrize("dtype", FLOATS)
def test_each_element_moves_by_a_few_steps(dtype: torch.dtype) -> None:
    value = torch.cat([torch.linspace(1, 4, 999), -torch.logspace(-3, 3, 999)]).to(dtype)
    kind = BITS[dtype.itemsize]
    moved = Perturbed(1).perturb(value)
    steps = (moved.view(kind) - value.view(kind)).abs()
    assert moved.dtype is dtype and set(steps.tolist()) == {*range(1, STEPS + 1)}


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_stay(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    special = [0.0, -0.0, torch.inf, -torch.inf, torch.nan, info.tiny / 2]
    value = torch.tensor(special * 50, dtype=dtype)
    kind = BITS[dtype.itemsize]
    assert torch.equal(Perturbed(1).perturb(value).view(kind), value.view(kind))
    assert Perturbed(1).perturb(torch.full((99,), info.max, dtype=dtype)).isfinite().all()


@pytest.mark.parametrize("dtype", FLOATS[:2])
def test_a_function_of_one_operator_may_round_inside_of_it(dtype: torch.dtype) -> None:
    """Close to -3 the digits of `x / 6 + 1 / 2` cancel, also if an operator hides the sum."""
    x = torch.linspace(-2.9999, -2.9, 20_000, dtype=torch.float64).to(dtype)

    def run(move: Move) -> dict[str, Any]:
        return call(torch.nn.functional.hardsigmoid, move([x.clone()]), ["x"], False)

    plain, spread = reference(run, 6)
    got = plain | {"result 0": x * (1 / 6) + 0.5}
    verdicts = judge_perturbed(got, plain, None, spread)
    assert verdicts["result 0"].kind == "rounding"
    wrong = judge_perturbed(plain | {"result 0": got["result 0"] * 1.001}, plain, None, spread)
    assert wrong["result 0"].kind == "wrong"
