"""Functions with their arguments, one for each feature of C++ kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def _floats(*size: int) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(sum(size)))


def _ints(low: int, high: int, *size: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(size) + high)
    return torch.randint(low, high, size, generator=generator).to(dtype)


X, Y = _floats(40, 300), _floats(300, 40).t()
Z = _floats(16, 32, 20)
U8, V8 = _ints(0, 256, 1, 8, dtype=torch.uint8), _ints(0, 256, 90, 8, dtype=torch.uint8)
I8 = _ints(-128, 128, 500, dtype=torch.int8)
NANS = torch.where(_floats(30, 40) > 1.7, float("nan"), _floats(30, 40))
ROWS = torch.cat([torch.full((3, 530), -float("inf")), _floats(6, 530).mul(3).round()])
ROWS[1, 70], ROWS[2, 529], ROWS[4, 17], ROWS[5, 400:] = 1.0, float("nan"), float("nan"), 1e9
POSITIVE = _floats(1000).abs() * 0.4 + 0.05

POINTWISE: dict[str, Case] = {
    "sin_cos": (lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, (X,)),
    "uint8_cat": (lambda a, b: torch.cat((-a, torch.maximum(-a, b))), (U8, V8)),
    "gelu": (lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x)), (X,)),
    "pad": (lambda x: F.pad(x, (1, 2, 3, 4)), (X,)),
    "cat": (lambda x, y: torch.cat([x, y.sin(), x], 1), (X, Y)),
    "stack": (lambda x, y: torch.stack([x, y], 2), (X, Y)),
    "where": (lambda x, y: torch.where(x > 0, x, y * 2), (X, Y)),
    "tril": (lambda x: x.tril(), (X,)),
    "flip_roll": (lambda x: x.flip(0) + x.roll(3, 1), (X,)),
    "transpose": (lambda x: x.t().contiguous() + 1, (_floats(130, 70),)),
    "add_transposed": (
        lambda x, y: x + y.permute(2, 1, 0),
        (_floats(33, 9, 70), _floats(70, 9, 33)),
    ),
    "reshape": (lambda x: x.view(40, 30, 10).permute(2, 0, 1).reshape(100, 120).sin(), (X,)),
    "floor_division": (lambda x, y: (x // y, x % y, torch.fmod(x, y)), (X, Y)),
    "int_division": (
        lambda a, b: (a // b, a % b, torch.div(a, b, rounding_mode="trunc")),
        (_ints(-50, 50, 100), _ints(1, 9, 100)),
    ),
    "int8": (lambda a: (a + a, a * a, -a, a.abs(), a // 3, a % 3, a << 1, a >> 1), (I8,)),
    "int_pow": (
        lambda a, b: (a**b, b**a, a**3, 2 ** b.abs(), (a.to(torch.int8)) ** 3),
        (_ints(-9, 9, 100), _ints(-5, 9, 100)),
    ),
    "half_literals": (
        lambda x: (F.pad(x, (1, 1), value=0.1), x.masked_fill(x > 0, -1.5), torch.zeros_like(x)),
        (X.half(),),
    ),
    "bfloat16_literals": (
        lambda x: (F.pad(x, (1, 1), value=0.1), x.masked_fill(x > 0, float("-inf"))),
        (X.bfloat16(),),
    ),
    "16_bits": (
        lambda x, y: (x.bfloat16(), y.half(), x.int(), (y * 9).abs().byte(), x.bool(), y > 1),
        (X.half(), X.bfloat16()),
    ),
    "bits": (lambda a, b: (a & b, a | b, a ^ b, ~a, a << 3), (V8, U8)),
    "bools": (lambda x, y: ((x > 0) & (y > 0) | (x < -1) ^ (y < 0), ~(x > y)), (X, Y)),
    "nan": (
        lambda x: (torch.minimum(x, x.flip(0)), x.clamp(0, 1), x.relu(), x.sign(), x.isnan()),
        (NANS,),
    ),
    "convert": (
        lambda x: (x.long(), x.int(), x.bool(), x.double(), x.half(), (x * 9).abs().byte()),
        (X,),
    ),
    "bfloat16": (lambda x: (x * 2 + 1).relu(), (X.bfloat16(),)),
    "math": (
        lambda x: (x.asin(), x.atan(), x.sinh(), x.cosh(), x.asinh(), (x + 2).acosh(), x.atanh()),
        (POSITIVE.clamp(max=0.9),),
    ),
    "special": (
        lambda x: (x.erfc(), x.clamp(max=0.9).erfinv(), x.lgamma(), x.digamma(), x**-1.5),
        (POSITIVE,),
    ),
    "float64": (lambda x: (x.exp(), x.log(), x.sigmoid(), x.tan()), (POSITIVE.double(),)),
    "embedding": (lambda w, i: F.embedding(i, w) * 2, (_floats(100, 30), _ints(0, 100, 8, 9))),
    "index": (lambda x, i: x[i], (X, _ints(-40, 40, 30))),
    "gather": (lambda x, i: x.gather(1, i), (X, _ints(0, 300, 40, 20))),
    "scalar": (lambda x: x.sin() + 1, (torch.tensor(2.0),)),
    "empty": (lambda x: x + 1, (torch.randn(0, 4),)),
}

REDUCTIONS: dict[str, Case] = {
    "softmax": (lambda x: x.softmax(-1), (X,)),
    "softmax_columns": (lambda x: x.softmax(0), (X,)),
    "softmax_middle": (lambda x: x.softmax(1), (Z,)),
    "softmax_vector": (lambda x: x.softmax(0), (_floats(300),)),
    "softmax_long": (lambda x: x.softmax(-1), (_floats(2, 20000),)),
    "softmax_short": (lambda x: x.softmax(-1), (_floats(150, 5),)),
    "norm_short": (lambda x: (x.norm(dim=-1), x.argmax(-1), x * 2), (_floats(5, 70, 3),)),
    "scan_side_by_side": (lambda x: (x.exp().logcumsumexp(-1), x.sin()), (_floats(70, 150),)),
    "cummax_side_by_side": (lambda x: x.cummax(-1), (_floats(3, 70, 90),)),
    "log_softmax": (lambda x: x.log_softmax(-1), (X,)),
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (300,), w, b),
        (X, _floats(300), _floats(1, 300)[0]),
    ),
    "batch_norm": (lambda z, w: F.batch_norm(z, None, None, w, w, True), (Z, _floats(32))),
    "group_norm": (lambda z, w: F.group_norm(z, 4, w, w), (Z, _floats(32))),
    "sums": (lambda x: (x.sum(), x.sum(0), x.sum(1), x.mean(1)), (X,)),
    "sum_middle": (lambda z: (z.mean((0, 2)), z.var(1), z.std((0, 1))), (Z,)),
    "extremes": (lambda x: (x.amax(1), x.amin(0), x.max(), x.min()), (X,)),
    "positions": (lambda x: (x.argmax(1), x.argmin(0), x.argmax()), (X,)),
    "positions_tied": (lambda x: (x.argmax(1), x.argmin(0), x.argmin()), (X.round(),)),
    "nan": (lambda x: (x.amax(1), x.amin(0), x.amax(), x.argmax(1), x.argmin(0)), (NANS,)),
    "positions_of_rows": (
        lambda x: (x.max(1), x.argmin(1), x.double().argmax(1), (-x).min(1), (x * 2 + 1).argmax(1)),
        (ROWS,),
    ),
    "positions_of_integers": (
        lambda x: (x.max(1), x.argmin(1), x.int().argmax(1), x.to(torch.uint8).argmin(1)),
        (_ints(-9, 9, 7, 530),),
    ),
    "prod_any_all": (lambda x: ((1 + x * 0.01).prod(1), (x > 2).any(1), (x < 2).all(0)), (X,)),
    "integers": (lambda x: (x.sum(), x.sum(0), x.amax(1), x.prod(1)), (_ints(-3, 3, 50, 30),)),
    "half": (lambda x: (x * 2 + 1).sum(1), (X.half(),)),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t), (X, _ints(0, 300, 40))),
    "transposed": (lambda x: (x.reshape(300, 40) + x.t()).sum(0), (X,)),
    "threaded_all": (lambda x: (x.sum(), x.max(), x.mean()), (_floats(500, 300),)),
    "threaded_columns": (lambda x: (x.abs().sum(0), x.amax(0)), (_floats(20000, 12),)),
    "threaded_softmax": (lambda x: x.softmax(0), (_floats(20000, 12),)),
    "threaded_positions": (lambda x: (x.argmax(), x.argmin(0)), (_floats(5000, 30).round(),)),
    "threaded_position_of_nan": (lambda x: (x.argmax(), x.argmin()), (NANS.repeat(100, 1),)),
    "empty": (lambda x: (x.sum(0), x.sum(1)), (torch.randn(0, 4),)),
}
