"""Prefetching: the next row, if an expensive loop reads the row a second time; and the elements
that a long sum adds later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab

PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "transposed": lambda x: torch.softmax(x.transpose(0, 1), -1),
}


def inspected(run: Callable[..., Any], *args: torch.Tensor) -> lab.Compilation:
    torch.compiler.reset()
    return lab.inspect(run, *args)


def text_of(c: lab.Compilation) -> str:
    return "\n".join(str(kernel.code) for kernel in c.graphs[0].forward.kernels)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("columns", [1024, 4097])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name: str, columns: int, dtype: torch.dtype) -> None:
    x = torch.randn(3, 40, columns, generator=torch.Generator().manual_seed(0)).to(dtype)
    c = inspected(PROGRAMS[name], x)
    exact = PROGRAMS[name](x.double())
    near = {torch.float32: (2e-6, 0.0), torch.float64: (1e-14, 0.0), torch.float16: (1e-3, 1e-5)}
    rtol, atol = near[dtype]
    torch.testing.assert_close(c.result.double(), exact, rtol=rtol, atol=atol)
    if dtype is torch.float32:
        assert text_of(c).count("lab_fetch(") == 1


def test_the_next_row_is_prefetched() -> None:
    text = text_of(inspected(PROGRAMS["softmax"], torch.randn(64, 2048)))
    call = text.index("lab_fetch(in0 + 2048 * i0 + j0_wide + 2048, 64);")
    assert call < text.index("lab_exp"), "before the row is computed"
    assert text.count("lab_fetch") == 1


CHEAP: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "short rows": lambda x: torch.softmax(x[:, :256], -1),
    "one row for all": lambda x: torch.softmax(x[0], -1),
}


@pytest.mark.parametrize("name", CHEAP)
def test_cheap_loops_have_no_prefetch(name: str) -> None:
    x = torch.randn(64, 2048)
    c = inspected(CHEAP[name], x)
    assert "lab_fetch" not in text_of(c)
    torch.testing.assert_close(c.result, CHEAP[name](x))


SUMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a row that is read twice": lambda x: x / x.square().sum(-1, keepdim=True),
    "expensive terms": lambda x: x.exp().sum(-1),
    "all": lambda x: x.square().sum(),
    "halves": lambda x: x.bfloat16().float().abs().sum(-1),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_prefetches_two_pages_ahead(name: str) -> None:
    x = torch.randn(64, 1536)
    c = inspected(SUMS[name], x)
    (line,) = (line for line in text_of(c).splitlines() if "lab_fetch" in line)
    assert line.endswith("j0_wide + 2048, 64);")
    torch.testing.assert_close(c.result, SUMS[name](x))
