"""Attention on a CPU is a C++ kernel of ours where that is faster than the library."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import inductor_lab as lab
from inductor_lab.compiler.accelerate import own_attention
from inductor_lab.compiler.rewrite.aten import match_attention

pytestmark = pytest.mark.usefixtures("counts_as_fast")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@pytest.fixture
def counts_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_attention, "is_fast_on_this_cpu", lambda dtype, keys: True)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def written_out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


def given(
    rows: int, columns: int, width: int = 32, dtype: torch.dtype = torch.float32
) -> list[Tensor]:
    torch.manual_seed(0)
    lengths = (rows, columns, columns)
    return [torch.randn(2, n, 3, width).to(dtype).transpose(1, 2) for n in lengths]


def none(rows: int, columns: int) -> None:
    return None


def padding(rows: int, columns: int) -> Tensor:
    mask = torch.ones(2, 1, 1, columns, dtype=torch.bool)
    mask[0, ..., (columns + 1) // 2 :] = False
    return mask.expand(2, 1, rows, columns)


def of_each_head(rows: int, columns: int) -> Tensor:
    return torch.randn(2, 3, rows, columns)


def of_all(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns)


def rows_of_nothing(rows: int, columns: int) -> Tensor:
    mask = torch.rand(2, 1, rows, columns) > 0.3
    mask[0, 0, : rows // 2] = False
    return mask


MASKS: tuple[Callable[[int, int], Any], ...] = (
    none, padding, of_each_head, of_all, rows_of_nothing,
)  # fmt: skip


def is_ours(c: lab.Compilation) -> bool:
    (step,) = (one for one in c.graphs[0].forward.rewrites.steps if one.name == "own_attention")
    return bool(step.fired)


def agrees(c: lab.Compilation, args: list[Tensor], mask: Tensor | None = None) -> None:
    """The error from float64 is at most twice that of eager mode, in the unit of the dtype."""
    exact = mask.double() if mask is not None and mask.is_floating_point() else mask
    wanted = attention(*(x.double() for x in args), exact)
    eager = attention(*args, mask)
    unit = torch.finfo(args[0].dtype).eps * wanted.abs().max()
    bound = 2 * (eager.double() - wanted).abs().max() + unit
    assert is_ours(c)
    assert (c.result.double() - wanted).abs().max() <= bound
    assert c.result.stride() == eager.stride() and c.result.dtype == eager.dtype


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", [(64, 64), (70, 90), (33, 130), (130, 1), (16, 197)])
def test_lengths_and_masks(mask: Any, lengths: tuple[int, int]) -> None:
    args, shown = given(*lengths), mask(*lengths)
    agrees(lab.inspect(attention, *args, shown), args, shown)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [2, 8, 20, 64, 80, 256])
def test_widths_and_dtypes(width: int, dtype: str) -> None:
    args = given(37, 75, width, DTYPES[dtype])
    agrees(lab.inspect(attention, *args), args)


@pytest.mark.parametrize("layout", ["heads first", "keys of one head"])
def test_layouts(layout: str) -> None:
    args = given(40, 70)
    match layout:
        case "heads first":
            args = [x.contiguous() for x in args]
        case "keys of one head":
            args = [args[0], *(x[:, :1].expand(-1, 3, -1, -1) for x in args[1:])]
    agrees(lab.inspect(attention, *args), args)


@pytest.mark.parametrize("lengths", [(64, 64), (130, 130), (40, 200), (200, 40)])
def test_causal_attention(lengths: tuple[int, int]) -> None:
    args = given(*lengths)
    c = lab.inspect(causal, *args)
    assert is_ours(c)
    torch.testing.assert_close(c.result, causal(*args))


@pytest.mark.parametrize("function", [attention, causal])
def test_symbolic_lengths(function: Any) -> None:
    compiled = lab.compile(function, dynamic=True)
    for lengths in ((64, 64), (70, 90), (33, 200)):
        args = given(*lengths)
        torch.testing.assert_close(compiled(*args), function(*args))


@pytest.mark.parametrize("place", ["query", "key", "value"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e30, -1e30])
def test_special_values(place: str, value: float) -> None:
    args = given(40, 70)
    args[("query", "key", "value").index(place)][0, 0, 3, 5] = value
    torch.testing.assert_close(lab.inspect(attention, *args).result, attention(*args),
                               equal_nan=True)  # fmt: skip


def test_attention_that_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_attention, "SMALLEST", 1)
    args = given(40, 70)
    c = lab.inspect(written_out, *args)
    assert is_ours(c)
    torch.testing.assert_close(c.result, written_out(*args))


@pytest.mark.parametrize("case", ["gradients", "dropout", "one query", "switched off"])
def test_other_calls_stay_library_calls(case: str) -> None:
    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        dropout = 0.5 if case == "dropout" else 0.0
        return F.scaled_dot_product_attention(q, k, v, None, dropout)

    args = given(1 if case == "one query" else 64, 64)
    for x in args:
        x.requires_grad_(case == "gradients")
    off = ("flash_attention",) if case == "switched off" else ()
    c = lab.inspect(call, *args, options={"rewrites_off": off})
    assert not is_ours(c)


@pytest.mark.skipif(sys.platform == "win32", reason="its compiler has no vectors for the kernel")
@pytest.mark.parametrize("avx512, amx, dtype, keys, fast", [
    (False, False, torch.float32, 64, False),
    (True, False, torch.float32, 2000, True),
    (True, False, torch.bfloat16, 2000, True),
    (True, True, torch.float32, 64, True),
    (True, True, torch.float32, 2000, False),
    (True, True, torch.bfloat16, 64, False),
])  # fmt: skip
def test_the_processor_decides(
    avx512: bool, amx: bool, dtype: torch.dtype, keys: int, fast: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.undo()
    has = {"avx512_f": avx512, "amx_tile": amx}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has)
    assert own_attention.is_fast_on_this_cpu(dtype, keys) is fast
