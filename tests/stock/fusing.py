"""Programs whose pairs stock fuses or does not fuse, and the rule that decides on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Program:
    """A function with its arguments; `pairs` has two values, and a rule or None if stock fuses
    them."""

    name: str
    run: Callable[..., Any]
    sizes: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[str, str, str | None], ...]
    trained: bool = False
    settings: Mapping[str, int] = field(default_factory=dict)

    def arguments(self) -> list[torch.Tensor]:
        torch.manual_seed(0)
        return [torch.randn(*size, requires_grad=self.trained) for size in self.sizes]


def chain(x, y):
    a = x.exp() + 1
    total = a.sum(1)
    scaled = a / total[:, None]
    late = torch.mm(scaled, y)
    return late.relu(), (x * 2).sum(1), y.cos()


def transposed(x):
    first = x.sin()
    second = first.t().contiguous() + 1
    third = torch.softmax(x, -1).sum(0)
    return first, second, third


def written(x, y):
    before = x.tanh()
    x.mul_(2)
    taken = y.sigmoid()[:, :16].cumsum(0)
    return before, x.erf(), taken, torch.cat([y, before])


def broken(x):
    first = x.sin() + 1
    torch._dynamo.graph_break()
    return first.cos() * 2


def trained(x, w):
    return torch.softmax(x @ w, -1).log().mean()


def indexed(x, y):
    rows = torch.arange(x.shape[0] - 1, -1, -1)
    gathered = x.exp()[rows]
    return gathered, x.sum(), x.abs().amax(0), (x - x.mean()).sqrt(), y.sin(), y.flatten().cos()


def many(x):
    return [(x + number).sin() for number in range(20)]


def limited(x):
    return x.sin(), x.cos(), x.exp()


PROGRAMS = (
    Program("chain", chain, ((64, 32), (32, 32)), (
        ("sum_1", "div", None),  # vertical, in the outer loop of a reduction
        ("exp", "sum_1", "same_iteration_space"),
        ("add", "div", "intermediate_node"),
        ("div", "buf3", "library_call"),
        ("buf3", "relu", "library_call"),
        ("sum_2", "cos", "no_shared_data"),
    )),
    Program("transposed", transposed, ((64, 32),), (
        ("sin", "amax", None),  # horizontal: both read x
        ("exp", "sum_1", None),  # vertical, of a row
        ("sin", "permute", "no_shared_data"),
        ("exp", "sum_2", "no_shared_data"),
    )),
    Program("written", written, ((64, 32), (64, 32)), (
        ("buf0", "buf5", None),  # horizontal: both read y
        ("tanh", "buf9", None),  # x is overwritten in the kernel that reads it
        ("sigmoid", "buf1", "library_call"),
        ("buf5", "buf7", "no_code"),
    )),
    Program("broken", broken, ((64, 32),), (("sin", "cos", "one_graph"),)),
    Program("trained", trained, ((32, 64), (64, 16)), (
        ("amax", "sum_1", None),
        ("buf3", "buf4", "after_reduction"),
        ("g0.forward.buf2", "g0.backward.buf0", "one_graph"),
    ), trained=True),
    Program("indexed", indexed, ((64, 32), (8, 16)), (
        ("buf1", "buf3", None),  # two reductions over everything
        ("buf5", "buf6", None),  # (8, 16) and (128,)
        ("buf3", "sqrt", "after_reduction"),
        ("index", "abs_1", "no_shared_data"),
    )),
    Program("many", many, ((64, 32),), (
        ("buf0", "buf15", None),
        ("buf0", "buf16", "max_horizontal_fusion_size"),
    )),
    Program("limited", limited, ((64, 32),), (
        ("sin", "cos", None),
        ("sin", "exp", "max_fusion_size"),
    ), settings={"max_fusion_size": 2}),
)  # fmt: skip
