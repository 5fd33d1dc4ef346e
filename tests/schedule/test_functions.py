"""Typical user functions: the number of kernels, and correct results."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.schedule.programs import Scheduled, checked


def normal(*size: int) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(1))


def chain(x):
    return ((x + 1) * 2).sin()


def softmax(x):
    return torch.softmax(x, -1)


def log_softmax(x):
    return torch.log_softmax(x, -1)


def layer_norm(x, w, b):
    return F.layer_norm(x, (48,), w, b)


def rms_norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def batch_norm(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True)


def gelu(x):
    return F.gelu(x)


def moments(x):
    return x.mean(-1), x.var(-1), x.amax(-1), x.argmin(-1)


def sin_and_cos(x):
    return x.sin(), x.cos()


def cat_of_neg(a, b):
    return torch.maximum(torch.cat([a.neg(), b]), b[:1])


def transposed_sum(a, b):
    return (a * 2 + b.t().exp()).sum(1)


def reshaped(x):
    return (x.exp().reshape(6, 8, -1) + 1).transpose(0, 1)


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ v


def residual_norm(x, y, w):
    h = x + y
    return h, h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6) * w


def mean_of_squares(x, y):
    return ((x - y) ** 2).mean().sqrt()


def cross_entropy(x):
    return F.cross_entropy(x, torch.arange(x.shape[0]) % x.shape[1])


X = (32, 48)
CASES = [
    (chain, [X], 1),
    (softmax, [X], 1),
    (log_softmax, [X], 1),
    (layer_norm, [(4, 8, 48), (48,), (48,)], 1),
    (rms_norm, [X, (48,)], 1),
    (batch_norm, [(4, 3, 5, 5), (3,), (3,)], 1),
    (gelu, [X], 1),
    (moments, [X], 1),
    (sin_and_cos, [X], 1),
    (cat_of_neg, [(5, 8), (5, 8)], 1),
    (transposed_sum, [(32, 48), (48, 32)], 1),
    (reshaped, [X], 1),
    (attention, [(2, 3, 16, 8)] * 3, 1),
    (residual_norm, [X, X, (48,)], 1),
    (mean_of_squares, [X, X], 1),
    (cross_entropy, [X], 2),
]


@pytest.mark.parametrize(
    ("function", "sizes", "groups"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_function(function, sizes, groups):
    schedule = checked(function, *(normal(*size) for size in sizes))
    assert len(schedule.groups) == groups, str(schedule)


def test_without_fusion_each_nest_is_a_kernel():
    schedule = checked(softmax, normal(*X), enabled=False)
    assert len(schedule.groups) == schedule.before.kernels == 5
    assert schedule.before == schedule.after
    assert {decision.choice for decision in schedule.decisions} == {"disabled"}


def test_gradient_of_sin_squared_plus_cos_squared():
    x = normal(16, 16).requires_grad_()
    compiler = Scheduled()
    result = compiler(lambda x: x.sin() ** 2 + x.cos() ** 2, x)
    result.sum().backward()
    torch.testing.assert_close(result, torch.ones(16, 16))
    torch.testing.assert_close(x.grad, torch.zeros(16, 16), atol=1e-6, rtol=0)
    assert {name: len(s.groups) for name, s in compiler.schedules.items()} == {
        "forward": 1,
        "backward": 1,
    }


def block(x, w, b, up, down):
    """The second half of a transformer layer."""
    h = F.layer_norm(x, (16,), w, b)
    return x + F.gelu(h @ up) @ down


def test_transformer_layer_with_gradients():
    sizes = [(4, 8, 16), (16,), (16,), (16, 32), (32, 16)]
    ours = [normal(*size).double().requires_grad_() for size in sizes]
    theirs = [value.detach().clone().requires_grad_() for value in ours]
    compiler = Scheduled()
    result, expected = compiler(block, *ours), block(*theirs)
    torch.testing.assert_close(result, expected)
    result.square().sum().backward()
    expected.square().sum().backward()
    for mine, reference in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, reference.grad)
    assert len(compiler.schedules["forward"].groups) == 3


def test_symbolic_sizes():
    compiler = Scheduled()
    for rows in (5, 9):
        x = normal(rows, 12)
        result = compiler(lambda x: torch.softmax(x * 2, -1) + x.mean(), x, dynamic=True)
        torch.testing.assert_close(result, torch.softmax(x * 2, -1) + x.mean())


@pytest.mark.parametrize("size", [(0, 4), (4, 0), ()])
def test_tensors_without_elements_or_without_axes(size):
    checked(chain, normal(*size))
    checked(lambda x: (x.exp() * 2).sum() + 1, normal(*size))
