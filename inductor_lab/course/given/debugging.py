"""Lab 10: programs with a bug in the compiler, drawn from a name."""

from __future__ import annotations

import inspect as sources
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.course.language import say
from inductor_lab.debug.faults import CATALOGUE


def scored(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = torch.tanh(x)
    b = torch.nn.functional.silu(y)
    c = b**3
    d = x.t() * c
    return a + d


def paged(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    page = x // 8
    area = x * y
    shade = -z
    return page + area, torch.maximum(z, shade)


def walked(state: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    a = torch.sin(x)
    b = a @ w
    c = torch.cos(b)
    state.add_(x)
    return c @ w + a + b + state


Inputs = tuple[torch.Tensor, ...]


def _floats(count: int) -> Callable[[torch.Generator], Inputs]:
    return lambda draw: tuple(torch.randn(12, 12, generator=draw) for _ in range(count))


def _whole(draw: torch.Generator) -> Inputs:
    x, y = (torch.randint(-(10**6), 10**6, (200,), generator=draw) for _ in range(2))
    return x, y, torch.randint(256, (200,), generator=draw).to(torch.uint8)


BUGGY: tuple[tuple[Callable[..., Any], Any, dict[str, str]], ...] = (
    (scored, _floats(2), {
        "short_series": "torch.tanh(x)", "wrong_definition": "torch.nn.functional.silu(y)",
        "wrong_rule": "b**3", "wrong_stride": "x.t() * c",
    }),
    (paged, _whole, {
        "truncating_division": "x // 8", "int_overflow": "x * y", "wrong_neg": "shade = -z",
    }),
    (walked, _floats(3), {"reused_too_early": "torch.sin(x)", "dropped_write": "state.add_(x)"}),
)  # fmt: skip
"""Programs, what makes their inputs, and the faults that they meet, each with the user's line."""


@dataclass(frozen=True, repr=False)
class Bug:
    """A program, and a fault of the compiler that it meets: which one is the question."""

    number: int
    function: Callable[..., Any]
    make: Callable[[torch.Generator], Inputs]
    fault: str
    line: str

    def inputs(self, seed: int = 0) -> Inputs:
        """Arguments for one call."""
        return self.make(torch.Generator().manual_seed(seed))

    def planted(self) -> AbstractContextManager[Any]:
        """Inside of `with bug.planted():` the compiler has the bug."""
        return CATALOGUE[self.fault]()

    def __str__(self) -> str:
        head = say("bug {n}, in the program", n=self.number)
        return f"{head}\n{sources.getsource(self.function)}"

    __repr__ = __str__


def bugs(name: str) -> tuple[Bug, ...]:
    """The three bugs of a student, drawn from the name."""
    draw, found = random.Random(name), []
    for number, (function, make, faults) in enumerate(BUGGY):
        fault = draw.choice(sorted(faults))
        found.append(Bug(number, function, make, fault, faults[fault]))
    return tuple(found)
