"""Lab 9: functions, and calls of them whose compiles are predicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

Shape: TypeAlias = tuple[int, ...]


def by_rows(x: torch.Tensor) -> torch.Tensor:
    """Rows added up, each times its number: the loop is unrolled into the graph."""
    total = torch.zeros_like(x[0])
    for row in range(x.shape[0]):
        total = total + row * x[row]
    return total


def attend(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ x.mT, -1)


def gate(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] > 8 else x + 1


RUNS: dict[str, tuple[Callable[..., Any], Shape]] = {
    "attend 4, 5, 6, 7": (attend, (4, 5, 6, 7)),
    "attend 4, 4, 4": (attend, (4, 4, 4)),
    "attend 4, 5, 1": (attend, (4, 5, 1)),
    "gate 4, 5, 6, 12, 13": (gate, (4, 5, 6, 12, 13)),
    "by_rows 4, 5, 6": (by_rows, (4, 5, 6)),
}
"""By name: a function, and the rows of x of the calls."""
