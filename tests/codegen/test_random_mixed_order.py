"""Random small functions with sums along and across rows, compared with eager mode in C++ and
Triton."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductor_lab.compiler.lower.passes import split_reductions
from tests.codegen.test_mixed_order_reduction import BACKENDS

ROWS: list[Callable[..., Any]] = [
    lambda x, w: F.layer_norm(x, (x.shape[-1],), w, w),
    lambda x, w: F.gelu(x + w),
    lambda x, w: torch.softmax(x * w, -1),
    lambda x, w: x - x.amax(-1, keepdim=True) * w,
    lambda x, w: F.rms_norm(x, (x.shape[-1],), w).bfloat16().float(),
    lambda x, w: x.cumsum(-1) * w,
]
SUMS: list[Callable[..., Any]] = [
    lambda x: x.sum(tuple(range(x.dim() - 1))),
    lambda x: x.reshape(-1, x.shape[-1]).sum(0),
    lambda x: x.reshape(-1, x.shape[-1]).mean(0, keepdim=True),
    lambda x: x.sum(0),
    lambda x: x.flip(0).sum(0),
    lambda x: x.transpose(0, -1).contiguous().sum(-1),
    lambda x: x.sum(-1),
    lambda x: x.reshape(4, -1, x.shape[-1]).sum(1),
    lambda x: (x / x.square().sum(0, keepdim=True).add(1)).sum(0),
]
SHAPES = [(8, 300), (32, 8), (4, 8, 8), (8, 6, 5), (16, 16), (4, 4, 4, 4), (64, 3)]


def drawn(seed: int) -> tuple[Callable[..., Any], tuple[int, ...]]:
    """A function of two tensors and a vector, and the shape of the tensors."""
    draw = random.Random(seed)
    steps = [(draw.choice(ROWS), draw.choice((0, 1, -1))) for _ in range(draw.randint(1, 4))]
    sums = [(draw.choice(SUMS), draw.randrange(9)) for _ in range(draw.randint(1, 4))]
    keeps = draw.random() < 0.5

    def function(x: Any, y: Any, w: Any) -> Any:
        values = [x, y]
        for step, of in steps:
            values.append(step(values[of] + y, w))
        results = [total(values[of % len(values)]) for total, of in sums]
        return (values[-1], *results) if keeps else tuple(results)

    return function, draw.choice(SHAPES)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the thresholds: real programs need some hundred rows, these need four."""
    limits = {"SHORTEST_ROW": 2, "FEWEST_ROWS": 2, "GPU_PARTS": 2, "CPU_PARTS": 4}
    for name, value in {**limits, "ELEMENTS_AT_ONCE": 64}.items():
        monkeypatch.setattr(split_reductions, name, value)


@pytest.mark.parametrize(("language", "count"), [("C++", 30), ("Triton", 12)])
def test_values_and_gradients_agree_with_eager_mode(language: str, count: int, small: None) -> None:
    across = 0
    for seed in range(count):
        function, shape = drawn(seed)
        torch.manual_seed(seed)
        given = [torch.randn(size, requires_grad=True) for size in (shape, shape, shape[-1:])]
        compiler = BACKENDS[language]()
        got, expected = compiler(function)(*given), function(*given)
        along = [torch.randn_like(value) for value in expected]
        gradients = (
            torch.autograd.grad(v, given, along, allow_unused=True) for v in (got, expected)
        )
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4, msg=f"seed {seed}")
        for mine, theirs in zip(*gradients, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3, msg=f"seed {seed}")
        across += any(kernel.group.in_parts is not None for kernel in compiler.kernels)
    assert across > count / 3


@pytest.mark.parametrize("language", BACKENDS)
def test_sums_that_need_other_sums_do_not_join_the_kernel_of_the_rows(language: str) -> None:
    """They share a separate kernel.  A kernel that also sums rows visits the batch part by part, so
    the first of these sums is complete only at its end."""

    def distance_and_similarity(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.pairwise_distance(x[0], x[1]), F.cosine_similarity(x[0], x[1])

    given = torch.randn(2, 96, 32, 96, generator=torch.Generator().manual_seed(0))
    found = BACKENDS[language]()(distance_and_similarity)(given)
    torch.testing.assert_close(found, distance_and_similarity(given))
    given.requires_grad_()
    got = BACKENDS[language]()(distance_and_similarity)(given)
    expected = distance_and_similarity(given)
    torch.testing.assert_close(got, expected)
    for mine, theirs in zip(got, expected, strict=True):
        along = torch.ones_like(theirs)
        both = (torch.autograd.grad(v, given, along, retain_graph=True)[0] for v in (mine, theirs))
        torch.testing.assert_close(*both)
