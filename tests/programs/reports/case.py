"""Programs written after public bug reports, by kind.

A program is a function of tensors, or (`build=True`) a function that makes the callable, anew for
each way of running it.  `given` makes the arguments of one call, or a list of them for several
calls in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Make = Callable[[], Any]
CASES: dict[str, Report] = {}


@dataclass(frozen=True)
class Report:
    """One program.

    kind        the defect that the report is about
    issue       the number of an issue of pytorch/pytorch; 0 for a kind without a report
    gradients   compare gradients too
    dynamic     `torch.compile(dynamic=...)`
    strides     the strides of results must be eager's
    zeros       the signs of zeros must be eager's
    refused     eager mode raises, so a compiled call must raise
    """

    name: str
    kind: str
    issue: int
    program: Callable[..., Any]
    given: Make
    build: bool = False
    gradients: bool = False
    dynamic: bool | None = None
    strides: bool = False
    zeros: bool = False
    refused: bool = False

    def callable(self) -> Callable[..., Any]:
        """The program, new."""
        return self.program() if self.build else self.program

    def calls(self) -> list[tuple[Any, ...]]:
        """New arguments of each call."""
        given = self.given()
        if isinstance(given, list):
            return [args if isinstance(args, tuple) else (args,) for args in given]
        return [given if isinstance(given, tuple) else (given,)]


def report(kind: str, given: Make, issue: int = 0, **options: Any) -> Callable[[Any], Any]:
    """Register a program under its function's name."""

    def add(program: Callable[..., Any]) -> Callable[..., Any]:
        name = program.__name__
        if name in CASES:
            raise ValueError(f"two programs are called {name}")
        CASES[name] = Report(name, kind, issue, program, given, **options)
        return program

    return add


def wave(*size: int, dtype: torch.dtype = torch.float32, phase: float = 0.0) -> torch.Tensor:
    """Numbers of both signs, no two alike."""
    count = torch.Size(size).numel()
    return (
        (torch.arange(1.0, 1 + count, dtype=torch.float64) * 1.7 + phase)
        .sin()
        .reshape(size)
        .to(dtype)
    )


def count(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """0, 1, 2, ..."""
    return torch.arange(torch.Size(size).numel()).reshape(size).to(dtype)


def made(*sizes: Sequence[int]) -> Make:
    """Arguments of these sizes, of both signs."""
    return lambda: tuple(wave(*size, phase=k) for k, size in enumerate(sizes))
