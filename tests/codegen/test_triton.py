"""Triton kernels, run by the interpreter and compared with eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.codegen.triton_programs import InTriton
from tests.end_to_end.functions import CASES as FUNCTIONS

pytest.importorskip("triton")

Case = tuple[Callable[..., Any], Callable[[], tuple[torch.Tensor, ...]]]
CASES: dict[str, Case] = {}


def case(*make: Callable[[], torch.Tensor]) -> Callable[..., Any]:
    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        CASES[fn.__name__] = (fn, lambda: tuple(m() for m in make))
        return fn

    return add


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(*shape, dtype=dtype)


def ints(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Any:
    return lambda: torch.randint(low, high, shape, dtype=dtype)


@case(floats(4, 1, 6), floats(5, 1))
def broadcast(a, b):
    return a * b + 1


@case(lambda: torch.randn(4, 5, 6).transpose(0, 2))
def transposed(x):
    return x * 2 + 1, x.sum(0), x.contiguous()


@case(floats(3, 50, 70), floats(70, 50))
def tiles(a, b):
    return (a + b.t()).exp(), a.permute(0, 2, 1).contiguous(), b.t().reshape(-1) * 2


@case(floats(8, 33))
def softmax(x):
    return torch.softmax(x, -1), torch.log_softmax(x, 0)


@case(floats(3, 5, 16), floats(16), floats(16))
def layer_norm(x, w, b):
    return F.layer_norm(x, (16,), w, b)


@case(floats(2, 5000))
def long_rows(x):
    return torch.softmax(x, -1), x.argmax(1), (x > 9).any(1), x.amin(1)


@case(floats(6, 5000), ints(0, 5000, 2, 3), floats(6))
def padded_rows(x, labels, scale):
    """A value per row is used under a mask of the row, and under a mask that varies in the row."""
    shifted = F.pad(labels, (0, 1), value=-100)[:, 1:].reshape(-1, 1)
    hit = torch.where(torch.arange(5000, device=x.device) == shifted, scale[:, None], 0.0)
    return F.pad(torch.softmax(x, 1) * hit.sum(1, True) - hit, (0, 8))


@case(floats(300, 7, dtype=torch.float64))
def long_columns(x):
    return x.sum(0), x.amax(0), x.argmax(0), x.argmin(0)


@case(floats(70, 90, dtype=torch.float64))
def everything_reduced(x):
    return x.sum(), (x / x.sum()).exp(), x.argmax(), (x > 9).any(), (x < 9).all(), x.prod()


@case(floats(4, 5, 6, 7))
def middle_axes(x):
    return x.sum(1), x.sum((0, 2)), x.amax((1, 3)), x.sum(1).sum(0)


@case(ints(0, 256, 1, 8, dtype=torch.uint8), ints(0, 256, 39, 8, dtype=torch.uint8))
def unsigned_bytes(a, b):
    negated = -a
    larger = torch.maximum(b, negated)
    return torch.cat([negated, larger]), larger // 3, larger >> 1, larger.argmin(0)


@case(ints(-100, 100, 50), ints(1, 9, 50))
def integers(a, b):
    quotients = a // b, a % b, torch.fmod(a, b), torch.div(a, -b, rounding_mode="floor")
    shifts = a << (b - 4), a >> b, a << (b * 40)
    return *quotients, *shifts, a ** (b % 4), ~a, a & b, a.sign(), a.abs(), a.float() / b


@case(floats(50), floats(50))
def float_arithmetic(a, b):
    rounded = a.floor(), a.ceil(), a.trunc(), (a * 4).round(), a.sign(), torch.signbit(a)
    divided = a // b, a % b, torch.fmod(a, b), torch.copysign(a, b), torch.isinf(a / 0)
    return *rounded, *divided, torch.pow(a.abs(), b), torch.atan2(a, b), torch.hypot(a, b)


@case(lambda: torch.rand(50) * 0.9 + 0.05)
def functions_of_math(a):
    logs = a.log(), a.log2(), a.log10(), a.log1p(), a.exp2(), a.expm1(), a.sigmoid(), a.rsqrt()
    angles = a.tan(), a.asin(), a.acos(), a.atan(), a.sinh(), a.cosh(), a.tanh()
    inverse = a.asinh(), (a + 1).acosh(), a.atanh(), a.erf(), a.erfc(), a.erfinv(), a.lgamma()
    return *logs, *angles, *inverse, a.digamma(), (a - 0.98).digamma()


@case(lambda: torch.rand(5, 5) > 0.5, lambda: torch.rand(5, 5) > 0.5)
def booleans(a, b):
    logic = a & b, a | b, a ^ b, ~a, torch.where(a, b, ~b), a == b
    return *logic, a.any(1), a.all(0), a.sum(), a.float(), a.to(torch.uint8)


@case(floats(4, 6, dtype=torch.float16), floats(4, 6, dtype=torch.bfloat16))
def half_precision(x, y):
    converted = x.to(torch.bfloat16) + 1, y.to(torch.float16), y.to(torch.int32), y.double()
    steps = torch.arange(6, device=y.device).to(torch.bfloat16)
    return *converted, x.softmax(-1), y.softmax(-1), steps + y


@case(floats(40, 50, dtype=torch.float64))
def double_constants(x):
    return x * 0.1, torch.where(x > 0, 0.1, 1 / 3), (x * 0.1).sum(), x.clamp(-0.1, 1 / 3)


@case(ints(0, 256, 40, dtype=torch.uint8), ints(-128, 128, 40, dtype=torch.int8))
def narrow_integers(x, y):
    low, high = x.clamp(min=1) + 1, (y.relu() + y.clamp(max=3)) * 3
    return low, -low, low.sign() % 7, torch.fmod(low, -3), high, high.relu() // -2


@case(lambda: torch.randn(()), lambda: torch.tensor([-0.0, 0.0, 1.0, float("nan")]))
def truths(a, b):
    low, same = b.bfloat16(), a * 0
    either = a.logical_xor(b), same.bfloat16().logical_xor(low), (a > 0) & (b != 0)
    return *either, (a > 0).float() + b.isnan(), low.bool()


@case(floats(6, 7))
def views(x):
    rolled = x.roll(2, 1), x.flip(0), x.unfold(1, 3, 2), x.diagonal(), x.t().reshape(-1)
    return *rolled, F.pad(x, (1, 2, 0, 1), value=2.0) * 3, torch.cat([x, x.exp()], 1)


@case(ints(0, 11, 3, 4), floats(11, 6))
def embedding(i, w):
    return F.embedding(i, w) * 2, w[i[0]] + 1, w.gather(0, i[:, :3])


@case(lambda: torch.randn(()), floats(1))
def scalars(a, b):
    steps = torch.arange(4, dtype=torch.float64, device=a.device)
    return a + b, a.sin(), b.sum(), steps * a


@case(floats(0, 5), floats(5, 0))
def empties(a, b):
    return a + 1, b.sum(1), a.sum(0), b.sum(), (b > 0).all(1)


@pytest.mark.parametrize(
    "function, make",
    [*CASES.values(), *FUNCTIONS.values()],
    ids=[*CASES, *(f"end_to_end.{name}" for name in FUNCTIONS)],
)
def test_interpreted_kernels_agree_with_eager(function: Any, make: Any) -> None:
    torch.manual_seed(0)
    arguments = make()
    compiled = InTriton()
    result = compiled(function)(*arguments)
    torch.testing.assert_close(result, function(*arguments), equal_nan=True, rtol=1e-5, atol=2e-6)
    assert compiled.kernels


NAN, INF = float("nan"), float("inf")


def test_one_value_per_row_is_loaded_before_the_row() -> None:
    function, make = CASES["padded_rows"]
    compiled = InTriton()
    compiled(function)(*make())
    (text,) = map(str, compiled.kernels)
    loops = text[text.index("for r0_offset") :]
    assert text.count("tl.load(") == 5 and loops.count("tl.load(") == 3
    assert "broadcast_to" not in text


@pytest.mark.parametrize("repeats", [1, 2000], ids=["one block", "blocks"])
def test_argmax_prefers_nan_and_the_first_of_equal_elements(repeats: int) -> None:
    rows = [[1.0, NAN, 3.0, NAN], [4.0, 4.0, -1.0, -1.0], [-INF] * 4, [INF] * 4]
    x = torch.tensor(rows).repeat(1, repeats)

    def extremes(x):
        return x.amax(1), x.amin(1), x.argmax(1), x.argmin(1)

    result = InTriton()(extremes)(x)
    torch.testing.assert_close(result, extremes(x), equal_nan=True, rtol=0, atol=0)


def test_elementwise_maximum_propagates_nan() -> None:
    a, b = torch.tensor([1.0, NAN, 2.0]), torch.tensor([NAN, 1.0, 3.0])
    result = InTriton()(torch.maximum)(a, b)
    torch.testing.assert_close(result, torch.maximum(a, b), equal_nan=True)


@pytest.mark.parametrize("shape", [(10, 20), (23, 20)])
def test_symbolic_sizes(shape: tuple[int, int]) -> None:
    def several(x):
        return torch.softmax(x, -1), x.sum(), x.sin(), torch.cat([x, x.exp()]), x.mean(0)

    compiled = InTriton()(several, dynamic=True)
    for size in (shape, (shape[0] * 3, shape[1])):
        x = torch.randn(*size)
        torch.testing.assert_close(compiled(x), several(x), rtol=1e-5, atol=1e-5)


def test_a_size_that_only_determines_the_index_type() -> None:
    """No loop has this size, but it determines whether indices need more than 32 bits."""
    compiled = InTriton()(lambda x: x[:5] * 2, dynamic=True)
    for size in (9, 30):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), x[:5] * 2)


def test_gradients() -> None:
    def network(x, w, b):
        return F.gelu(F.layer_norm(x, (6,), w, b)).softmax(-1)

    made = [torch.randn(4, 6), torch.randn(6), torch.randn(6)]

    def gradients(function):
        leaves = [t.clone().requires_grad_() for t in made]
        return torch.autograd.grad(function(*leaves).pow(2).sum(), leaves)

    torch.testing.assert_close(
        gradients(InTriton()(network)), gradients(network), rtol=1e-4, atol=1e-5
    )


def test_random_numbers_depend_on_the_seed_and_agree_with_the_interpreter() -> None:
    def noisy(x):
        return F.dropout(x, 0.3), torch.rand_like(x), torch.randn_like(x)

    x = torch.ones(100, 10)
    compiled = InTriton()(noisy)
    torch.manual_seed(3)
    dropped, uniform, normal = compiled(x)
    torch.manual_seed(3)
    again = compiled(x)
    other = compiled(x)
    torch.testing.assert_close(again, (dropped, uniform, normal), rtol=0, atol=0)
    assert not torch.equal(other[1], uniform)
    assert 0.6 < (dropped > 0).float().mean() < 0.8
    assert 0.45 < uniform.mean() < 0.55 and uniform.min() >= 0 and uniform.max() < 1
    assert abs(normal.mean()) < 0.1 and 0.9 < normal.std() < 1.1


def test_blocks_of_a_size_that_is_a_remainder() -> None:
    """The hint of the size has the remainder 0, but the loop may be longer."""
    triton = InTriton()
    compiled = triton(lambda x: x.repeat(x.shape[0] % 4, 1) + 1, dynamic=True)
    for length in (7, 9):
        x = torch.randn(length, 20)
        torch.testing.assert_close(compiled(x), x.repeat(length % 4, 1) + 1)
    assert [kernel.launch["constants"] for kernel in triton.kernels] == [{"XBLOCK": 1024}]
