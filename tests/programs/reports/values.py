"""Values: integers, floats at their limits, comparisons, layouts and indices."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from tests.programs.reports.case import count, made, report, wave

Tensor = torch.Tensor
INTEGERS = "integers and bools"
FLOATS = "floats at their limits"
LAYOUTS = "layouts and strides"
INDICES = "indices and scatters"
inf, nan = math.inf, math.nan
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 1e-45, 3e38, 0.1, -7.3])


def special() -> Tensor:
    return SPECIAL.clone()


@report(INDICES, lambda: (wave(2, 3) * 3,), 183082)
def the_greatest_after_a_sine_and_a_transpose(x: Tensor) -> Any:
    y = x.clone().sin_().t()
    return y.argmax(), y.argmax(0), y.max(1), y.argmin(1)


@report(FLOATS, made((3, 4), (4,), (3, 1)), 181694)
def addcdiv_of_broadcast_tensors(x: Tensor, y: Tensor, z: Tensor) -> Any:
    return torch.addcdiv(x, y, z, value=0.5), torch.addcmul(x, y, z, value=-2), x.addcdiv(z, y)


@report(INTEGERS, lambda: [(n,) for n in (5, 6, 9)], 175966)
def ranges_with_steps(n: int) -> Any:
    return (
        torch.arange(0, n, 2),
        torch.arange(n, -1, -3),
        torch.arange(0.5, n, 0.25),
        torch.arange(n, dtype=torch.float16),
        torch.linspace(0, 1, n),
        torch.arange(0, n, 0.1),
    )


@report(LAYOUTS, made((3, 9)), 113172, strides=True)
def bessel_functions_of_a_transposed_tensor(x: Tensor) -> Any:
    return torch.special.bessel_y0(x.t() + 2), torch.special.bessel_j1(x.t()), x.t().exp()


@report(LAYOUTS, lambda: (wave(2, 3, 4, 5).to(memory_format=torch.channels_last),), strides=True)
def channels_last_in_and_out(x: Tensor) -> Any:
    return x * 2, x.clone(), torch.empty_like(x).fill_(1), x.contiguous(), F.relu(x).sum(1)


@report(LAYOUTS, lambda: (wave(6, 8)[::2, 1::3],), 113172, strides=True)
def pointwise_of_a_view_with_gaps(x: Tensor) -> Any:
    return x + 1, x.t().mul(2), torch.zeros_like(x), x.clone(), x.double()


@report(LAYOUTS, made((2, 3, 4)), 168278)
def shapes_after_detach_and_squeezes(x: Tensor) -> Any:
    y = x.clone().detach().abs().sqrt()
    return y, y[None, ..., None].squeeze(), y.movedim(0, -1), y.unsqueeze(-1).squeeze(-1)


@report(LAYOUTS, made((4, 6)), strides=True)
def copies_of_permuted_views(x: Tensor) -> Any:
    y = x.view(2, 2, 6).permute(2, 0, 1)
    return y.reshape(6, 4), y.clone(), y.contiguous().sum(0), y.flatten(1), torch.ravel(y)


@report(INTEGERS, lambda: (torch.tensor([-128, -1, 0, 1, 127], dtype=torch.int8),))
def overflow_of_bytes(x: Tensor) -> Any:
    return x + x, x * 3, -x, x.abs(), x - 1, x.to(torch.uint8), x // 2, x % 3, x << 1


@report(INTEGERS, lambda: (torch.tensor([2**31 - 1, -(2**31), 7, -7], dtype=torch.int32),))
def integers_at_their_bounds(x: Tensor) -> Any:
    return x + 1, x * x, x.sum(), x.prod(), x.long() * x, x // 3, x.fmod(3), x.remainder(-3), ~x


@report(INTEGERS, lambda: (torch.tensor([7, -7, 6, 0]), torch.tensor([2, 2, -4, 5])))
def division_of_integers(x: Tensor, y: Tensor) -> Any:
    return (
        x // y,
        x % y,
        x / y,
        torch.div(x, y, rounding_mode="trunc"),
        torch.fmod(x, y),
        torch.div(x, y, rounding_mode="floor"),
        torch.gcd(x, y),
        torch.lcm(x, y),
    )


@report(INTEGERS, lambda: (torch.tensor([True, False, True]), torch.tensor([True, True, False])))
def arithmetic_of_bools(p: Tensor, q: Tensor) -> Any:
    return (
        p + q,
        p * q,
        p & q,
        p ^ q,
        ~p,
        p.sum(),
        p.cumsum(0),
        p.float().mean(),
        p < q,
        p.long() - q.long(),
    )


@report(INTEGERS, lambda: (torch.tensor([2**53 + 1, -(2**53) - 1, 2**62, 3]),))
def large_integers_meet_floats(x: Tensor) -> Any:
    return x.float(), x.double(), x == 2.0**53, x + 0.5, x * 1.0, x.sum(), x.float().long(), x / 3


@report(INTEGERS, lambda: (count(3, 4, dtype=torch.int64),), 150993)
def dtypes_of_sums_and_means(x: Tensor) -> Any:
    y = x.to(torch.int8)
    return y.sum(), y.cumsum(1), y.prod(0), y.float().mean(), (y > 3).sum(0), y.max(1), y.amin()


@report(FLOATS, special, zeros=False)
def roundings(x: Tensor) -> Any:
    return x.round(), x.floor(), x.ceil(), x.trunc(), x.frac(), torch.round(x, decimals=2), x.sgn()


@report(FLOATS, special, zeros=True)
def signs_of_zeros(x: Tensor) -> Any:
    y = x.nan_to_num(3.0)
    return y.abs(), -y, y * 0.0, y.copysign(y - 1), y.sign(), torch.hypot(y, y * 0), y.clamp(-1, 1)


@report(FLOATS, lambda: (special(), special().flip(0)))
def extremes_with_nans(x: Tensor, y: Tensor) -> Any:
    return (
        torch.maximum(x, y),
        torch.fmax(x, y),
        torch.minimum(x, y),
        torch.fmin(x, y),
        x.max(),
        x.argmax(),
        x[:6].max(0),
        x.clamp(min=0),
        x.nanmean(),
        x.nansum(),
        F.relu(x),
        x.sort()[0],
    )


@report(FLOATS, lambda: (special(), special().roll(3)))
def comparisons_with_nans(x: Tensor, y: Tensor) -> Any:
    return (
        x == y,
        x != y,
        x < y,
        x >= y,
        x.isclose(y),
        x.isnan(),
        x.isinf(),
        x.logical_not(),
        x > 0.1,
    )


@report(FLOATS, special)
def logarithms_and_powers_of_special_values(x: Tensor) -> Any:
    return (
        x.log(),
        x.log1p(),
        x.exp(),
        x.expm1(),
        x**2,
        x**-1,
        x**0.5,
        x.rsqrt(),
        2**x,
        x.logit(),
        torch.xlogy(x, x),
        torch.logaddexp(x, x * 2),
        x.sigmoid(),
        x.tanh(),
        F.softplus(x),
        x**0,
    )


@report(FLOATS, lambda: (special(), special().roll(1)))
def remainders_of_special_values(x: Tensor, y: Tensor) -> Any:
    return x % y, torch.fmod(x, y), x // y, x.remainder(3), torch.nextafter(x, y), x.atan2(y)


@report(
    FLOATS, lambda: (wave(5, 7, dtype=torch.bfloat16), wave(5, 7, dtype=torch.bfloat16, phase=1))
)
def sums_of_bfloat16(x: Tensor, y: Tensor) -> Any:
    return (x * y).sum(1), x.softmax(1), F.layer_norm(x, (7,)), x + y * 3, x.float() + y, x.mean()


@report(FLOATS, lambda: (wave(4, 33, dtype=torch.float16) * 100,))
def halves_that_overflow(x: Tensor) -> Any:
    return (
        x * 1000,
        x.sum(1),
        x.pow(3),
        x.exp(),
        x.var(1),
        x.norm(dim=1),
        x.float() * 1e3,
        x.mean(1),
    )


@report(FLOATS, lambda: (wave(3, 5) * 1e4 + 1e5,), 143182)
def norms_with_an_offset(x: Tensor) -> Any:
    return F.layer_norm(x, (5,)), x.var(1), x.std(), F.softmax(x, 1), F.log_softmax(x * 10, 1)


@report(FLOATS, lambda: (torch.tensor([[inf, 1.0], [-inf, -inf], [nan, 0.0], [1e30, 1e30]]),))
def softmax_of_infinities(x: Tensor) -> Any:
    return (
        x.softmax(1),
        x.log_softmax(1),
        x.logsumexp(1),
        x.softmax(0),
        x.cumsum(1),
        x.logcumsumexp(1),
    )


@report(FLOATS, lambda: (wave(1, 3, 16, 16) * 30,), 142839, gradients=True)
def instance_norm_of_images(x: Tensor) -> Any:
    return F.instance_norm(x), F.group_norm(x, 3), F.local_response_norm(x, 2)


@report(INDICES, lambda: (wave(5, 4), torch.tensor([-1, 0, -5, 3])))
def negative_indices(x: Tensor, i: Tensor) -> Any:
    return x[i], x[i, -1], x[:, i % 4], x.index_select(0, i % 5), x.take(i), x[-2:, [-1, 0]]


@report(INDICES, lambda: (wave(4, 3), torch.tensor([0, 2, 0, 1])), gradients=True)
def accumulated_at_equal_indices(x: Tensor, i: Tensor) -> Any:
    y = x * 1
    z = torch.zeros(3, 3).index_add(0, i % 3, y)
    w = torch.zeros(5, 3).scatter_add(0, i[:, None].expand(4, 3), y)
    return z, w, torch.zeros(4, 3).index_put((i,), y, accumulate=True)


@report(INDICES, lambda: (wave(4, 3), torch.tensor([[0, 2, 1], [1, 1, 0]])))
def reductions_by_scatter(x: Tensor, i: Tensor) -> Any:
    y = x[:2]
    return tuple(
        x.scatter_reduce(0, i, y, how, include_self=own)
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    )


@report(INDICES, lambda: (wave(4, 5), wave(4, 5).gt(0.3)))
def masks(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y[m] = 0
    y[m[:, 0]] += 1
    return y, x.masked_fill(m, -inf), torch.where(m, x, 2), x.masked_fill(~m, nan).nansum(1)


@report(INDICES, lambda: (torch.tensor([3.0, 1.0, 2.0, 1.0, 3.0]),))
def sorted_with_equal_values(x: Tensor) -> Any:
    return (
        x.sort(stable=True),
        x.argsort(descending=True, stable=True),
        x.topk(2)[0],
        x.unique(),
        x.msort(),
    )


@report(INDICES, lambda: (wave(3, 4), torch.tensor([5, 1, 0])), 125387)
def values_at_positions_that_are_found(x: Tensor, n: Tensor) -> Any:
    i = (x > 0).int().argmax(1)
    return x[torch.arange(3), i], x.gather(1, i[:, None]), i, torch.searchsorted(x.sort(1)[0], x)


@report(FLOATS, made((3, 5)), 160746)
def many_small_operations_in_a_row(x: Tensor) -> Any:
    y = x
    for k in range(12):
        y = (y * 1.01 + x.cos()).sin() if k % 2 else y.tanh() - x / (k + 2)
    return y, y.cos() + torch.full((3, 5), -0.434918).cos()


@report(INTEGERS, lambda: (torch.tensor([1.5, -2.7, 3e9, -3e9, 0.0]),))
def casts_of_floats(x: Tensor) -> Any:
    return (
        x.long(),
        x.int()[:2],
        x.bool(),
        x.half(),
        x.to(torch.int16)[:2],
        x.double().long(),
        x.bfloat16(),
    )


@report(FLOATS, made((2, 3)), 108963)
def conditions_and_constants(x: Tensor) -> Any:
    y = torch.where(x > 0, x, torch.tensor(2.0, dtype=torch.float64))
    return (
        y,
        x + torch.tensor(1, dtype=torch.float64),
        x * torch.tensor([2]),
        torch.full_like(x, 3) / x,
    )


@report(FLOATS, lambda: (torch.complex(wave(5), wave(5, phase=1)), wave(5)), zeros=False)
def complex_arithmetic(z: Tensor, x: Tensor) -> Any:
    return (
        z * z,
        z / (z + 2),
        z.abs(),
        z.angle(),
        z.conj() * x,
        z.real + z.imag,
        z.exp(),
        z * 2j,
        z == z,
    )


@report(FLOATS, lambda: (torch.tensor([1 - 1j, -2 + 0j]),), 197586)
def angles_of_written_numbers(z: Tensor) -> Any:
    z[1] = complex(-3.0, 0.0)
    return z.angle(), z.abs(), torch.view_as_real(z)


@report(INTEGERS, lambda: (torch.tensor([3, 5]),), refused=True)
def integers_written_by_floats(x: Tensor) -> Any:
    x.mul_(0.5)
    return x


@report(INTEGERS, lambda: (count(1, 4, 4, dtype=torch.int64),), 143738)
def average_of_integers(x: Tensor) -> Any:
    return F.avg_pool2d(x, 2, divisor_override=2)


@report(LAYOUTS, made((4, 4)), 122457)
def views_of_complex_as_real(x: Tensor) -> Any:
    z = torch.view_as_complex((x + 1).view(8, 2))
    a = torch.view_as_real(z)
    return a + 1, torch.view_as_real(z + 1), a


@report(FLOATS, made((8,)), 93824)
def reciprocals_in_place(x: Tensor) -> Any:
    y = x.clone()
    z = y + 1
    y.reciprocal_()
    return z, y, x.log_().exp(), x


@report(FLOATS, lambda: (torch.tensor(3.0),), 94777)
def a_logarithm_then_one_in_place(x: Tensor) -> Any:
    y = torch.log(x)
    x.log_()
    return y


@report(INTEGERS, lambda: (count(6, dtype=torch.int64), count(6, dtype=torch.int8) * 20))
def squares_of_short_integers_added_in_place(x: Tensor, a: Tensor) -> Any:
    x.addcmul_(a, a, value=2)
    return x


@report(FLOATS, lambda: (wave(6), wave(6, dtype=torch.float16) * 1e-4))
def squares_of_halves_added_in_place(x: Tensor, a: Tensor) -> Any:
    x.addcmul_(a, a, value=1e7)
    return x
