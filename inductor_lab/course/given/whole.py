"""Lab 12: programs, and pairs and series of calls, for predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.api.backend import inspect
from inductor_lab.api.override import override
from inductor_lab.compiler.rewrite.aten.identities import RULES, Edit, identity
from inductor_lab.course.given.graph_data import graph_data
from inductor_lab.course.given.graphs import Graph

aten = torch.ops.aten


def wave(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return ((x + 1) * 2).sin()


def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, -1)


def two_sums(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sum(0), x.sum(1)


def perceptron(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w) @ w


def waiting(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x / x.sum()


FIVE = (wave, attend, two_sums, perceptron, waiting)
"""Programs of x and w, 64 x 64 floats each: 16,384 bytes."""


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(64, 64, generator=draw), torch.randn(64, 64, generator=draw)


@dataclass(frozen=True)
class Calls:
    """A function, and the calls that are made of it, one after the other."""

    name: str
    function: Callable[..., Any]
    calls: tuple[tuple[Any, ...], ...]

    def described(self) -> list[str]:
        """The arguments of each call, in short."""
        return [", ".join(map(in_short, arguments)) for arguments in self.calls]


def in_short(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return str(value)
    shape = "x".join(map(str, value.shape))
    more = "" if value.is_contiguous() else ".t()"
    return f"{str(value.dtype)[6:]} {shape}{more}{' grad' if value.requires_grad else ''}"


def scaled(x: torch.Tensor, n: int | float) -> torch.Tensor:
    return x * n


def branched(x: torch.Tensor, flag: bool) -> torch.Tensor:
    return x.sin() if flag else x.cos()


def printed(x: torch.Tensor, n: int) -> torch.Tensor:
    y = x.sin()
    print(end="")
    return y.cos() * n


_TWO, _THREE, _FOUR = torch.ones(2, 4), torch.ones(3, 4), torch.ones(4, 4)


SECONDS = (
    Calls("other_data", scaled, ((_TWO, 2), (_TWO + 1, 2))),
    Calls("other_dtype", scaled, ((_TWO, 2), (_TWO.double(), 2))),
    Calls("other_size", scaled, ((_TWO, 2), (_THREE, 2))),
    Calls("other_flag", branched, ((_TWO, True), (_TWO, False))),
    Calls("other_layout", scaled, ((_FOUR, 2), (_FOUR.t(), 2))),
    Calls("needs_gradient", scaled, ((_TWO, 2), (_TWO.clone().requires_grad_(), 2))),
)
"""Two calls each: does what was compiled for the first serve the second?"""


SERIES = (
    Calls("sizes", scaled, ((_TWO, 2), (_THREE, 2), (_FOUR, 2), (torch.ones(5, 4), 2))),
    Calls("flags", branched, ((_TWO, True), (_TWO, False), (_TWO, True), (_TWO, False))),
    Calls("broken", printed, ((_TWO, 2), (_TWO, 2))),
    Calls("numbers", scaled, ((_TWO, 2), (_TWO, 3), (_TWO, 4), (_TWO, 5))),
)
"""Several calls each: how many graphs are compiled?"""


def pooled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh((x @ w).mean(0))


def over_columns(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh((x @ w).mean(1))


def squashed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ w).mean(0)


def kept(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).mean(0, keepdim=True) + 1


POOLING = (pooled, over_columns, squashed, kept)
"""Programs of x [128, 32] and w [32, 48]; the rule applies to the first, and may to the last."""


def tokens() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(128, 32, generator=draw), torch.randn(32, 48, generator=draw)


class Edits:
    """`add(operator, *arguments)`: a new node, which knows its own shape."""

    def __init__(self, edit: Edit) -> None:
        self._edit = edit

    def add(self, target: Any, *args: Any) -> torch.fx.Node:
        """Add the node; raises what the operator raises for such arguments."""
        new = self._edit.add(target, *args)
        new.meta["val"] = target(*torch.fx.map_arg(args, lambda node: node.meta["val"]))
        return new


def with_rule(rule: Callable[..., Any], function: Callable[..., Any], *args: Any) -> Any:
    """Compile with one more rewrite rule, which is asked for each mean."""

    def mean_first(node: torch.fx.Node, edit: Edit) -> Any:
        return rule(node, Edits(edit))

    with override(rewrite={name: RULES[name] for name in RULES}):
        identity(aten.mean.dim)(mean_first)
        return inspect(function, *args)


def rewritten(rule: Callable[..., Any], name: str) -> Graph:
    """The compiler's graph of one of POOLING, with one more rewrite rule."""
    (function,) = (each for each in POOLING if each.__name__ == name)
    found = with_rule(rule, function, *tokens())
    return graph_data(found.graphs[0].forward.rewrites.module)
