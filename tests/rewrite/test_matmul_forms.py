"""Rewrites of matrix products.

On a GPU: padding to whole vectors, and few rows without their bias.  On a CPU without 16-bit
instructions: products in float32.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.rewrite import passes
from inductor_lab.compiler.rewrite.aten import matmul_forms
from inductor_lab.compiler.rewrite.facts import RewriteFacts
from inductor_lab.compiler.rewrite.passes import rewrite

BF16 = torch.bfloat16


@pytest.fixture(autouse=True)
def always_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul_forms, "PAYS", 0)


def traced(fn: Callable[..., Any], *given: torch.Tensor) -> GraphModule:
    """The graph of a function of GPU tensors; the GPU need not exist."""
    with FakeTensorMode():
        fakes = [torch.empty(x.shape, dtype=x.dtype, device="cuda") for x in given]
        return make_fx(fn)(*fakes)


def ops(module: GraphModule) -> Counter[str]:
    return Counter(str(n.target) for n in module.graph.nodes if n.op == "call_function")


def same(fn: Callable[..., Any], *given: torch.Tensor, **tolerance: float) -> Counter[str]:
    """Checks that the rewritten graph has the results and layouts of the function; returns its
    operators."""
    work = rewrite(traced(fn, *given), "forward", Options()).module
    result, expected = work(*given), fn(*given)
    torch.testing.assert_close(result, expected, **tolerance)
    assert result.stride() == expected.stride()
    return ops(work)


CASES = {
    "columns": lambda x, w: x @ w.t(),
    "inner": lambda x, w: (x @ w.t()) @ w,
    "rows": lambda x, w: (x @ w.t()).t() @ x,
}


@pytest.mark.parametrize("name", CASES)
def test_padded(name: str) -> None:
    x, w = torch.randn(32, 16, dtype=BF16), torch.randn(37, 16, dtype=BF16)
    found = same(CASES[name], x, w)
    assert found["aten.constant_pad_nd.default"] == (1 if name == "columns" else 2)


def test_a_matrix_is_padded_once_in_its_memory_order() -> None:
    def backward(x, w, grad):
        return grad @ w, grad.t() @ x

    x, w = torch.randn(32, 16, dtype=BF16), torch.randn(37, 16, dtype=BF16)
    grad = torch.randn(32, 37, dtype=BF16)
    work = rewrite(traced(backward, x, w, grad), "backward", Options()).module
    for result, expected in zip(work(x, w, grad), backward(x, w, grad), strict=True):
        torch.testing.assert_close(result, expected)
    pads = work.graph.find_nodes(op="call_function", target=torch.ops.aten.constant_pad_nd.default)
    assert sorted(tuple(pad.meta["val"].shape) for pad in pads) == [(32, 40), (40, 16)]
    assert not any("clone" in name for name in ops(work) if ops(work)[name] > 1)


def test_unchanged_products(monkeypatch: pytest.MonkeyPatch) -> None:
    def product(x, w):
        return x @ w.t()

    aligned = torch.randn(32, 16, dtype=BF16), torch.randn(40, 16, dtype=BF16)
    assert "aten.constant_pad_nd.default" not in same(product, *aligned)
    wide = torch.randn(32, 16), torch.randn(37, 16)
    assert "aten.constant_pad_nd.default" not in same(product, *wide)
    monkeypatch.setattr(matmul_forms, "PAYS", 120)
    small = torch.randn(32, 16, dtype=BF16), torch.randn(37, 16, dtype=BF16)
    assert "aten.constant_pad_nd.default" not in same(product, *small)


def test_few_rows_without_their_bias() -> None:
    given = torch.randn(5), torch.randn(3, 4), torch.randn(4, 5)
    assert "aten.addmm.default" not in same(torch.addmm, *given)
    many = torch.randn(5), torch.randn(2000, 4), torch.randn(4, 5)
    assert "aten.addmm.default" in same(torch.addmm, *many)
    assert "aten.addmm.default" in same(torch.addmm, *(x.to(BF16) for x in given))


WIDENED = {
    "mm": (lambda x, w: x @ w, (32, 16), (16, 24)),
    "mm of what is transposed": (lambda x, w: x.t() @ w.t(), (16, 32), (24, 16)),
    "addmm": (lambda x, w: torch.addmm(x[0], x, w), (32, 24), (24, 24)),
    "bmm": (lambda x, w: x @ w, (3, 17, 16), (3, 16, 20)),
    "convolution": (lambda x, w: F.conv2d(x, w), (2, 3, 6, 6), (4, 3, 3, 3)),
    "convolution of the channels last": (
        lambda x, w: F.conv2d(x.to(memory_format=torch.channels_last), w), (2, 3, 6, 6),
        (4, 3, 3, 3),
    ),
    "a transposed one": (lambda x, w: F.conv_transpose1d(x, w), (2, 4, 6), (4, 3, 3)),
}  # fmt: skip
LEFT = {
    "few rows": (lambda x, w: x @ w, (15, 16), (16, 24)),
    "a factor": (lambda x, w: torch.addmm(x[0], x, w, alpha=2), (32, 24), (24, 24)),
}


def on_a_cpu(fn: Callable[..., Any], *given: torch.Tensor) -> GraphModule:
    with FakeTensorMode() as mode:
        return make_fx(fn)(*map(mode.from_tensor, given))


@pytest.mark.parametrize("dtype", [BF16, torch.float16])
@pytest.mark.parametrize("name", [*WIDENED, *LEFT])
def test_sixteen_bit_products_on_a_cpu_without_instructions_for_them(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul_forms, "onednn_supports", lambda dtype: dtype is torch.float32)
    fn, *shapes = {**WIDENED, **LEFT}[name]
    given = [torch.randn(shape, dtype=dtype) for shape in shapes]
    module = on_a_cpu(fn, *given)
    made = rewrite(module, "forward", Options())
    assert any(step.name == "products" and step.changed for step in made.steps) == (name in WIDENED)
    result, expected, exact = made.module(*given), fn(*given), fn(*(x.double() for x in given))
    assert (result.dtype, result.stride()) == (expected.dtype, expected.stride())
    error, of_eager = ((n.double() - exact).abs().max() for n in (result, expected))
    assert error <= 1.1 * of_eager
    for options in ({"rewrites_off": ("products",)}, {"target": "cuda:90"}):
        same = rewrite(module, "forward", Options(**options))
        assert not any(step.name == "products" and step.changed for step in same.steps)


def test_other_products_on_a_cpu_are_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = torch.randn(32, 16), torch.randn(37, 16)
    facts = RewriteFacts(frozenset(), lambda node: None, Options())
    assert not list(passes.products(on_a_cpu(lambda x, w: x @ w.t(), x, w), facts))
    monkeypatch.setattr(matmul_forms, "onednn_supports", lambda dtype: True)
    module = on_a_cpu(lambda x, w: x @ w.t(), x.to(BF16), w.to(BF16))
    assert not list(passes.products(module, facts))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_bias_of_a_convolution_is_added_separately(dims: int, transposed: bool) -> None:
    convolve = getattr(torch.nn.functional, f"conv{'_transpose' * transposed}{dims}d")
    x, w, bias = torch.randn(2, 3, *[6] * dims), torch.randn(3, 3, *[3] * dims), torch.randn(3)
    found = same(lambda x, w, b: convolve(x, w, b).relu(), x, w, bias, rtol=1e-5, atol=1e-5)
    assert found["aten.add.Tensor"] == found["aten.convolution.default"] == 1
    assert not same(lambda x, w: convolve(x, w), x, w)["aten.add.Tensor"]
