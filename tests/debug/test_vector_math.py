"""Vector functions of eager mode are initialized before a comparison."""

from __future__ import annotations

import pytest
import torch

from inductor_lab.debug.compare.values import copied_call, copies
from inductor_lab.debug.compare.vector_math import FUNCTIONS, settle_vector_math


def test_vector_functions_are_called_before_inputs_are_copied() -> None:
    """A race in MKL occurred in 3 of 1,500 processes on a busy machine.

    It occurred in none of 1,500 processes that had called its functions before, so this test checks
    that they are called.
    """
    for made in (lambda: copies([torch.ones(2)]), lambda: copied_call((torch.ones(2),), {})):
        settle_vector_math.cache_clear()
        made()
        assert settle_vector_math.cache_info().misses == 1


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_vector_functions_take_one_tensor(function) -> None:
    assert function(torch.full((1,), 0.5)).isfinite().all()
