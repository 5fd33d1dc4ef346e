"""Lab 2: programs for a rewrite rule, and what the compiler makes of them with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.api.override import override
from inductor_lab.compiler.rewrite.aten.identities import RULES, identity
from inductor_lab.course.given.graph_data import graph_data
from inductor_lab.course.given.graphs import Graph

aten = torch.ops.aten
CHAIN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "abs": torch.abs,
    "neg": torch.neg,
    "sin": torch.sin,
}


def chain(names: Sequence[str]) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function that applies these operators, and doubles."""

    def applied(x: torch.Tensor) -> torch.Tensor:
        for name in names:
            x = CHAIN[name](x)
        return x * 2

    return applied


def rewritten(rule: Callable[..., Any], names: Sequence[str]) -> Graph:
    """The compiler's graph of a chain, with one more rewrite rule, which is asked for each relu."""

    def relu_of_abs(node: Any, edit: Any) -> Any:
        return rule(node, edit)

    with override(rewrite={name: RULES[name] for name in RULES}):
        identity(aten.relu.default)(relu_of_abs)
        found = inspect(chain(names), torch.ones(5))
    return graph_data(found.graphs[0].forward.rewrites.module)
