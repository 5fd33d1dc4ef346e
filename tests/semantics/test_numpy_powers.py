"""Powers in NumPy code have NumPy's bits where NumPy multiplies or divides."""

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
def test_every_bit_is_as_numpy_has_it(exponent: float, dtype: str) -> None:
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
