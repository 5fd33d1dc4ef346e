"""Eager mode is made ready before something is compared with it."""

from __future__ import annotations

import pytest
import torch

from inductor_lab.debug.compare.values import copied_call, copies
from inductor_lab.debug.compare.vector_math import FUNCTIONS, settle_vector_math


def test_copies_to_call_something_with_come_after_the_first_calls() -> None:
    """A race in MKL, which showed in 3 of 1,500 processes on a busy machine, and in none of 1,500
    that had called its functions before; so what is tested is that they are called."""
    for made in (lambda: copies([torch.ones(2)]), lambda: copied_call((torch.ones(2),), {})):
        settle_vector_math.cache_clear()
        made()
        assert settle_vector_math.cache_info().misses == 1


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_they_are_functions_of_one_tensor(function) -> None:
    assert function(torch.full((1,), 0.5)).isfinite().all()
