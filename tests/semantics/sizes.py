"""Functions of tensors whose sizes change between calls, with inputs of a given size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from tests.semantics.compare import wave

EVERY = (7, 64, 2, 1, 0, 1000)


@dataclass(frozen=True)
class Case:
    function: Callable[..., Any]
    make: Callable[[int], tuple[Any, ...]]
    sizes: tuple[int, ...]


CASES: dict[str, Case] = {}


def case(make: Callable[[int], tuple[Any, ...]], sizes: tuple[int, ...] = EVERY) -> Any:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        if function.__name__ in CASES:
            raise ValueError(f"two cases are called {function.__name__}")
        CASES[function.__name__] = Case(function, make, sizes)
        return function

    return add


def vector(n: int) -> tuple[torch.Tensor]:
    return (wave(n),)


def rows(n: int) -> tuple[torch.Tensor]:
    return (wave(n, 6),)


def columns(n: int) -> tuple[torch.Tensor]:
    return (wave(6, n),)


def square(n: int) -> tuple[torch.Tensor]:
    return (wave(min(n, 30), min(n, 30)),)


def signals(n: int) -> tuple[torch.Tensor]:
    return (wave(2, 3, n),)


@case(vector)
def pointwise(x):
    return x * 2 + 1


@case(vector)
def full_reductions(x):
    return x.mean(), x.sum(), x.var()


@case(vector, (7, 64, 2, 1, 1000))
def extremes(x):
    return x.amax(), x.argmax(), x.max(0).values


@case(vector)
def sizes_as_values(x):
    return x * x.shape[0] + x.shape[0] / 3 + x.numel() ** 0.5


@case(rows)
def softmaxes(x):
    return x.softmax(0), x.softmax(1)


@case(columns)
def layer_norm(x):
    return F.layer_norm(x, (x.shape[1],))


@case(rows)
def views(x):
    pairs = x.view(-1, 2, 3).transpose(0, 1) + 1
    return x.reshape(-1) * 2, pairs, x.t().reshape(-1) + 1


@case(vector, (8, 64, 4, 12, 100, 1000))
def views_that_divide_a_size(x):
    odd = x.view(2, -1, 2).permute(2, 1, 0).reshape(-1) * 2
    return x.view(4, -1).sum(0), x.view(-1, 4).softmax(1), odd


@case(rows)
def cat(x):
    return torch.cat([x, x * 2, x[1:]], 0), torch.cat([x, x.sin()], 1)


@case(vector)
def stack_and_repeat(x):
    both = torch.stack([x, x + 1]), torch.stack([x, x + 1], 1)
    return *both, x.repeat(2), x.repeat_interleave(2), x.tile(3, 2)


@case(rows)
def pad(x):
    return F.pad(x, (1, 2, 3, 0)), F.pad(x, (0, x.shape[0]))


@case(vector)
def arange(x):
    n = x.shape[0]
    return torch.arange(n) * 2, torch.arange(0, n, 2), torch.full((n, 2), n), torch.ones(n)


@case(vector)
def slices(x):
    half = x.shape[0] // 2
    return x[:half] + 1, x[half:] * 2, x[::2] * 3, x[:-1] + 0


@case(vector)
def writes_a_slice(x):
    y = torch.zeros(x.shape[0] + 3)
    y[1 : 1 + x.shape[0]] = x
    return y


@case(vector)
def writes_its_input(x):
    x.add_(x.shape[0])
    return x.view(1, -1)


@case(rows)
def matmuls(x):
    return x @ x.t(), x.t() @ x


@case(square)
def triangles(x):
    return x.tril() + x.triu(1), x.diagonal() * 2, torch.eye(x.shape[0]) + x


@case(rows)
def scans(x):
    return x.cumsum(0), x.cumsum(1)


@case(vector, (7, 64, 2, 1000))
def flip_and_roll(x):
    return x.flip(0) + 1, x.roll(1) + 1, x.roll(x.shape[0] // 2)


@case(lambda n: (wave(2, 5, n, 3).to(memory_format=torch.channels_last),))
def roll_with_channels_last(x):
    return x.roll(1, 0), x.roll((-1, 1), (3, 1)) + 1


@case(rows)
def split(x):
    return x.split(2, 1), x.chunk(2, 0), x.unbind(1)


@case(lambda n: (wave(n, 8)[:, 1:7].t(),))
def strided_input(x):
    return x * 2, x.sum(0), x.contiguous()


@case(rows)
def strides_as_values(x):
    return x * x.stride(0), x.as_strided((x.shape[0],), (6,), 2) + 1


@case(rows)
def sizes_from_values(x):
    return x[x > 0], torch.nonzero(x)


@case(rows, (7, 64, 2, 1, 1000))
def sort(x):
    return x.sort(0), x.topk(2, 1)


@case(signals, (7, 64, 2, 100))
def pools(x):
    wide = F.interpolate(x, scale_factor=2.0)
    return F.max_pool1d(x, 2), F.avg_pool1d(x, 2, 2), wide, F.adaptive_avg_pool1d(x, 2)


@case(lambda n: (wave(2, 1, n, 6),), (7, 64, 2, 100))
def fractional_scale(x):
    """Sizes that are rounded from floats: int(1.7 * n)."""
    return F.interpolate(x, scale_factor=1.7, mode="bilinear"), x.new_ones(int(x.shape[2] * 1.7))


@case(signals, (7, 64, 3, 100))
def convolution(x):
    narrow = F.conv1d(x, torch.ones(4, 3, 3), padding=1).relu()
    return narrow, F.group_norm(x, 3), F.pad(x, (1, 1), mode="reflect")


@case(signals, (7, 64, 2, 100))
def batch_norm(x):
    return F.batch_norm(x, None, None, training=True)


@case(lambda n: (torch.arange(n) % 5, wave(5, 4)))
def embedding(tokens, weight):
    return F.embedding(tokens, weight)


@case(lambda n: (wave(1, 2, n, 8),), (7, 64, 2, 1, 100))
def attention(x):
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@case(lambda n: (wave(n), n))
def takes_an_int(x, n):
    return x * n + n


@case(lambda n: (wave(n), n * 0.5))
def takes_a_float(x, number):
    return x * number + number
