"""Each operator that has a lowering, in its usual dtypes, compared with eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from tests.lower.lowering import Lowered, assert_same

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.int64, torch.int32, torch.uint8)
ALL = (*FLOATS, *INTS, torch.bool)
NUMBERS = (*FLOATS, *INTS)
TOLERANCE = {
    torch.bfloat16: {"rtol": 2e-2, "atol": 2e-2},
    torch.float16: {"rtol": 4e-3, "atol": 4e-3},
}
SHORT = (torch.float32, torch.bfloat16)


def some(dtype: torch.dtype, *shape: int, positive: bool = False) -> torch.Tensor:
    """Nonzero numbers, of both signs if the dtype has them."""
    if dtype is torch.bool:
        return torch.rand(shape) > 0.5
    if dtype.is_floating_point:
        values = torch.rand(shape) * 2 + 0.1
        signs = 1 if positive else torch.randint(0, 2, shape) * 2 - 1
        return (values * signs).to(dtype)
    low = 1 if positive or dtype is torch.uint8 else -9
    values = torch.randint(low, 10, shape)
    return torch.where(values == 0, 3, values).to(dtype)


UNARY: dict[str, tuple[Callable[..., Any], tuple[torch.dtype, ...]]] = {
    "sin": (torch.sin, ALL),
    "exp": (torch.exp, NUMBERS),
    "tanh": (torch.tanh, ALL),
    "erf": (torch.erf, SHORT),
    "sigmoid": (torch.sigmoid, ALL),
    "log1p of square": (lambda x: torch.log1p(x * x), FLOATS),
    "sqrt of abs": (lambda x: x.abs().sqrt(), FLOATS),
    "rsqrt of abs": (lambda x: x.abs().rsqrt(), NUMBERS[:5]),
    "reciprocal": (torch.reciprocal, NUMBERS),
    "neg": (torch.neg, NUMBERS),
    "abs": (torch.abs, NUMBERS),
    "sign": (torch.sign, ALL),
    "square": (torch.square, ALL),
    "relu": (torch.relu, NUMBERS),
    "bitwise_not": (torch.bitwise_not, (*INTS, torch.bool)),
    "logical_not": (torch.logical_not, ALL),
    "ceil": (torch.ceil, NUMBERS),
    "floor": (torch.floor, NUMBERS),
    "trunc": (torch.trunc, NUMBERS),
    "round": (torch.round, NUMBERS),
    "round decimals": (lambda x: torch.round(x, decimals=1), (torch.float32,)),
    "isnan": (lambda x: torch.isnan(x / 0 * 0), NUMBERS),
    "isfinite": (torch.isfinite, ALL),
    "signbit": (torch.signbit, ALL),
    "pow 2": (lambda x: x**2, NUMBERS),
    "pow 3": (lambda x: x**3, NUMBERS),
    "pow 0.5": (lambda x: x.abs() ** 0.5, NUMBERS),
    "pow -1": (lambda x: x**-1.0, FLOATS),
    "pow 1.7": (lambda x: x.abs() ** 1.7, FLOATS),
    "2 ** x": (lambda x: 2**x, FLOATS),
    "add scalar": (lambda x: x + 1.5, ALL),
    "rsub": (lambda x: 7 - x, NUMBERS),
    "add alpha": (lambda x: torch.add(x, x, alpha=3), NUMBERS),
    "sub alpha": (lambda x: torch.sub(x, x, alpha=2), NUMBERS),
    "clamp": (lambda x: x.clamp(-1, 1), NUMBERS),
    "clamp min": (lambda x: x.clamp_min(0.25), NUMBERS),
    "gelu": (F.gelu, FLOATS),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), FLOATS),
    "silu": (F.silu, FLOATS),
    "elu": (F.elu, FLOATS),
    "selu": (F.selu, FLOATS),
    "leaky_relu": (F.leaky_relu, FLOATS),
    "hardtanh": (F.hardtanh, FLOATS),
    "hardswish": (F.hardswish, FLOATS),
    "hardsigmoid": (F.hardsigmoid, FLOATS),
    "softplus": (F.softplus, FLOATS),
    "mish": (F.mish, FLOATS),
    "logsigmoid": (F.logsigmoid, FLOATS),
    "to int": (lambda x: (x * 3).to(torch.int32), NUMBERS),
    "to bool": (lambda x: x.to(torch.bool), ALL),
    "to uint8": (lambda x: x.abs().to(torch.uint8), NUMBERS),
    "to half and back": (lambda x: x.to(torch.float16).to(torch.float32), ALL),
    "bitcast": (lambda x: x.view(torch.int32), (torch.float32,)),
    "nan_to_num": (lambda x: torch.nan_to_num(x / 0), FLOATS),
    "masked_fill": (lambda x: x.masked_fill(x > 1, 2), NUMBERS),
    "where scalar": (lambda x: torch.where(x > 0, x, 0), NUMBERS),
    "tril": (lambda x: torch.tril(x, 1), ALL),
    "triu": (lambda x: torch.triu(x, -1), ALL),
    "sum": (torch.sum, ALL),
    "sum rows": (lambda x: x.sum(1), ALL),
    "sum columns, kept": (lambda x: x.sum(0, keepdim=True), ALL),
    "sum into float64": (lambda x: x.sum(0, dtype=torch.float64), ALL),
    "mean": (torch.mean, FLOATS),
    "mean rows": (lambda x: x.mean(-1, keepdim=True), FLOATS),
    "prod": (lambda x: torch.prod(x[:2], 1), NUMBERS),
    "amax": (lambda x: x.amax(1), ALL),
    "amin": (lambda x: x.amin((0, 1)), ALL),
    "max": (torch.max, ALL),
    "max dim": (lambda x: x.max(1), NUMBERS),
    "min dim": (lambda x: x.min(0, keepdim=True), NUMBERS),
    "argmax": (lambda x: torch.argmax(x, 1), NUMBERS),
    "argmax of all": (torch.argmax, NUMBERS),
    "argmin": (lambda x: torch.argmin(x, 0), NUMBERS),
    "any": (torch.any, ALL),
    "any rows": (lambda x: (x > 1).any(1), ALL),
    "all": (lambda x: (x > 0).all(0), ALL),
    "var": (lambda x: x.var(1), FLOATS),
    "var_mean": (lambda x: torch.var_mean(x, (0, 1), correction=0), FLOATS),
    "std": (torch.std, FLOATS),
    "softmax": (lambda x: x.softmax(-1), FLOATS),
    "log_softmax": (lambda x: x.log_softmax(0), FLOATS),
    "logsumexp": (lambda x: x.logsumexp(1), (torch.float32, torch.float64)),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=1), (torch.float32, torch.float64)),
    "norm 1": (lambda x: torch.linalg.vector_norm(x, 1), (torch.float32, torch.float64)),
    "layer_norm": (lambda x: F.layer_norm(x, (6,)), FLOATS),
    "cat": (lambda x: torch.cat([x, x * 2, x[:1]]), NUMBERS),
    "cat promotes": (lambda x: torch.cat([x, x.to(torch.float64)], 1), ALL),
    "stack": (lambda x: torch.stack([x, x], 1), ALL),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3), value=5), NUMBERS),
    "pad cuts": (lambda x: F.pad(x, (-1, 2, 1, -2)), ALL),
    "pad reflect": (lambda x: F.pad(x, (2, 1), mode="reflect"), FLOATS[:2]),
    "flip": (lambda x: x.flip(0, 1), ALL),
    "roll": (lambda x: x.roll(2, 1), ALL),
    "roll all": (lambda x: (x.roll(-5), x[:0].roll(1, 0), x.t().roll(0, 1)), ALL),
    "im2col": (lambda x: F.unfold(x[None, None], (2, 3), dilation=(2, 1), stride=(1, 2)), FLOATS),
    "im2col of one": (lambda x: F.unfold(x[None], 1), FLOATS),
    "im2col padded": (lambda x: F.unfold(x[None], 3, padding=1), FLOATS),
    "roll two": (lambda x: x.roll((1, 9), (1, 0)), ALL),
    "repeat": (lambda x: x.repeat(2, 1, 3), ALL),
    "fill": (lambda x: torch.full_like(x, 2), ALL),
    "zeros_like": (torch.zeros_like, ALL),
    "slice_scatter": (lambda x: torch.slice_scatter(x, x[:, :2] + 1, 1, 1, 5, 2), NUMBERS),
    "select_scatter": (lambda x: torch.select_scatter(x, x[0] + 1, 0, -1), NUMBERS),
    "diagonal_scatter": (lambda x: torch.diagonal_scatter(x, x[0, :4] + 1, 1), NUMBERS),
    "max_pool2d": (lambda x: F.max_pool2d(x[None, None], 3, 2, 1), FLOATS),
    "avg_pool2d": (lambda x: F.avg_pool2d(x[None, None], 2), FLOATS),
    "adaptive mean": (lambda x: F.adaptive_avg_pool2d(x[None], 1), FLOATS),
}

CASES = [
    pytest.param(function, dtype, id=f"{name}-{str(dtype)[6:]}")
    for name, (function, dtypes) in UNARY.items()
    for dtype in dtypes
]


@pytest.mark.parametrize(("function", "dtype"), CASES)
def test_one_operand(function: Callable[..., Any], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = some(dtype, 4, 6)
    lowered = Lowered()
    assert_same(lowered.aot(function)(x), function(x), **TOLERANCE.get(dtype, {}))
    assert not lowered.externs(), "everything in this table has a lowering"


BINARY: dict[str, tuple[Callable[..., Any], tuple[torch.dtype, ...]]] = {
    "add": (torch.add, ALL),
    "mul": (torch.mul, ALL),
    "sub": (torch.sub, NUMBERS),
    "div": (torch.div, ALL),
    "div floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), NUMBERS),
    "div trunc": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), FLOATS[:2] + INTS),
    "remainder": (torch.remainder, FLOATS[:2] + INTS),
    "fmod": (torch.fmod, FLOATS[:2] + INTS),
    "pow": (lambda x, y: x.abs() ** y, FLOATS),
    "atan2": (torch.atan2, FLOATS),
    "copysign": (torch.copysign, FLOATS),
    "hypot": (torch.hypot, FLOATS[:2]),
    "maximum": (torch.maximum, ALL),
    "minimum": (torch.minimum, ALL),
    "fmax": (lambda x, y: torch.fmax(x / (x > 0), y), FLOATS),
    "eq": (torch.eq, ALL),
    "lt": (torch.lt, ALL),
    "ge": (torch.ge, ALL),
    "logical_and": (torch.logical_and, ALL),
    "logical_xor": (torch.logical_xor, ALL),
    "bitwise_and": (torch.bitwise_and, (*INTS, torch.bool)),
    "bitwise_xor": (torch.bitwise_xor, (*INTS, torch.bool)),
    "shift": (lambda x, y: x << y.abs() % 4, INTS),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), FLOATS),
    "addcmul": (lambda x, y: torch.addcmul(x, x, y, value=2), FLOATS),
    "where": (lambda x, y: torch.where(x > y, x, y), ALL),
    "mse": (F.mse_loss, FLOATS[:2]),
    "smooth_l1": (F.smooth_l1_loss, FLOATS[:2]),
    "copy": (lambda x, y: x.clone().copy_(y), ALL),
}
PAIRS = [
    pytest.param(function, dtype, id=f"{name}-{str(dtype)[6:]}")
    for name, (function, dtypes) in BINARY.items()
    for dtype in dtypes
]


@pytest.mark.parametrize(("function", "dtype"), PAIRS)
def test_two_operands(function: Callable[..., Any], dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    x, y = some(dtype, 4, 6), some(dtype, 6).expand(4, 6)
    lowered = Lowered()
    assert_same(lowered.aot(function)(x, y), function(x, y), **TOLERANCE.get(dtype, {}))
    assert not lowered.externs()


@pytest.mark.parametrize("b", ALL, ids=str)
@pytest.mark.parametrize("a", ALL, ids=str)
def test_promotion_follows_pytorch(a: torch.dtype, b: torch.dtype) -> None:
    """Dimensions count: a 0-dim tensor does not widen the dtype within its category."""

    def function(
        x: torch.Tensor, y: torch.Tensor, scalar: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return x + y, x / y, x * scalar, torch.where(x > 1, x, scalar), x == scalar

    inputs = some(a, 3), some(b, 3), some(b)
    for actual, expected in zip(Lowered().aot(function)(*inputs), function(*inputs), strict=True):
        assert_same(actual, expected, rtol=2e-2, atol=2e-2)


INDEXING: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "embedding": lambda x, i: F.embedding(i, x),
    "gather": lambda x, i: x.gather(1, i),
    "index_select": lambda x, i: x.index_select(0, i[0]),
    "take_along": lambda x, i: torch.take_along_dim(x, i, 1),
    "rows": lambda x, i: x[i],
    "columns": lambda x, i: x[:, i],
    "points": lambda x, i: x[i, i.flip(1)],
    "negative": lambda x, i: x[i - 4],
    "int32": lambda x, i: x[i.to(torch.int32)],
    "apart": lambda x, i: x.reshape(4, 2, 2)[i, :, 1 - i % 2],
    "inner": lambda x, i: x.reshape(4, 2, 2)[:, i % 2, 1 - i % 2],
    "constant": lambda x, i: x[torch.tensor([0, -1])],
    "scatter one each": lambda x, i: x.scatter(1, i[:, :1], 9.0),
    "one_hot": lambda x, i: F.one_hot(i, 4) * x[0],
    "cross_entropy": lambda x, i: F.cross_entropy(x, i[:, 0]),
}


@pytest.mark.parametrize("name", INDEXING)
def test_loaded_indices(name: str) -> None:
    torch.manual_seed(2)
    x, i = torch.randn(4, 4), torch.randint(0, 4, (4, 3))
    lowered = Lowered()
    assert_same(lowered.aot(INDEXING[name])(x, i), INDEXING[name](x, i))
    assert set(lowered.externs()) <= {"aten._assert_async.msg"}


CREATED: dict[str, Callable[[], torch.Tensor]] = {
    "arange": lambda: torch.arange(7),
    "arange of floats": lambda: torch.arange(0.5, 3, 0.3),
    "arange of ints from floats": lambda: torch.arange(1.7, 9.2, 2.9, dtype=torch.int64),
    "arange down": lambda: torch.arange(9, 1, -3),
    "linspace": lambda: torch.linspace(0, 1, 9),
    "full": lambda: torch.full((2, 3), 2.5),
    "full of bool": lambda: torch.full((2,), True),
    "wraps": lambda: torch.full((2,), 0, dtype=torch.uint8) - 1,
    "infinite": lambda: torch.full((2,), -float("inf")),
    "eye": lambda: torch.eye(3, 4),
    "triangle": lambda: torch.tril_indices(4, 3),
    "scalar_tensor": lambda: torch.scalar_tensor(3, dtype=torch.float16),
    "constant": lambda: torch.tensor([1.0, 2.0]) + torch.tensor(3),
}


@pytest.mark.parametrize("name", CREATED)
def test_tensor_creation(name: str) -> None:
    lowered = Lowered()
    actual = lowered.aot(lambda x: CREATED[name]() * torch.ones_like(x))(torch.ones(()))
    assert_same(actual, CREATED[name]() * torch.ones(()), rtol=1e-6, atol=1e-6)
    assert not lowered.externs()


REDUCED_EDGES: dict[str, Callable[[torch.Tensor], Any]] = {
    "scalar": lambda x: (x[0, 0].sum(), x[0, 0].max(), x[0, 0].argmax(), x[0, 0].mean()),
    "one element": lambda x: (x[:1].sum(0), x[:1].argmin(0), x[:1, :1].var(0, correction=0)),
    "variance of one": lambda x: x[:1].var(0),
    "nothing": lambda x: (x[:0].sum(0), x[:0].prod(1), x[:0].any(), x[:0].all(), x[:0].mean()),
    "empty result": lambda x: (x[:0] + 1, torch.cat([x[:0], x]), x[:0].reshape(0, 3, 2) * 2),
    "NaN wins": lambda x: ((x / 0 * 0).amax(1), (x / 0 * 0).argmin(1), torch.maximum(x, x / 0 * 0)),
    "infinity": lambda x: ((x / 0).amin(1), (x / 0).logsumexp(1)),
    "no dims": lambda x: torch.sum(x, ()),
    "last dim of a vector": lambda x: (x[0].sum(-1), x[0].amax(-1), x[0].argmax(-1), x[0].mean(-1)),
}


@pytest.mark.parametrize("name", REDUCED_EDGES)
def test_edges_of_reductions(name: str) -> None:
    torch.manual_seed(3)
    x = torch.randn(4, 6)
    assert_same(Lowered().aot(REDUCED_EDGES[name])(x), REDUCED_EDGES[name](x))


GRADIENTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "softmax": lambda x: x.softmax(-1) ** 2,
    "log_softmax": lambda x: x.log_softmax(-1)[:, 0],
    "layer_norm": lambda x: F.layer_norm(x, (6,)) ** 2,
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True) ** 2,
    "group_norm": lambda x: F.group_norm(x[None].transpose(1, 2), 3) ** 2,
    "var": lambda x: x.var(1),
    "max": lambda x: x.amax(1) * x.max(0).values[:4],
    "cat": lambda x: torch.cat([x, x * 2]).sin(),
    "index": lambda x: x[:, 1:4].exp(),
    "pad": lambda x: F.pad(x, (1, 1)) ** 2,
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 5, 2, 2])),
    "where": lambda x: torch.where(x > 0, x.exp(), x * 3),
    "hardswish": F.hardswish,
    "softplus": F.softplus,
    "leaky_relu": F.leaky_relu,
    "prod": lambda x: x.prod(1),
    "diagonal": lambda x: x.diagonal(1) ** 2,
    "unfold": lambda x: x.unfold(1, 3, 2) ** 2,
    "im2col": lambda x: F.unfold(x[None, None], 3) ** 2,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    torch.manual_seed(4)
    x = torch.randn(4, 6, requires_grad=True)
    function = GRADIENTS[name]
    expected = torch.autograd.grad(function(x).sum(), x)
    actual = torch.autograd.grad(Lowered().aot(function)(x).sum(), x)
    assert_same(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nextafter_has_the_bits_of_eager_mode(dtype: torch.dtype) -> None:
    """Also for zero, for the largest and the smallest numbers, and if there is no next float."""
    ends = torch.finfo(dtype)
    numbers = [0, 1, 2.5, ends.max, ends.tiny, ends.tiny / 1024, ends.smallest_normal * ends.eps]
    ones = torch.tensor([*numbers, torch.inf, torch.nan], dtype=dtype)
    x, y = torch.cartesian_prod(*[torch.cat([ones, -ones])] * 2).unbind(-1)
    c = lab.inspect(torch.nextafter, x, y, options={"strict": True})
    bits = torch.int32 if dtype is torch.float32 else torch.int64
    expected = torch.nextafter(x, y)
    known = ~expected.isnan()
    assert torch.equal(c.result.isnan(), expected.isnan())
    assert torch.equal(c.result.view(bits)[known], expected.view(bits)[known])
