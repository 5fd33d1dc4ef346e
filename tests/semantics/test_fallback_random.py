"""`fallback_random`: the random numbers of eager mode, and the state of its generator
afterwards."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

EAGERS = {"fallback_random": True}
DRAWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "rand_like": lambda x: torch.rand_like(x) * 2,
    "transposed": lambda x: torch.rand_like(x.t()) + x.t(),
    "permuted": lambda x: torch.randn_like(x.view(2, 2, 6).permute(2, 0, 1)).sin(),
    "several": lambda x: (torch.rand(3), torch.randn(4, 2), torch.randint(9, (5,)), x.sin()),
    "used in another order": lambda x: [t + 1 for t in (torch.rand(3), torch.randn(3))][::-1],
    "randn": lambda x: torch.randn(3, 5) @ x[:, :5].new_ones(5, 2),
    "randperm": lambda x: torch.randperm(7) * 2,
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()) + 1,
    "bernoulli_": lambda x: x.clone().bernoulli_(0.3),
    "dropout": lambda x: F.dropout(x, 0.4) * 2,
    "dropout, transposed": lambda x: F.dropout(x.t(), 0.4) * 2,
    "dropout2d": lambda x: F.dropout2d(x.view(1, 4, 2, 3), 0.4),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.4, training=True),
    "normal_": lambda x: torch.empty_like(x).normal_(1, 2),
    "normal": lambda x: torch.normal(x, x.abs()),
    "uniform_": lambda x: torch.empty_like(x).uniform_(-1, 2),
    "exponential_": lambda x: torch.empty_like(x).exponential_(2),
    "cauchy_": lambda x: torch.empty_like(x).cauchy_(),
    "log_normal_": lambda x: torch.empty_like(x).log_normal_(),
    "geometric_": lambda x: torch.empty_like(x).geometric_(0.4),
    "random_": lambda x: torch.empty_like(x).random_(7),
    "multinomial": lambda x: torch.multinomial(x.abs(), 2),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x),
    "poisson": lambda x: torch.poisson(x.abs()),
}


def seeded(function: Callable[..., Any], *given: Any) -> Any:
    torch.manual_seed(7)
    return function(*given), torch.rand(1)


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_equal_eager_mode(name: str) -> None:
    function, x = DRAWS[name], torch.linspace(-2, 2, 24).view(4, 6)
    found = seeded(lab.compile(function, options=EAGERS), x)
    torch.testing.assert_close(found, seeded(function, x), rtol=1e-6, atol=1e-6)


def test_dropout_in_training() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(F.dropout(x.sin(), 0.3) @ x.t(), 0.5).sum()

    def trained(function: Callable[..., Any]) -> torch.Tensor:
        x = torch.linspace(-1, 1, 24).view(4, 6).requires_grad_()
        function(x).backward()
        return x.grad

    expected, found = seeded(trained, step), seeded(trained, lab.compile(step, options=EAGERS))
    torch.testing.assert_close(found, expected)


def test_the_option_of_torch_has_the_same_effect() -> None:
    config = importlib.import_module("torch._inductor.config")
    function = DRAWS["several"]
    with config.patch(fallback_random=True):
        found = seeded(lab.compile(function), torch.ones(3))
    torch.testing.assert_close(found, seeded(function, torch.ones(3)))
