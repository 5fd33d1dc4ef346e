"""Mixed-order reductions on a GPU: kernels that sum over their own outer axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab
from tests.codegen.test_mixed_order_reduction import biased_softmax, gelu, layer_norm

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "shape", [(8192, 2048), (4, 1024, 768), (16, 512, 1000), (2048, 4096), (100_000, 256)]
)
@pytest.mark.parametrize("function", [layer_norm, gelu, biased_softmax])
def test_gradients(function: Callable[..., Any], shape: Any, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    vectors = 2 if function is layer_norm else 1
    sizes = [shape, *[shape[-1:]] * vectors]
    given = [torch.randn(size, dtype=dtype, device="cuda", requires_grad=True) for size in sizes]
    exact = [x.detach().double().requires_grad_() for x in given]
    along = torch.randn(shape, dtype=dtype, device="cuda")
    torch.compiler.reset()
    compiled = lab.compile(function)
    got = torch.autograd.grad(compiled(*given), given, along)
    again = torch.autograd.grad(compiled(*given), given, along)
    eager = torch.autograd.grad(function(*given), given, along)
    values = torch.autograd.grad(function(*exact), exact, along.double())
    for mine, same, theirs, value in zip(got, again, eager, values, strict=True):
        assert torch.equal(mine, same)
        scale = float(value.abs().max())
        error, eagers = (float((x.double() - value).abs().max()) for x in (mine, theirs))
        assert error <= 1.5 * eagers + 8 * torch.finfo(dtype).eps * scale
