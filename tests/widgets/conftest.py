"""A function with a gradient and one without, each compiled once for all tests here."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.api.compilation import Compilation


def pythagoras(x):
    one = torch.sin(x) ** 2
    return one + torch.cos(x) ** 2


def wave(x):
    return ((x + 1) * 2).sin()


def breaking(x):
    y = x * 2
    print("a graph break")
    return y.softmax(-1)


@pytest.fixture(scope="session")
def training() -> Compilation:
    return lab.inspect(pythagoras, torch.randn(100, requires_grad=True))


@pytest.fixture(scope="session")
def inference() -> Compilation:
    return lab.inspect(wave, torch.randn(1000))


@pytest.fixture(scope="session")
def broken() -> Compilation:
    return lab.inspect(breaking, torch.randn(8, 16))
