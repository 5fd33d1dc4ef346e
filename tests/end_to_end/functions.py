"""Small functions for end-to-end tests of the compiler, with their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Case = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]
CASES: dict[str, Case] = {}


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype)


def ints(high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(high, shape, dtype=dtype)


def case(*make: Callable[[], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        CASES[fn.__name__] = (fn, lambda: tuple(m() for m in make))
        return fn

    return add


@case(lambda: floats(4, 7))
def gelu(x):
    return F.gelu(x)


@case(lambda: floats(4, 7))
def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


@case(lambda: floats(8, 33))
def softmax(x):
    return torch.softmax(x, -1)


@case(lambda: floats(8, 33))
def log_softmax_columns(x):
    return torch.log_softmax(x, 0)


@case(lambda: floats(3, 5, 16), lambda: floats(16), lambda: floats(16))
def layer_norm(x, w, b):
    return F.layer_norm(x, (16,), w, b)


@case(lambda: floats(6, 16), lambda: floats(16))
def rms_norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


@case(lambda: floats(4, 3, 5, 5), lambda: floats(3).abs(), lambda: floats(3))
def batch_norm(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True)


@case(lambda: floats(5, 6), lambda: floats(6, 5))
def add_transposed(a, b):
    return a + b.t()


@case(lambda: floats(4, 1, 6), lambda: floats(5, 1))
def broadcast(a, b):
    return a * b + 1


@case(lambda: floats(4, 6), lambda: floats(2, 6))
def cat_rows(a, b):
    return torch.cat([a * 2, b.exp()], 0).relu()


@case(lambda: floats(3, 4), lambda: floats(3, 4))
def stack_new(a, b):
    return torch.stack([a, b], 1).sum(0)


@case(lambda: floats(3, 4))
def pad_constant(x):
    return F.pad(x, (1, 2, 0, 1), value=2.0) * 3


@case(lambda: ints(10, 2, 5), lambda: floats(10, 8))
def embedding(i, w):
    return F.embedding(i, w) * 2


@case(lambda: floats(4, 9), lambda: ints(9, 4, 3))
def gather(x, i):
    return x.gather(1, i).sin()


@case(lambda: floats(6, 3), lambda: ints(6, 4))
def index_select(x, i):
    return x.index_select(0, i) + 1


@case(lambda: floats(4, 5), lambda: floats(4, 5) > 0)
def masked_fill(x, m):
    return x.masked_fill(m, -1.0).cumsum(0)


@case(lambda: floats(4, 5), lambda: floats(4, 5))
def where_compare(a, b):
    return torch.where(a > b, a, b * 2)


@case(lambda: floats(4, 9))
def argmax_rows(x):
    return x.argmax(1), x.argmin(0)


@case(lambda: floats(4, 9))
def var_std(x):
    return x.var(1), x.std(0, unbiased=False), torch.var_mean(x, dim=(0, 1))[0]


@case(lambda: floats(4, 9))
def max_dim(x):
    values, places = x.max(1)
    return values, places, x.amin(0)


@case(lambda: ints(2, 4, 9, dtype=torch.bool))
def any_all(x):
    return x.any(1), x.all(0), x.any()


@case(lambda: ints(100, 5, 6, dtype=torch.int32), lambda: ints(9, 6, dtype=torch.int32) + 1)
def integer_arithmetic(a, b):
    return a // b, a % b, (a << 2) | (b & 3), a * 3 - b


@case(lambda: ints(255, 7, dtype=torch.uint8), lambda: floats(7))
def mixed_dtypes(a, b):
    return a + 1, a.float() * b, b.to(torch.int32), a / 2


@case(lambda: floats(2, 3, 8))
def reshape_permute(x):
    return x.permute(0, 2, 1).reshape(2, 24).view(4, 12) * 2


@case(lambda: floats(6, 8))
def slices(x):
    return x[1:5, ::2] + x[:4, 1::2], x[:, -1], x[2]


@case(lambda: floats(6, 8))
def split_chunks(x):
    a, b = x.chunk(2, 1)
    return F.silu(a) * b


@case(lambda: floats(4, 8), lambda: floats(16, 8), lambda: floats(16))
def linear_gelu(x, w, b):
    return F.gelu(F.linear(x, w, b))


@case(lambda: floats(2, 3, 8), lambda: floats(2, 8, 4))
def bmm_scaled(a, b):
    return torch.bmm(a, b) / 8**0.5


@case(lambda: floats(2, 2, 6, 4), lambda: floats(2, 2, 6, 4), lambda: floats(2, 2, 6, 4))
def attention(q, k, v):
    scores = (q @ k.transpose(-1, -2)) / 2.0
    return torch.softmax(scores, -1) @ v


@case(lambda: floats(2, 2, 6, 4), lambda: floats(2, 2, 6, 4), lambda: floats(2, 2, 6, 4))
def attention_library(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True) * 2


@case(lambda: floats(2, 3, 8, 8), lambda: floats(4, 3, 3, 3), lambda: floats(4))
def convolution(x, w, b):
    return F.conv2d(x, w, b, padding=1).relu()


@case(lambda: floats(6, 10), lambda: ints(10, 6))
def cross_entropy(x, target):
    return F.cross_entropy(x, target)


@case(lambda: floats(5, 6, dtype=torch.bfloat16), lambda: floats(5, 6, dtype=torch.bfloat16))
def bfloat16_math(a, b):
    return (a * b + a).tanh(), (a + b).sum(1)


@case(lambda: floats(5, 5))
def triangles(x):
    return torch.tril(x) + torch.triu(x, 1) * torch.arange(5, device=x.device)


@case(lambda: floats(7), lambda: floats(7, dtype=torch.float64))
def special_functions(x, y):
    return torch.erf(x) + torch.tanh(x) + torch.log1p(x.abs()), torch.expm1(y) + y.sigmoid()


@case(lambda: floats(3, 4))
def scalar_results(x):
    return x.mean(), x.sum().sqrt().isnan(), x.prod()
