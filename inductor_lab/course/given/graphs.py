"""The values of a program as data (`graph_data.py`); they need no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ref:
    """A value that an earlier node makes, or an input."""

    name: str


@dataclass(frozen=True)
class Node:
    """One operator: `aten.mul.Tensor`, `operator.add`, or `constant` with its one argument."""

    name: str
    target: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Graph:
    """A program: names of its inputs, its nodes in order, and what it returns."""

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    output: Any
