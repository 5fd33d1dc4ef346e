"""Sizes and numbers that vary between calls."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.programs.reports.case import count, made, report, wave

Tensor = torch.Tensor
EXPONENT = "an exponent that varies"
SIZES = "sizes that vary"
NUMBERS = [(wave(4).abs() + 0.5, n) for n in (2, 3, 5, 1, 0, -2)]


def numbers() -> Any:
    return [(x.clone(), n) for x, n in NUMBERS]


@report(EXPONENT, numbers)
def one_less_than_an_integer(x: Tensor, n: int) -> Any:
    return x ** (n - 1)


@report(EXPONENT, numbers, dynamic=True)
def a_sum_of_symbols_as_an_exponent(x: Tensor, n: int) -> Any:
    return x ** (n + x.shape[0]), torch.pow(x, 2 * n), x.pow(n)


@report(EXPONENT, numbers, dynamic=True)
def a_number_to_a_varying_tensor(x: Tensor, n: int) -> Any:
    return 2 ** (x * n), torch.pow(n, x), (n - 1) ** x


@report(EXPONENT, numbers, dynamic=True)
def written_powers(x: Tensor, n: int) -> Any:
    y = x.clone()
    y.pow_(n - 1)
    return y, torch.float_power(x, n - 1)


@report(EXPONENT, numbers, dynamic=True, gradients=True)
def powers_with_gradients(x: Tensor, n: int) -> Any:
    return x ** (n - 1)


@report(EXPONENT, lambda: [(torch.arange(1, 5), n) for n in (2, 3, 4)], dynamic=True)
def powers_of_integers(x: Tensor, n: int) -> Any:
    return x ** (n - 1), x**n


@report(EXPONENT, lambda: [(wave(4).abs(), float(n) / 2) for n in (2, 3, 5, 1)], dynamic=True)
def powers_of_varying_floats(x: Tensor, n: float) -> Any:
    return x ** (n - 0.5), x**n, x ** (-n)


@report(EXPONENT, lambda: [(wave(4), n) for n in (2, 3, 4)], dynamic=True)
def powers_of_sizes(x: Tensor, n: int) -> Any:
    return x * n**2, x.new_zeros(n**2), x * 2 ** (n - 1)


def rows(*many: int) -> Any:
    return lambda: [(wave(n, 6),) for n in many]


@report(SIZES, rows(4, 2, 7), dynamic=True)
def strides_and_sizes_in_arithmetic(x: Tensor) -> Any:
    return x.reshape(-1, 3) * x.stride(0), x.new_full((x.shape[0] // 2 + 1,), x.numel())


@report(SIZES, rows(4, 1, 7, 0))
def from_many_to_one_to_none(x: Tensor) -> Any:
    return x.sum(0), x.cumsum(0), F.pad(x, (1, 1, 2, 0)), x.mean(1)


@report(SIZES, rows(6, 9, 12), dynamic=True)
def reshapes_by_a_third(x: Tensor) -> Any:
    return x.view(3, -1, 6).amax(1), x.unflatten(0, (-1, 3)).sum(1)


@report(SIZES, rows(5, 6, 3), dynamic=True)
def strided_by_symbols(x: Tensor) -> Any:
    return x.as_strided((x.shape[0] - 1, 6), (6, 1), 6), x[:: x.shape[0] - 1]


@report(SIZES, lambda: [(count(n),) for n in (7, 4, 9)], dynamic=True)
def floors_and_remainders(x: Tensor) -> Any:
    n = x.shape[0]
    return x + n // 2, x * (n % 3), x / n, x[: -(n // 3)], x + (n - 8) // 3, x + round(n / 2)


@report(SIZES, lambda: [(count(n), k) for n, k in ((7, 2), (7, -3), (9, 0))], dynamic=True)
def rolls_and_slices_by_numbers(x: Tensor, k: int) -> Any:
    return x.roll(k), x[k:], x[:k], x.narrow(0, abs(k), 2), x[-k - 1]


@report(SIZES, lambda: [(torch.tensor([3, 0, 2, n]),) for n in (1, 4, 2)])
def as_many_as_a_tensor_says(x: Tensor) -> Any:
    n = int(x.sum())
    return torch.arange(n), x.repeat_interleave(x), torch.zeros(n + 1).add(n)


@report(SIZES, lambda: [(wave(n).ge(0),) for n in (5, 8, 5)])
def nonzeros(x: Tensor) -> Any:
    i = x.nonzero()
    return i, i.shape[0] * 2, x[x], torch.masked_select(x.float(), x)


@report(SIZES, made((3, 5)), dynamic=True)
def split_by_sizes(x: Tensor) -> Any:
    a, b = x.split([2, x.shape[1] - 2], 1)
    return a.sum(1, keepdim=True) + b, torch.tensor_split(x, 2, 1)[1]


@report(SIZES, lambda: [(wave(2, 3, n, n),) for n in (4, 5, 8)], dynamic=True)
def adaptive_pools(x: Tensor) -> Any:
    return F.adaptive_avg_pool2d(x, 2), F.adaptive_max_pool2d(x, (3, None)), F.unfold(x, 2)


@report(SIZES, lambda: [(wave(2, n, 8),) for n in (4, 5, 9)], dynamic=True, gradients=True)
def attention_of_any_length(x: Tensor) -> Any:
    n = x.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
