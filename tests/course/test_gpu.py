"""A student's kernel in Triton's interpreter leaves Triton as it was."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab

tl = pytest.importorskip("triton.language")


def without_the_largest(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n, -1e30)
    tl.store(out + at, value - tl.max(value, 0), at < n)


def test_other_kernels_compile_after_one_was_interpreted() -> None:
    from inductor_lab.course.gpu import run_kernel

    x, out = torch.randn(6), torch.empty(6)
    run_kernel(without_the_largest, (1,), x, out, 6, BLOCK=8)
    assert torch.equal(out, x - x.max())
    kernel = lab.inspect(lambda x: x.cos() + 1, torch.randn(100)).parts[0].kernels[0]
    assert "cos" in str(kernel.ladder("cuda:90")["ptx"])
