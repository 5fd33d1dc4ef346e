"""New calls in a graph: where they stand, what they stand for, and the facts of their results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import Node

from inductor_lab.torch_api import OpOverload


class Adder:
    """Adds calls before a node; they stand for what `consumed` stood for, in the place of the
    first of these."""

    def __init__(self, before: Node, consumed: list[Node]) -> None:
        self.before = before
        names = (name for node in consumed for name in node.meta.get("lab_from", ()))
        self.meta = {**consumed[0].meta, "lab_from": tuple(dict.fromkeys(names))}

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        with self.before.graph.inserting_before(self.before):
            new = self.before.graph.call_function(target, args, kwargs)
        new.meta = dict(self.meta)
        new.meta["val"] = computed(new)
        return new


def computed(node: Node) -> Any:
    """The facts of a node's result, from those of its operands; None where it cannot be asked."""
    if node.target is not operator.getitem and not isinstance(node.target, OpOverload):
        return None
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    fakes = (n.meta["val"] for n in (*node.all_input_nodes, node))
    mode: Any = next(getattr(fake, "fake_mode", None) for fake in flat(fakes))
    function: Callable[..., Any] = node.target
    with mode:
        return function(*args, **kwargs)


def flat(values: Any) -> Iterator[torch.Tensor]:
    """The tensors among some values, and inside of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from flat(value)
