"""Values that eager kernels reject, such as invalid probabilities or standard deviations, are
rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

NAN = float("nan")
REFUSED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "a target above 1": (F.binary_cross_entropy, (torch.tensor([0.5]), torch.tensor([2.0]))),
    "a target below 0": (F.binary_cross_entropy, (torch.tensor([0.5]), torch.tensor([-0.1]))),
    "an input above 1": (F.binary_cross_entropy, (torch.tensor([1.5]), torch.tensor([1.0]))),
    "an input that is NaN": (F.binary_cross_entropy, (torch.tensor([NAN]), torch.tensor([1.0]))),
    "bernoulli": (torch.bernoulli, (torch.tensor([0.5, 1.5]),)),
    "bernoulli of NaN": (torch.bernoulli, (torch.tensor([NAN]),)),
    "bernoulli_": (lambda x: x.clone().bernoulli_(1.5), (torch.ones(2),)),
    "normal": (lambda x: torch.normal(0.0, x), (torch.tensor([1.0, -1.0]),)),
    "normal of two": (torch.normal, (torch.ones(2), torch.tensor([1.0, -1.0]))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_value_raises(name: str) -> None:
    function, given = REFUSED[name]
    for called in (function, lab.compile(function)):
        with pytest.raises(RuntimeError):
            called(*given)


def test_probabilities_are_accepted() -> None:
    compiled = lab.compile(lambda x, y: F.binary_cross_entropy(x, y) + F.binary_cross_entropy(y, x))
    x, y = torch.tensor([0.0, 1.0, 0.3]), torch.tensor([1.0, 1.0, 0.2])
    theirs = F.binary_cross_entropy(x, y) + F.binary_cross_entropy(y, x)
    torch.testing.assert_close(compiled(x, y), theirs)


def test_in_training() -> None:
    compiled = lab.compile(lambda x, y: F.binary_cross_entropy(x.sigmoid(), y))
    x, y = torch.randn(6, requires_grad=True), torch.rand(6)
    compiled(x, y).backward()
    found, x.grad = x.grad, None
    F.binary_cross_entropy(x.sigmoid(), y).backward()
    torch.testing.assert_close(found, x.grad)
    with pytest.raises(RuntimeError, match="target should be between 0 and 1"):
        compiled(x, y + 2)
