"""Lab 7: programs whose masks are predicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def wave(x: torch.Tensor) -> torch.Tensor:
    return 2 * x + 1


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


MASKED: dict[str, tuple[Callable[..., Any], tuple[int, int]]] = {
    "wave 1024 x 1024": (wave, (1024, 1024)),
    "wave 1000 x 1001": (wave, (1000, 1001)),
    "softmax 64 x 1024": (softmax, (64, 1024)),
    "softmax 64 x 1000": (softmax, (64, 1000)),
    "softmax 63 x 1024": (softmax, (63, 1024)),
}
"""By name: a function and the sizes of its input."""
