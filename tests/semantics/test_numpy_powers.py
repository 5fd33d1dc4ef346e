"""Powers in NumPy code have NumPy's bits if NumPy multiplies or divides."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import inductor_lab as lab

RANDOM = np.random.default_rng(0).standard_normal(4096)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -3e38, 1.0])


@pytest.mark.parametrize("exponent", [2, 2.0, -1, 1, 0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_have_the_bits_of_numpy(exponent: float, dtype: str) -> None:
    torch._dynamo.reset()
    x = np.concatenate([SPECIAL, RANDOM]).astype(dtype)

    def power(x: np.ndarray) -> np.ndarray:
        return x**exponent * 3

    found, expected = lab.compile(power)(x), power(x)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected, equal_nan=True)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found)[known], np.signbit(expected)[known])


def test_a_tensor_as_exponent_that_makes_the_result_larger() -> None:
    x = torch.linspace(-2, 2, 5)
    found = lab.compile(lambda x: x ** torch.full((3, 1), 2.0))(x)
    torch.testing.assert_close(found, (x * x).expand(3, 5))


def test_integers() -> None:
    x = np.arange(-5, 6)
    assert np.array_equal(lab.compile(lambda x: x**2)(x), x**2)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 10, 0.5])
def test_integers_have_the_bits_of_numpy(exponent: float, dtype: str) -> None:
    torch._dynamo.reset()
    x = np.arange(-9, 12).astype(dtype)
    with np.errstate(invalid="ignore"):
        expected = x**exponent
    found = lab.compile(lambda x: x**exponent)(x)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_root_has_the_bits_of_numpy(dtype: str) -> None:
    torch._dynamo.reset()
    x = np.concatenate([SPECIAL, RANDOM]).astype(dtype)
    with np.errstate(invalid="ignore"):
        expected = x**0.5
    found = lab.compile(lambda x: x**0.5)(x)
    assert np.array_equal(found, expected, equal_nan=True)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("exponent", [-0.5, 1.5, 3.5, -2.5, 1 / 3, 7])
def test_other_powers_are_as_accurate_as_torch(exponent: float, dtype: str) -> None:
    """Both use their own functions, within 2 ULP of the exact result in float128."""
    torch._dynamo.reset()
    x = np.abs(np.concatenate([RANDOM[:200], np.arange(1.0, 12)]))
    x = np.ceil(x).astype(dtype) if dtype == "int64" else x.astype(dtype)
    exact = x.astype(np.longdouble) ** np.longdouble(exponent)
    found = lab.compile(lambda x: x**exponent)(x)
    eager = torch.compile(lambda x: x**exponent, backend="aot_eager")(x)
    assert found.dtype == eager.dtype
    unit = np.spacing(np.abs(exact).astype(found.dtype))
    assert (np.abs(found - exact) <= 2 * unit).all()


def test_negative_powers_of_integers_raise() -> None:
    x = torch.arange(1, 5)
    compiled = torch.compile(lambda x, n: x**n, backend="inductor_lab")
    for exponent in (2, 3, -1, -2, 0):
        torch.compiler.reset() if exponent == -2 else None
        if exponent < 0:
            with pytest.raises(RuntimeError, match="negative integer powers"):
                compiled(x, exponent)
        else:
            assert torch.equal(compiled(x, exponent), x**exponent)
