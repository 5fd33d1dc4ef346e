"""Functions of a Python int or float, which torch makes symbolic when it gets a second value.

`python -m tests.semantics.numbers` checks all functions in all modes; the tests check some.
"""

from __future__ import annotations

import argparse
import linecache
import logging
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F

from tests.semantics.compare import assert_same, leaves, wave

FOUND = """
    a[n] * 2
    a[n]
    a[n:] * 2
    a[-n:] + 1
    a[n:]
    a[n::2] + 1
    a[n - 1:n + 1] * 3
    a[..., n:].sum(1)
    a.select(0, n) + 1
    a.t().select(1, n) + 1
    torch.ones(abs(n), abs(n)).triu(n)
    a.reshape(-1, n).sum(0)
    [x + 1 for x in a.tensor_split([n, 4])]
    a + (n & 3)
    a + (n | 4)
    a * (n ^ 5)
    a + (1 << n)
    a[n & 3] + 1
    a[:n | 1] + 1
    a + abs(n)
    a[:abs(n)] + 1
    a[2 ** abs(n):] + a[:2 ** (n % 9)][:1]
    a + 7 // n
    a + -7 % n
    a / n + 1 / n
    a + round(n / 3, 2)
    F.hardtanh(a, -abs(n) - 1, abs(n) + 1)
    a.gather(0, torch.full((1, 4), n))
    a.scatter(0, torch.full((1, 4), n), 9.0)
    a.index_add(0, torch.tensor([n]), a[:1])
    abs(n) ** a
    torch.arange(8) << (n & 3)
    torch.arange(80) >> abs(n)
    torch.cat([a[:n], a[n:]])
    torch.cat([a[n:], a[:n] * 2]) + 1
    a[-n // 2] + 1
    a[n % -6] + 1
    a.slice_scatter(a[n:n + 2] * 2, 0, n, n + 2)
    a.select_scatter(a[0] * 2, 0, n)
    a.as_strided((2, 2), (1, 4), n) + 1
    (a[n:] + 1, a[:n] * 2, a[-n:].sum())
    a[n:].amax(0)
    a[n:].sort(0).values
    a[-n:][n:] + 1
    a[n - 3:n + 3:2] * 1.5
    n * a[n] + n
    a[n][n % 4] * 2
    a.round(decimals=n)
    a.round(decimals=n * 20)
    torch.addmm(a[:4], a[:4], a[:4], beta=n)
    a.as_strided((2, 2), (n, 1)) + 1
    a.var(correction=n)
    a.std(1, correction=n + 0.5)
    F.adaptive_max_pool1d(a[None], abs(n) % 4)
    F.adaptive_avg_pool2d(a[None], (abs(n) % 3, 2))
    torch.empty(3, 0).fill_diagonal_(n)
    torch.xlogy(n, a.abs() + 1)
    torch.arange(0, 10, abs(n) / 2 + 0.5) + 1
    torch.arange(n / 2, n / 2 + 3)
    torch.arange(n / 2, n / 2 + 3, dtype=torch.int64)
"""

OTHERS = """
    torch.linspace(0, 1, n)
    torch.eye(n) + 1
    torch.diag_embed(a, n)
    a.rot90(n) + 1
    F.one_hot(torch.tensor([0, 1]), n)
    a.cumsum(n)
    a.mean(n, keepdim=True)
    a.transpose(0, n) + 1
    torch.stack([a, a], n)
    F.max_pool1d(a, n)
    F.avg_pool1d(a, 2, n)
    F.conv1d(a[None], torch.ones(2, 6, 2), stride=n)
    F.conv1d(a[None], torch.ones(2, 6, 2), padding=n)
    F.interpolate(a[None], size=n)
    sum((a * i for i in range(n)), a)
    a + (1, 2, 3)[n]
    F.softplus(a, beta=n)
    F.normalize(a, p=n)
    F.cross_entropy(a, torch.tensor([0, 1, 2, 3, 0, 1]), ignore_index=n)
    torch.hann_window(n)
    torch.tril_indices(n, 3)
    torch.vander(a[:, 0], n)
    torch.histc(a, max(n, 1), -1, 1)
    F.adaptive_avg_pool1d(a, n)
    a.diff(n, dim=0)
    a.argmax(n)
    a.softmax(n)
    torch.ones(2, n) @ torch.ones(n, 3)
    torch.linalg.matrix_power(a[:4] * 0.1, n)
    a[:n] + 1
    a[:-n] + 1
    a[n:n + 2] * 3
    a[:, n] * 2 if -4 <= n < 4 else a
    a[n, n] + 1
    a.narrow(0, n, 2) + 1
    a.narrow(0, 1, n) + 1
    a.roll(n, 0) + 1
    torch.roll(a, (n, -n), (0, 1))
    a.roll(n)
    a.flip(0) + n
    torch.arange(n) + 1
    torch.arange(n, 10, 2) * 2
    torch.arange(n, -10, -3) * 2
    torch.arange(0, 20, n) + 1
    torch.arange(0, n * 0.5, 0.25) + 1
    torch.full((n,), 2.5) + 1
    torch.full((3,), n) + 1
    a.new_zeros(n, 2) + 1
    a.view(n, -1) + 1
    a.reshape(-1).unflatten(0, (n, -1)) * 2
    a.repeat(n, 1) + 1
    a.repeat(2, n) + 1
    a[:1].expand(n, 4) * 2
    a.tile(n) + 1
    a.repeat_interleave(n, 0) + 1
    [x + 1 for x in a.split(n)]
    [x + 1 for x in a.chunk(n)]
    [x + 1 for x in a.tensor_split(n)]
    [x + 1 for x in a.split_with_sizes([n, 6 - n])]
    a + ~n
    a + (n << 2)
    a + (n >> 1)
    a + min(n, 4)
    a * max(n, -1)
    a[max(0, min(n, 5)):] + 1
    a + max(n, a.shape[0], 2)
    a[:min(n, a.shape[0])] + n
    a + n // 2
    a + n // -3
    a + n % 3
    a + n % -3
    a + 7 % n
    a + -7 // n
    a + n ** 2
    a + 2.0 ** n
    a[:n ** 2] + n ** 3
    a + divmod(n, 4)[0] + divmod(n, 4)[1]
    a * (n / 2)
    a // n
    a % n
    a.abs() ** n
    torch.arange(10) // n
    torch.arange(10) % n
    a + math.floor(n * 0.7)
    a + math.ceil(n * 0.7)
    a + math.trunc(n * 0.7)
    a + math.fmod(n, 3)
    a[:int(n * 0.7)] + int(n * 0.7)
    a + round(n * 0.7)
    a * float(n)
    a + math.isqrt(abs(n))
    a + math.sqrt(abs(n)) + math.log(abs(n) + 1) + math.log2(abs(n) + 1)
    a + math.sin(n) + math.cos(n) * math.tanh(n) + math.exp(-abs(n))
    torch.full_like(a, math.sqrt(abs(n))) + a.half() * torch.full_like(a, n).half()
    a.half() + torch.full_like(a.half(), n)
    a + math.pow(n, 2)
    a + math.gcd(n, 6)
    a * bool(n)
    a + 1 if n > 2 else a - 1
    a if n == 0 else a / n
    a * (n > 2)
    a + (not n)
    a + (n and 3)
    torch.where(a > 0, n, a)
    torch.where(a > n, 1, n)
    (a > n) | (a == n)
    (a * 5).clamp(n, n + 2)
    a.clamp(min=n * 0.1)
    F.pad(a, (n, 1)) + 1
    F.pad(a, (1, -n))
    F.pad(a, (2, 1), value=n)
    a.unfold(0, n, 1) + 1
    a.unfold(0, 2, n) + 1
    a * (torch.arange(6) < n)[:, None]
    a.masked_fill(torch.arange(4) >= n, 0)
    a.index_select(0, torch.tensor([n, 0]))
    a[torch.tensor([n, 1])]
    a.index_fill(0, torch.tensor([n]), n)
    a.index_put((torch.tensor([n]),), a[0])
    a.tril(n)
    a.triu(n) + 1
    a.diagonal(n) + 1
    torch.diag(a[:, 0], n)
    a.cumsum(n % 2)
    a.sum(n % 2)
    a.transpose(n % 2, 0) + 1
    a.unsqueeze(n % 3) + 1
    a.topk(n, 0).values
    a.kthvalue(n, 0).values
    F.one_hot(torch.arange(4) % 3, n)
    torch.eye(n) + 1
    torch.linspace(0, 1, n)
    torch.linspace(n, 1, 5)
    a.as_strided((n, 2), (1, 4)) + 1
    torch.stack([a] * abs(n) or [a])
    sum((a[i] for i in range(max(0, min(n, 6)))), a[0])
    a[:n].shape[0] + a
    torch.add(a, a, alpha=n)
    n - a
    n / (a + 2)
    torch.tensor(n) + a
    torch.tensor([n, 2 * n, -n]) + 1
    a.new_tensor([n, 1.0]) * 2
    torch.arange(8) & n
    torch.arange(8, dtype=torch.int32) ^ n
    torch.arange(8, dtype=torch.int8) | n
    F.interpolate(a[None], size=n)
    F.adaptive_avg_pool1d(a[None], n)
    F.max_pool1d(a[None], n)
    F.avg_pool1d(a[None], abs(n) % 3 + 1, stride=1)
    F.dropout(a, 0.5, n > 100)
    F.layer_norm(a[:, :n], (a[:, :n].shape[1],))
    a[:-(-n // 2)] + 1
    a[:-(-a.shape[0] // 2)] + n
    a[n % 6] + 1
    a.diagonal_scatter(a.diagonal(n) * 2, n)
    a[:n] @ a.t()
    a[:n].mean()
    a.norm(n)
    a.movedim(n % 2, -1) * 2
    a[:3].roll(n, -1) * 2
    F.huber_loss(a, a * 0, delta=abs(n) + 1.0)
    torch.addmm(a[:, :1], a, a.t(), beta=n)
    a.rot90(n)
    a[n:][:n] + 1
    a + len(f'{n}')
    a[torch.where(torch.arange(2) > 0, n, 0)]
"""

FLOATS = """
    a + round(x, 2)
    a + round(x, 0)
    a + round(x, -1)
    a + round(x)
    a * round(x, 1)
    (a.abs() + 1) ** x if abs(x) < 1000.0 else a
    a + 2 ** min(x, 10.0)
    a + int(x)
    a[:int(x)] + 1
    a + math.floor(x)
    a + math.ceil(x)
    a + math.trunc(x)
    a + math.sqrt(abs(x))
    a + math.fmod(x, 0.7)
    a + x // 1
    a + x // 0.3
    a + x % 1
    a + x % -0.7
    a + abs(x)
    a + min(x, 1.0)
    a + max(x, 0.5)
    a.clamp(x, x + 1)
    a > x
    a * 2 if x > 0 else a - 1
    torch.where(a > 0, x, a)
    torch.full((3,), x)
    a / x if x else a
    x / (a + 2)
    a + math.exp(min(x, 3.0))
    a * math.sin(x)
    a + math.log(abs(x) + 1)
    a + math.tanh(x)
    a * math.isnan(x)
    a + (x == int(x))
    a + divmod(x, 0.5)[0] + divmod(x, 0.5)[1]
    F.leaky_relu(a, x)
    F.elu(a, x)
    F.threshold(a, x, 2.0)
    a.masked_fill(a > 0, x)
    torch.add(a, a, alpha=x)
    a.lerp(a + 1, x)
    a.addcmul(a, a, value=x)
    F.pad(a, (1, 1), value=x)
    F.layer_norm(a, (4,), eps=abs(x) + 0.001)
    torch.arange(0, min(x, 5.0), 0.5)
    torch.linspace(0, x, 4)
    a + round(x * 3.1, 1) + round(x / 7, 3)
    a + math.hypot(x, 2.0)
    a + math.atan2(x, 2.0)
    a + math.copysign(2.0, x)
    (a * x).sum() * x
    -x * a
    a * (x - int(x))
    F.softplus(a, abs(x) + 0.1)
    a[:, int(x) % 4]
    a + x.is_integer()
    a * bool(x)
    a + abs(x + 3) ** (-0.5)
    a + math.cosh(min(abs(x), 3.0))
    a + math.acos(max(-1.0, min(1.0, x)))
    a + math.log2(abs(x) + 1)
    a + math.log10(abs(x) + 1)
"""

STATEMENTS = {
    "b[n] = 7.0": "b", "b[n:] = 7.0": "b", "b[:n] = b[:n] * 2": "b", "a[n] = 7.0": "a + 1",
    "b[-n:] += 1": "b", "b[:, n % 4] = b[:, 0] * 2": "b", "b[n::2] = 1": "b",
    "b[n:][n:] = 2": "b * n",
}  # fmt: skip
"""Writes to `a`, or to a copy `b` of it, and what is returned then."""

LARGE = """
    a + 2 ** (n % 80)
    a[2 ** (n % 90):] + 1
    a * (n * n * n)
    torch.full((3,), n * n)
    torch.arange(3) * (n * n)
    a + (n << 7)
    a * -n
    a + n // 3 + n % 1000
    a + (n - 1) * 5
"""
"""What may have more than 64 bits; from 63 to 64 eager still knows, and we refuse."""

INT_VALUES = (3, -2, 5, 0, 1, -1, 7, -7, 2, 12)
LARGE_VALUES = (3, 1 << 22, 1 << 40, -(1 << 33), 5, (1 << 62) + 75)
FLOAT_VALUES = (1.5, -2.25, 0.1, 0.0, 123.456, -0.5, 2.675, 1e10)


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def function(text: str, number: str) -> Callable[..., Any]:
    """The function of a number and a matrix with this source text."""
    if text in STATEMENTS:
        body = f"    b = a.clone()\n    {text}\n    return {STATEMENTS[text]}"
    else:
        body = f"    return {text}"
    source = f"def function({number}, a):\n{body}\n"
    file = f"<numbers: {text}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope: dict[str, Any] = {"torch": torch, "F": F, "math": math}
    exec(compile(source, file, "exec"), scope)
    return scope["function"]


def outcome(run: Callable[..., Any], number: float) -> Any:
    """The result and the changed matrix, or the exception."""
    a = wave(6, 4)
    try:
        return [*leaves(run(number, a)), a]
    except Exception as raised:
        return raised


def check(text: str, values: Iterable[float], **options: Any) -> None:
    """The compiled function agrees with the original one for all values, including errors."""
    torch.compiler.reset()
    plain = function(text, "x" if isinstance(next(iter(values)), float) else "n")
    compiled = torch.compile(plain, backend="inductor_lab", options=options or None)
    for value in values:
        expected, found = outcome(plain, value), outcome(compiled, value)
        if isinstance(expected, Exception):
            assert isinstance(found, Exception), f"at {value}: {found} instead of {expected!r}"
        elif isinstance(found, Exception):
            raise AssertionError(f"at {value}: {found!r}") from found
        else:
            assert_same(found, expected)


WAYS: dict[str, dict[str, Any]] = {"cpp": {}, "triton": {"language": "triton"}}


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.semantics.numbers", description=__doc__)
    parser.add_argument("--way", choices=WAYS, help="only one of the ways to compile")
    way = parser.parse_args().way
    logging.disable(logging.CRITICAL)
    texts = [(text, INT_VALUES) for text in (*lines(FOUND), *lines(OTHERS), *STATEMENTS)]
    texts += [(text, LARGE_VALUES) for text in lines(LARGE)]
    texts += [(text, FLOAT_VALUES) for text in lines(FLOATS)]
    failures = 0
    for name, options in WAYS.items() if way is None else [(way, WAYS[way])]:
        for text, values in texts:
            try:
                check(text, values, **options)
            except AssertionError as wrong:
                failures += 1
                print(f"{name}: {text}\n    {str(wrong).splitlines()[0]}", flush=True)
    print(f"{failures} failures" if failures else "all agree")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
