"""The float64 functions of the `lab_*.h` headers, compared with wider arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

import inductor_lab as lab
from tests.codegen.test_cpp_math import BINARY, LIMITS_OF_DOUBLES, Call, call

__all__ = ["call"]

WIDE: dict[str, Callable[..., Any]] = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2,
}  # fmt: skip
"""Functions with a different name in NumPy."""
UNARY = [name for name in LIMITS_OF_DOUBLES if name not in BINARY]
SPECIAL = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-320, -1e-320, 1e-300, 1.0, -1.0,
           0.5, 2.5, 1e308, -1e308, 710.2, -700.0]  # fmt: skip
HUGE = 1e300

needs_wide = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="long double is no wider than double here"
)


def arguments(count: int, seed: int = 0) -> torch.Tensor:
    """Doubles of every exponent and sign, of typical size, near multiples of pi / 2, and near 1."""
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(0, 0x7FF0000000000000, (count,), generator=generator)
    even = torch.rand(count, generator=generator, dtype=torch.float64) * 2 - 1
    turns = torch.randint(-10_000, 10_000, (count,), generator=generator) * (torch.pi / 2)
    wild = bits.view(torch.float64)
    return torch.cat([wild, -wild, even, even * 3, even * 800, 1 + even * 1e-3, turns])


def errors_in_ulp(got: torch.Tensor, exact: np.ndarray) -> np.ndarray:
    """The error in ULP of a double at `exact`."""
    found, rounded = got.numpy(), exact.astype(np.float64)
    unit = np.ldexp(np.longdouble(1), np.maximum(np.frexp(np.abs(exact))[1], -1021) - 53)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    error = np.abs(found.astype(np.longdouble) - exact) / unit
    return np.where(same & ~np.isfinite(rounded), 0, np.where(np.isnan(error), np.inf, error))


def exactly(name: str, *operands: torch.Tensor) -> np.ndarray:
    function = WIDE.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        return function(*(x.numpy().astype(np.longdouble) for x in operands))


@needs_wide
@pytest.mark.parametrize("name", [name for name in UNARY if name != "erf"])
def test_accuracy(name: str, call: Call) -> None:
    x = arguments(30_000)
    with np.errstate(all="ignore"):
        error = errors_in_ulp(call(name, x), exactly(name, x))
    worst = int(error.argmax())
    assert error[worst] <= LIMITS_OF_DOUBLES[name], f"at {x[worst].item()!r}"


@needs_wide
@pytest.mark.parametrize("name", [name for name in BINARY if name in LIMITS_OF_DOUBLES])
def test_accuracy_of_two_operands(name: str, call: Call) -> None:
    x = arguments(30_000)
    y = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))]
    with np.errstate(all="ignore"):
        error = errors_in_ulp(call(name, x, y), exactly(name, x, y))
    worst = int(error.argmax())
    assert error[worst] <= LIMITS_OF_DOUBLES[name], f"at {x[worst].item()!r}, {y[worst].item()!r}"


@needs_wide
def test_accuracy_of_erf(call: Call) -> None:
    x = torch.cat([torch.linspace(-6.2, 6.2, 3001, dtype=torch.float64), arguments(20)[:100]])
    with mpmath.workdps(40):
        exact = [np.longdouble(mpmath.nstr(mpmath.erf(value), 25)) for value in x.tolist()]
    assert errors_in_ulp(call("erf", x), np.array(exact)).max() <= LIMITS_OF_DOUBLES["erf"]


@needs_wide
def test_accuracy_of_erfinv_up_to_its_poles() -> None:
    from_one = 2.0 ** -torch.arange(1, 54, dtype=torch.float64)
    near_zero = torch.tensor([1e-300, 1e-20, 1e-9, 1e-4], dtype=torch.float64)
    x = torch.cat([1 - from_one, from_one - 1, near_zero, torch.linspace(-0.99, 0.99, 300)])
    with mpmath.workdps(40):
        exact = [np.longdouble(mpmath.nstr(mpmath.erfinv(value), 25)) for value in x.tolist()]
    got = lab.compile(torch.erfinv, dynamic=True)(x)
    assert errors_in_ulp(got, np.array(exact)).max() <= 32


@pytest.mark.parametrize("name", LIMITS_OF_DOUBLES)
def test_special_values(name: str, call: Call) -> None:
    """Compared with NumPy: eager sinh overflows early, and eager fmod fails for subnormals."""
    special = torch.tensor(SPECIAL, dtype=torch.float64)
    given = [special]
    if name in BINARY:
        given = [t.flatten() for t in torch.meshgrid(special, special, indexing="ij")]
    got = call(name, *given)
    if name == "erf":
        expected = torch.erf(special)
    else:
        with np.errstate(all="ignore"):
            expected = torch.from_numpy(exactly(name, *given).astype(np.float64))
    torch.testing.assert_close(got, expected, equal_nan=True, rtol=1e-14, atol=0)
    number = ~expected.isnan()
    assert torch.equal(torch.signbit(got)[number], torch.signbit(expected)[number])


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_one_huge_angle_among_others(name: str, call: Call) -> None:
    """In every lane of a full and of a partial vector register."""
    for count in (1, 2, 4, 8, 23):
        for place in range(count):
            x = torch.linspace(-9, 9, count, dtype=torch.float64)
            x[place] = HUGE
            got, expected = call(name, x), getattr(torch, name)(x)
            torch.testing.assert_close(got, expected, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["sin", "tan"])
def test_small_angles_keep_the_sign_of_zero(name: str, dtype: torch.dtype, call: Call) -> None:
    """Without a huge angle: with one, the C library would compute all lanes."""
    x = torch.tensor([-0.0, 0.0, 0.5, -1e-320], dtype=dtype).repeat(9)
    assert torch.equal(call(name, x).signbit(), x.signbit())
