"""A kernel with other block sizes computes the same result."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from inductor_lab.compiler.runtime.triton.launch import load_kernel
from inductor_lab.compiler.runtime.triton.tune_blocks import variants
from tests.codegen.triton_programs import kernels_of

FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "points": lambda x: (x + 1).sin(),
    "rows": lambda x: F.softmax(x, -1),
    "columns": lambda x: x.sum(0),
    "a tile": lambda x: x + x.t().contiguous().t(),
    "part of a row": lambda x: F.pad(x, (1, 2)).cos(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(70, 70), (33, 5000)])
def test_other_block_sizes_give_the_same_result(name: str, shape: tuple[int, int]) -> None:
    function, x = FUNCTIONS[name], torch.randn(*shape)
    (kernel, *more) = kernels_of(function, x)
    others = variants(kernel)
    assert len(others) > 3
    assert len({repr(k.launch) for k in (kernel, *others)}) == len(others) + 1
    if more:
        return
    for other in (kernel, *others):
        assert [p.name for p in other.parameters] == [p.name for p in kernel.parameters]
        expected = function(x)
        result = torch.full_like(expected, float("nan"))
        load_kernel(other, interpret=True)(x, result)
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
