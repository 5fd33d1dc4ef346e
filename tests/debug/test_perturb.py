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


def spread_and_distance(function: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The estimate for a function of `x`, and the distance of its result from float64."""

    def run(move: Move) -> dict[str, Any]:
        return call(function, move([x]), ["x"], False)

    plain, spread = reference(run, 6)
    return spread["result 0"], (plain["result 0"] - function(x.double())).abs()


SPECTRA = {
    "one operator": lambda x: torch.fft.fft(x, dim=0),
    "complex values": lambda x: torch.fft.fft(torch.fft.fft(x, dim=1), dim=0),
    "complex product": lambda x: torch.fft.fft(x, dim=1).sum(0) - 7 * torch.fft.fft(x[0]),
    "matrix": lambda x: torch.polar(
        torch.ones(7, dtype=x.dtype), -2 * torch.pi / 7 * torch.arange(7, dtype=x.dtype)
    )[:, None].pow(torch.arange(7)) @ x.to(torch.promote_types(x.dtype, torch.complex64)),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("layout", ["expanded", "equal rows"])
def test_rounding_errors_of_equal_rows_are_estimated(name: str, layout: str) -> None:
    """All but one of the results are 0 in float64: their rounding errors have no other measure."""
    torch.manual_seed(0)
    x = torch.randn(1, 9).expand(7, 9)
    spread, distance = spread_and_distance(SPECTRA[name], x if layout == "expanded" else x.clone())
    assert bool(distance.any()) and bool((distance <= 32 * spread).all())


def test_an_expanded_operand_that_is_given_twice_is_moved_once() -> None:
    spread, _ = spread_and_distance(lambda x: x - x, torch.randn(1, 9).expand(7, 9))
    assert not bool(spread.any())


def test_a_view_of_an_expanded_tensor_stays_a_view() -> None:
    x = torch.randn(3, 1).expand(3, 4)
    with Perturbed(1):
        assert x.t().untyped_storage()._cdata == x.untyped_storage()._cdata
