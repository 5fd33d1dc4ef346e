"""Pairs of programs: what a contract was written for, and a change that breaks it.

Each has the fact that changes and a part of the line that causes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Function = Callable[..., Any]


@dataclass(frozen=True)
class Regression:
    name: str
    before: Function
    after: Function
    args: tuple[tuple[Any, ...], ...]
    fact: str
    line: str


def rows(*sizes: int) -> tuple[Any, ...]:
    return (torch.linspace(-1, 1, torch.Size(sizes).numel()).reshape(sizes),)


ONE = (rows(16, 32),)
SEVERAL = (rows(16, 32), rows(8, 32), rows(4, 32))


def pointwise(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    return y * x


def printed(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    print("half way")
    return y * x


def branch_on_data(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    if y.sum() > 0:
        y = y + 1
    return y * x


def broken_twice(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    torch._dynamo.graph_break()
    y = y + 2
    torch._dynamo.graph_break()
    return y * x


def to_list(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    scale = y[0].tolist()[0]
    return y * x * scale


def uses_numpy_random(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    y = torch.compiler.disable(torch.neg)(y)
    return y * x


def sorted_rows(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    y = y.sort(-1).values
    return y * x


def product(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    y = y @ x.mT
    return y.relu()


def product_twice(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    y = y @ x.mT
    y = y @ y
    return y.relu()


def softmax(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    return y * 2


def softmax_of_columns(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    y = y.softmax(0)
    return y * 2


def normalized(x: torch.Tensor) -> torch.Tensor:
    y = F.layer_norm(x, (x.shape[-1],))
    return y.relu()


def normalized_in_columns(x: torch.Tensor) -> torch.Tensor:
    y = F.layer_norm(x, (x.shape[-1],))
    y = (y - y.mean(0)) / (y.var(0) + 1e-5).sqrt()
    return y.relu()


def in_double(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    y = y.double()
    return y * 2


def two_results(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.softmax(-1)
    z = y.exp()
    return y * 2, z


def outer(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    y = y[:, :, None] * y[:, None, :]
    return y.sum(-1) * 2


def outer_kept(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    y = y[:, :, None] * y[:, None, :]
    return y * 2


def cumulated(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    y = y.cumsum(0)
    return y * 2


def spectrum(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    y = torch.fft.fft(y).real
    return y * 2


def quantiles(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    y = y.topk(4, -1).values
    return y * 2


def by_size(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    return y + x.shape[0]


def by_size_of_rows(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if x.shape[0] > 6:
        y = y.relu()
    return y + x.shape[0]


def by_list_of_size(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    table = [1.0, 2.0, 3.0] * 10
    y = y * table[x.shape[0]]
    return y + x.shape[0]


def by_even_size(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y = y.sin() if x.shape[0] % 8 == 0 else y.cos()
    return y + x.shape[0]


def with_rate(x: torch.Tensor, rate: float) -> torch.Tensor:
    y = x * 2
    return y + 1


def with_rate_used(x: torch.Tensor, rate: float) -> torch.Tensor:
    y = x * 2
    y = y * rate if rate > 0.15 else y
    return y + 1


def with_word(x: torch.Tensor, word: str) -> torch.Tensor:
    y = x * 2
    return y + 1


def with_word_used(x: torch.Tensor, word: str) -> torch.Tensor:
    y = x * 2
    y = y.sin() if word == "a" else y.cos()
    return y + 1


def wrong_constant(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    if torch.compiler.is_compiling():
        y = y + 1e-3
    return y * 2


def writes_its_argument(x: torch.Tensor) -> torch.Tensor:
    y = x.softmax(-1)
    if torch.compiler.is_compiling():
        x.add_(1)
    return y * 2


RATES = tuple((*rows(8, 8), rate) for rate in (0.1, 0.2, 0.3))
WORDS = tuple((*rows(8, 8), word) for word in ("a", "b", "c"))

REGRESSIONS = [
    Regression("print", pointwise, printed, ONE, "breaks", "print("),
    Regression("branch on data", pointwise, branch_on_data, ONE, "breaks", "if y.sum() > 0:"),
    Regression("two breaks", pointwise, broken_twice, ONE, "graphs", "y = y + 2"),
    Regression("a number of a tensor", pointwise, to_list, ONE, "kernels", "tolist()"),
    Regression("disabled", pointwise, uses_numpy_random, ONE, "graphs", "disable(torch.neg)"),
    Regression("sort", pointwise, sorted_rows, ONE, "library_calls", "y.sort(-1)"),
    Regression("one more product", product, product_twice, ONE, "library_calls", "y = y @ y"),
    Regression("sort is not generated", pointwise, sorted_rows, ONE, "generated", "y.sort(-1)"),
    Regression("columns too", softmax, softmax_of_columns, ONE, "kernels", "y.softmax(0)"),
    Regression("norm of columns", normalized, normalized_in_columns, ONE, "kernels", "y.var(0)"),
    Regression("double", softmax, in_double, ONE, "bytes", "y.double()"),
    Regression("another result", softmax, two_results, ONE, "bytes", "z = y.exp()"),
    Regression("its peak", softmax, two_results, ONE, "peak", "z = y.exp()"),
    Regression("outer product", outer, outer_kept, ONE, "peak", "return y * 2"),
    Regression("outer product's traffic", outer, outer_kept, ONE, "bytes", "return y * 2"),
    Regression("cumulated", softmax, cumulated, ONE, "kernels", "y.cumsum(0)"),
    Regression("spectrum", softmax, spectrum, ONE, "library_calls", "torch.fft.fft"),
    Regression("largest", softmax, quantiles, ONE, "library_calls", "y.topk(4"),
    Regression("a branch on a size", by_size, by_size_of_rows, SEVERAL, "recompiles", "> 6:"),
    Regression("a table by size", by_size, by_list_of_size, SEVERAL, "recompiles", "table[x.sh"),
    Regression("a size modulo 8", by_size, by_even_size, SEVERAL, "recompiles", "% 8 == 0"),
    Regression("a float", with_rate, with_rate_used, RATES, "recompiles", "rate > 0.15"),
    Regression("a string", with_word, with_word_used, WORDS, "recompiles", 'word == "a"'),
    Regression("a wrong result", softmax, wrong_constant, ONE, "agrees", "y = y + 1e-3"),
    Regression("a wrong write", softmax, writes_its_argument, ONE, "agrees", "x.add_(1)"),
]
