"""Operators of the user's that write to an argument, or whose result is memory of an argument."""

from __future__ import annotations

import torch

LIBRARY = torch.library.Library("lab_fuzz", "DEF")
"""Holds the operators as long as this module is loaded."""


def double_(x: torch.Tensor) -> None:
    x.mul_(2)


def add_rows_(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Writes to `x` and returns what was in its first row."""
    before = x[0].clone()
    x[0] += y[0]
    return before


def fill_two_(x: torch.Tensor, y: torch.Tensor) -> None:
    x.fill_(1)
    y.select(0, -1).fill_(2)


def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def rest(x: torch.Tensor) -> torch.Tensor:
    return x[1:]


for schema, run in (
    ("double_(Tensor(a!) x) -> ()", double_),
    ("add_rows_(Tensor(a!) x, Tensor y) -> Tensor", add_rows_),
    ("fill_two_(Tensor(a!) x, Tensor(b!) y) -> ()", fill_two_),
    ("plus_one(Tensor x) -> Tensor", plus_one),
    ("rest(Tensor(a) x) -> Tensor(a)", rest),
):
    LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    LIBRARY.impl(run.__name__, run, "CPU")
    LIBRARY.impl(run.__name__, run, "Meta")
