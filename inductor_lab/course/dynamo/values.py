"""What the interpreter knows of a value: a tensor of the graph, or a Python value with its guards.

    L['x'] is a tensor   →  Traced(node x, shape and dtype), guard: tensor_match(L['x'], ...)
    L['n'] is the int 3  →  3,                               guard: L['n'] == 3

TorchDynamo: `variables/` (VariableTracker), `guards.py`, `source.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

PLAIN = (int, float, bool, str, bytes, type(None), torch.dtype, torch.device)
"""Types of which the value is guarded; of other objects it is the identity."""


class Break(Exception):
    """The graph ends here: what follows must be done by Python."""


@dataclass(eq=False)
class Traced:
    """A tensor of the graph that is being written.

    node   the node that makes it
    like   a tensor without data ("meta"), of its shape and dtype
    """

    node: fx.Node
    like: torch.Tensor


@dataclass(frozen=True, eq=False)
class Method:
    """`x.sin`, before it is called."""

    owner: Traced
    name: str


@dataclass(frozen=True, eq=False)
class Loop:
    """An iterator as a value: the items, and how many were taken."""

    items: tuple[Any, ...] | range
    taken: int = 0


NULL = object()
"""The value that the bytecode pushes next to a callable."""


@dataclass
class Guards:
    """Conditions as Python text over L (locals) and G (globals).

    What a guard names by its identity is kept alive: an id may not be given to another object.
    """

    conditions: list[str] = field(default_factory=list)
    alive: list[Any] = field(default_factory=list)

    def add(self, condition: str) -> None:
        if condition not in self.conditions:
            self.conditions.append(condition)

    def first_failed(self, scope: Mapping[str, Any]) -> str | None:
        """The first condition that does not hold; None if all do.

        One that cannot even be asked (a list has become shorter) does not hold.
        """
        for condition in self.conditions:
            try:
                if not eval(condition, {**_KNOWN, **scope}):
                    return condition
            except (KeyError, IndexError, AttributeError, TypeError):
                return condition
        return None


def tensor_match(
    value: object, dtype: torch.dtype, size: tuple[int, ...], stride: tuple[int, ...], grad: bool
) -> bool:
    """Would the graph written for this kind of tensor be the same?"""
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.device.type == "cpu"  # type: ignore[attr-defined]
        and value.dtype == dtype  # type: ignore[attr-defined]
        and tuple(value.shape) == size  # type: ignore[attr-defined]
        and value.stride() == stride  # type: ignore[attr-defined]
        and value.requires_grad == grad  # type: ignore[attr-defined]
    )


_KNOWN = {**vars(math), "torch": torch, "device": torch.device, "tensor_match": tensor_match}


class Inputs:
    """Wraps what a frame starts with, each at the moment it is read for the first time.

    sources   the tensor in the graph → the text that fetches it in a later call
    """

    def __init__(self, graph: fx.Graph, guards: Guards) -> None:
        self.graph, self.guards = graph, guards
        self.sources: dict[Traced, str] = {}
        self._seen: dict[int, Traced] = {}

    def wrapped(self, value: Any, source: str, name: str) -> Any:
        """The value as the interpreter sees it, with the guards that this needs."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, source, name)
        if isinstance(value, list | tuple) and type(value) in (list, tuple, torch.Size):
            self.guards.add(f"type({source}).__name__ == {type(value).__name__!r}")
            self.guards.add(f"len({source}) == {len(value)}")
            items = [
                self.wrapped(item, f"{source}[{n}]", f"{name}_{n}") for n, item in enumerate(value)
            ]
            return items if isinstance(value, list) else type(value)(items)
        if isinstance(value, PLAIN):
            self.guards.add(f"type({source}).__name__ == {type(value).__name__!r}")
            self.guards.add(_equal(value, source))
        else:
            self.guards.add(f"id({source}) == {id(value)}")
            self.guards.alive.append(value)
        return value

    def _tensor(self, value: torch.Tensor, source: str, name: str) -> Traced:
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.device.type != "cpu":
            raise Break(f"{source} is a tensor of a kind that is not known here")
        if id(value) in self._seen:  # one tensor under two names: writing to one changes both
            first = self._seen[id(value)]
            self.guards.add(f"{source} is {self.sources[first]}")
            return first
        facts = (value.dtype, tuple(value.shape), value.stride(), value.requires_grad)
        self.guards.add(f"tensor_match({source}, {', '.join(map(repr, facts))})")
        for other in self.sources.values():
            self.guards.add(f"{source} is not {other}")
        with self.graph.inserting_before(self._first_operation()):
            node = self.graph.placeholder(name)
        like = torch.empty_strided(facts[1], facts[2], dtype=value.dtype, device="meta")
        traced = Traced(node, like.requires_grad_(value.requires_grad))
        self.sources[traced] = source
        self._seen[id(value)] = traced
        return traced

    def _first_operation(self) -> fx.Node:
        """Placeholders stand before all else."""
        nodes = (node for node in self.graph.nodes if node.op != "placeholder")
        return next(nodes, self.graph._root)


def _equal(value: Any, source: str) -> str:
    if value is None or isinstance(value, bool):
        return f"{source} is {value}"
    return f"{source} == {value!r}"


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Lists, tuples, slices, loops and methods rebuilt with what is inside changed."""
    if type(value) in (list, tuple):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, slice):
        return slice(*(mapped(part, change) for part in (value.start, value.stop, value.step)))
    if isinstance(value, Loop):
        return Loop(mapped(value.items, change), value.taken)
    if isinstance(value, Method):
        owner = change(value.owner)
        return getattr(owner, value.name) if isinstance(owner, torch.Tensor) else value
    return change(value)


def traced_in(value: Any) -> list[Traced]:
    """Every tensor of the graph inside a value, once."""
    found: dict[Traced, None] = {}
    mapped(value, lambda v: found.setdefault(v) if isinstance(v, Traced) else None)
    return list(found)
