"""Models of our own compute and train as they do in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.models.compare import check_eval, check_step
from tests.models.own import Experts, GraphNet, RoutedExperts, Tagger, UNet

CASES: dict[str, Callable[[], tuple[torch.nn.Module, dict[str, Any]]]] = {
    "unet": lambda: (UNet(), {"x": torch.randn(2, 3, 16, 16)}),
    "lstm": lambda: (Tagger(), {"tokens": torch.randint(0, 20, (2, 6))}),
    "graph": lambda: (
        GraphNet(),
        {"nodes": torch.randn(10, 8), "edges": torch.randint(0, 10, (2, 30))},
    ),
    "experts": lambda: (Experts(), {"x": torch.randn(12, 8)}),
    "routed_experts": lambda: (RoutedExperts(), {"x": torch.randn(12, 8)}),
}


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
    torch.compiler.reset()


@pytest.mark.parametrize("name", CASES)
def test_output(name: str) -> None:
    check_eval(*CASES[name]())


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    check_step(*CASES[name]())


def test_unet_channels_last() -> None:
    model, inputs = CASES["unet"]()
    model = model.to(memory_format=torch.channels_last)
    check_step(model, {"x": inputs["x"].to(memory_format=torch.channels_last)})
