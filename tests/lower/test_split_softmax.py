"""Softmax of long rows in parts: the same values, also for empty rows and rows with infinities."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.lower.passes import split_softmax
from inductor_lab.compiler.lower.passes.gpu_rows import ALIGNED
from inductor_lab.compiler.schedule.verify import verify_schedule

ROWS, LENGTH = 32, 410
INF, NAN = float("inf"), float("nan")


@pytest.fixture
def short_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in {"LONG_ROW": 400, "PART": 128, "SHORTEST_PART": 32}.items():
        monkeypatch.setattr(split_softmax, name, number)


def strange(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Rows with parts of -inf, rows of -inf, and rows with NaN, with inf, and with large
    numbers."""
    x = 3 * torch.randn(ROWS, LENGTH, generator=torch.Generator().manual_seed(0))
    x[0, :200] = -INF
    x[1] = -INF
    x[2, 77] = NAN
    x[3, 300] = INF
    x[4] += 300
    return x.to(dtype)


def in_triton(function: Callable[..., torch.Tensor], *args: torch.Tensor) -> Compilation:
    c = lab.inspect(function, *args, options={"language": "triton"})
    assert isinstance(c, Compilation)
    return c


@pytest.mark.usefixtures("short_ones_too")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_rows_in_parts(function: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    x = strange(dtype)
    c = in_triton(lambda x: function(x * 0.5, -1), x)
    part = c.graphs[0].forward
    verify(part.loops)
    verify_schedule(part.schedule)
    assert "p0<5" in str(part.loops), part.loops
    expected = function(x * 0.5, -1)
    rtol, atol = (2e-5, 1e-7) if dtype is torch.float32 else (2e-3, 1e-4)
    for found in (c.result, *part.loops.run(x), *part.schedule.run(x)):
        assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.usefixtures("short_ones_too")
def test_other_reductions_are_unchanged() -> None:
    others: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "short": lambda x: x[:, :200].softmax(-1),
        "columns": lambda x: x.softmax(0),
        "another maximum": lambda x: (x - (x + 1).amax(1, keepdim=True)).exp().sum(1, keepdim=True),
        "no even parts": lambda x: x[:, :409].softmax(-1),
    }
    x = torch.randn(ROWS, LENGTH, generator=torch.Generator().manual_seed(0))
    for name, function in others.items():
        c = in_triton(function, x)
        assert "_best" not in str(c.graphs[0].forward.loops), name
        assert_close(c.result, function(x), rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("short_ones_too")
def test_a_loss_reads_its_scores_once_for_maximum_and_sum() -> None:
    scores = torch.randn(ROWS, LENGTH, generator=torch.Generator().manual_seed(0))
    wanted = torch.arange(ROWS)
    x, y = (scores.clone().requires_grad_() for _ in range(2))
    c = in_triton(F.cross_entropy, x, wanted)
    first = c.graphs[0].forward.kernels[0]
    assert str(first).count("tl.load") == 1 and "for " not in str(first)
    expected = F.cross_entropy(y, wanted)
    assert_close(c.result, expected)
    (found,), (gradient,) = torch.autograd.grad(c.result, x), torch.autograd.grad(expected, y)
    assert_close(found, gradient)


def test_the_result_keeps_its_axes() -> None:
    length = 12 * 2731
    assert length % ALIGNED, "rows that are not aligned are not shared"
    x = torch.randn(2 * ROWS, length)
    c = lab.inspect(lambda x: x.softmax(-1), x, target="cuda:90")
    kernels = c.graphs[0].forward.kernels
    assert [kernel.launch["xnumel"] for kernel in kernels] == [24 * ROWS, 2 * ROWS, 2 * ROWS]
    assert kernels[-1].launch["ynumel"] == length
    assert kernels[-1].launch["constants"] == {"XBLOCK": 1, "YBLOCK": 1024}
