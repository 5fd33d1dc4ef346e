"""Lab 6: trees of programs with two loops, and programs whose passes are predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.compiler.codegen.tree.loop_tree import Loop, Tree
from inductor_lab.compiler.codegen.tree.text import tree_text
from inductor_lab.compiler.schedule.schedule import Schedule

Place: TypeAlias = tuple[int, int]


def transposed_addresses(rows: int, columns: int, tile: Place) -> list[int]:
    """What `out[i, j] = x[j, i]` accesses, going tile by tile: x is read, out is written."""
    found = []
    for top, left in product(range(0, rows, tile[0]), range(0, columns, tile[1])):
        bottom, right = min(top + tile[0], rows), min(left + tile[1], columns)
        for i, j in product(range(top, bottom), range(left, right)):
            found += [j * rows + i, rows * columns + i * columns + j]
    return found


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def turned(x: torch.Tensor) -> torch.Tensor:
    return x.T + x


def spread(x: torch.Tensor) -> torch.Tensor:
    return x * x[0]


@dataclass(frozen=True)
class Nested:
    """A program of two loops, and whether they have been interchanged."""

    function: Callable[..., Any]
    size: int
    swapped: bool

    def built(self) -> tuple[Schedule, Tree, torch.Tensor]:
        """Its schedule, its one tree, and an input."""
        x = torch.arange(float(self.size**2)).reshape(self.size, self.size)
        part = inspect(self.function, x).graphs[0].forward
        tree = part.trees[0].steps[0].tree
        return part.schedule, exchanged(tree) if self.swapped else tree, x

    def __str__(self) -> str:
        return tree_text(self.built()[1])


def exchanged(tree: Tree) -> Tree:
    """A nest of two loops with the loops in the other order."""
    (outer,) = tree
    assert isinstance(outer, Loop) and isinstance(outer.body[0], Loop), "two loops, one in another"
    inner = outer.body[0]
    return (replace(outer, axis=inner.axis, body=(replace(inner, axis=outer.axis),)),)


def nested(swapped: bool = True) -> Tree:
    """The tree of `x.T + x` as it is built, or with its loops interchanged."""
    return Nested(turned, 6, swapped).built()[1]


def attend(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum()


PROGRAMS: dict[str, tuple[Callable[..., Any], int]] = {
    "scaled": (scaled, 1024),
    "scaled small": (scaled, 4),
    "turned": (turned, 1024),
    "softmax": (attend, 512),
    "softmax small": (attend, 4),
    "total": (total, 1024),
}
"""By name: a function, and the side of its square input."""


ASKED = ("rows", "tiles", "threads", "parts", "lanes")
