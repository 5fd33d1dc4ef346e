"""A small function for each seeded fault, with arguments for which the fault shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

F = torch.nn.functional


class Example(NamedTuple):
    """With `options`, the fault affects `function(*arguments)` at the line with the text `line`."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    line: str
    options: dict[str, Any] = {}


def _random(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _whole(high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(high, shape, generator=generator).to(dtype)


def bytes_turned() -> Example:
    """`-x` of unsigned bytes, then a maximum."""

    def foo(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        a = torch.neg(x1)
        b = torch.maximum(x2, a)
        return torch.cat([b], dim=0)

    given = _whole(256, 1, 8, dtype=torch.uint8), _whole(256, 8390, 8, dtype=torch.uint8)
    return Example(foo, given, "a = torch.neg(x1)")


def best_of_two() -> Example:
    def best(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.maximum(x, y)
        return z * 2 + 1

    x = _random(300)
    x[7] = float("nan")
    return Example(best, (x, _random(300, seed=3)), "z = torch.maximum(x, y)")


def squashed() -> Example:
    def squash(x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x)
        return y * 2

    return Example(squash, (_random(5, 21),), "y = torch.tanh(x)")


def direction() -> Example:
    def angle(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        back = -x
        return torch.atan2(y, back)

    x, y = _random(64), torch.zeros(64)
    x[5] = 0.0
    return Example(angle, (x, y), "back = -x")


def page_numbers() -> Example:
    def pages(x: torch.Tensor) -> torch.Tensor:
        page = x // 8
        return page * 8 - x

    return Example(pages, (torch.arange(-40, 40),), "page = x // 8")


def squares() -> Example:
    def area(width: torch.Tensor, height: torch.Tensor) -> torch.Tensor:
        pixels = width * height
        return pixels + 1

    side = torch.full((33,), 70_000)
    return Example(area, (side, side + 1), "pixels = width * height")


def average() -> Example:
    def level(x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(-1)
        return mean + 1

    return Example(level, ((_random(16, 5000).abs() + 1000).half(),), "mean = x.mean(-1)")


def nearest() -> Example:
    def top(x: torch.Tensor) -> torch.Tensor:
        high = x.amax(-1)
        return high * 3

    given = -_random(16, 1000).abs() - 1
    return Example(top, (given,), "high = x.amax(-1)", {"language": "triton"})


def rows() -> Example:
    def normalize(x: torch.Tensor) -> torch.Tensor:
        total = x.sum(-1)
        return total.sqrt()

    return Example(normalize, (_random(129, 70).abs(),), "total = x.sum(-1)")


def long_rows() -> Example:
    def energies(x: torch.Tensor) -> torch.Tensor:
        energy = (x * x).sum(-1)
        return energy / 2

    return Example(energies, (_random(7, 1030) + 1,), "energy = (x * x).sum(-1)")


def histogram() -> Example:
    def collect(bins: torch.Tensor, where: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        filled = bins.index_add(0, where, x)
        return filled * 2

    given = torch.zeros(4), _whole(4, 400_000), torch.ones(400_000)
    return Example(collect, given, "filled = bins.index_add(0, where, x)")


def total() -> Example:
    def energy(x: torch.Tensor) -> torch.Tensor:
        whole = (x * x).sum()
        return whole / 2

    uneven = _random(1_000_000) * 100 * torch.linspace(0, 1, 1_000_000) ** 3
    return Example(energy, (uneven,), "whole = (x * x).sum()")


def slice_of() -> Example:
    def wave(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        return y + 1

    return Example(wave, (_random(4097)[1:],), "y = torch.sin(x)")


def mixed_twice() -> Example:
    def mix(x: torch.Tensor) -> torch.Tensor:
        a = torch.sin(x)
        b = a @ a
        c = torch.cos(b)
        d = c @ a
        return d + b

    return Example(mix, (_random(80, 80),), "a = torch.sin(x)")


def counter() -> Example:
    def step(state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        state.add_(x)
        return state * 2

    return Example(step, (_random(50), _random(50, seed=5)), "state.add_(x)")


def turned() -> Example:
    def outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x.t() + y
        return z * 2

    return Example(outer, (_random(24, 24), _random(24, 24, seed=6)), "z = x.t() + y")


def swish() -> Example:
    def act(x: torch.Tensor) -> torch.Tensor:
        y = F.silu(x)
        return y + 1

    return Example(act, (_random(40, 9),), "y = F.silu(x)")


def cubes() -> Example:
    def volume(x: torch.Tensor) -> torch.Tensor:
        v = x**3
        return v + 1

    return Example(volume, (_random(90),), "v = x**3")


def chain() -> Example:
    def twice(x: torch.Tensor) -> torch.Tensor:
        y = torch.exp(torch.sin(x))
        return y.sum(-1)

    return Example(twice, (_random(30, 31),), "y = torch.exp(torch.sin(x))")


def trained() -> Example:
    def loss(x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x)
        return (y * 3).sum()

    return Example(loss, (_random(20, 20).requires_grad_(),), "y = torch.tanh(x)")


def recomputed() -> Example:
    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a = torch.sin(x)
        b = torch.exp(a) * y
        return (b * b).sum()

    given = _random(20, 20).requires_grad_(), _random(20, 20, seed=8).requires_grad_()
    return Example(loss, given, "a = torch.sin(x)")


class Setting:
    """An object that a compiled function depends on, besides its arguments."""

    def __init__(self, scale: float) -> None:
        self.scale = scale


def scaled() -> Example:
    """A function that the test and the notebook call a second time with another number."""

    def times(x: torch.Tensor, setting: Setting) -> torch.Tensor:
        y = x * setting.scale
        return y + 1

    return Example(times, (_random(30), Setting(2.0)), "y = x * setting.scale")
