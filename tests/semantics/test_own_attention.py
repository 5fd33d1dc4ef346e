"""Attention with a mask on a GPU is a generated kernel that adds the mask to the scores in
registers.  Without a GPU, Triton's interpreter runs it.  `test_own_attention_on_a_cpu.py` has the
kernel for a CPU.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import inductor_lab as lab
from inductor_lab.compiler.accelerate import flash
from inductor_lab.compiler.records import CompiledPart

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def kernels_of_triton_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE == "cpu":
        monkeypatch.setattr(flash, "DEVICES", {"cpu": "triton"})


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def given(
    rows: int, columns: int, width: int = 32, dtype: torch.dtype = torch.float16
) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = ((2, rows, 3, width), (2, columns, 3, width), (2, columns, 3, width))
    return [torch.randn(s, device=DEVICE).to(dtype).transpose(1, 2) for s in shapes]


def padding(rows: int, columns: int) -> Tensor:
    """The valid keys of each batch element, for all heads and rows."""
    mask = torch.ones(2, 1, 1, columns, dtype=torch.bool, device=DEVICE)
    mask[0, ..., columns // 2 :] = False
    return mask.expand(2, 1, rows, columns)


def of_each_head(rows: int, columns: int) -> Tensor:
    return torch.randn(2, 3, rows, columns, device=DEVICE).half()


def of_all(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, device=DEVICE).half()


def rows_of_nothing(rows: int, columns: int) -> Tensor:
    mask = torch.rand(2, 1, rows, columns, device=DEVICE) > 0.3
    mask[0, 0, : rows // 2] = False
    return mask


MASKS = (padding, of_each_head, of_all, rows_of_nothing)


def rules_of(part: CompiledPart) -> list[str]:
    (step,) = (step for step in part.rewrites.steps if step.name == "own_attention")
    return [fired.rule for fired in step.fired]


def as_near_to_float64_as_eager(result: Tensor, args: list[Tensor], mask: Tensor) -> None:
    exact = mask if mask.dtype is torch.bool else mask.double()
    wanted = attention(*(x.double() for x in args), exact)
    bound = 2 * (attention(*args, mask).double() - wanted).abs().max() + 1e-3
    assert (result.double() - wanted).abs().max() <= bound


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", [(64, 64), (70, 90), (33, 130), (130, 1)])
def test_errors_are_as_small_as_those_of_eager_mode(mask: Any, lengths: tuple[int, int]) -> None:
    args, shown = given(*lengths), mask(*lengths)
    c = lab.inspect(attention, *args, shown)
    assert rules_of(c.graphs[0].forward) == ["own_attention"]
    as_near_to_float64_as_eager(c.result, args, shown)
    assert c.result.stride() == attention(*args, shown).stride()


@pytest.mark.parametrize("mask", [padding, of_all])
def test_symbolic_lengths(mask: Any) -> None:
    compiled = lab.compile(attention, dynamic=True)
    for lengths in ((64, 64), (70, 90), (33, 200)):
        args, shown = given(*lengths, dtype=torch.bfloat16), mask(*lengths)
        shown = shown if shown.dtype is torch.bool else shown.bfloat16()
        as_near_to_float64_as_eager(compiled(*args, shown), args, shown)


def test_equal_masks_of_several_layers_are_computed_once() -> None:
    def layers(q: Tensor, k: Tensor, v: Tensor, keys: Tensor) -> Tensor:
        for _ in range(2):
            mask = torch.where(keys[:, None, None, :].expand(2, 1, 40, 50), 0.0, -1e4).to(q.dtype)
            q = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return q

    args = [*given(40, 50), torch.rand(2, 50, device=DEVICE) > 0.5]
    c = lab.inspect(layers, *args)
    part = c.graphs[0].forward
    torch.testing.assert_close(c.result, layers(*args), rtol=2e-3, atol=2e-3)
    first, second = part.written
    assert str(first) == str(second) and str(first).count("tl.dot") == 2
    assert "check_index" not in str(first) and "count" not in str(first)


def test_the_kernel_compiles_for_a_gpu_target() -> None:
    (kernel,) = lab.inspect(attention, *given(64, 64), padding(64, 64)).graphs[0].forward.written
    assert "wgmma" in str(kernel.ladder("cuda:90")["ptx"])


@pytest.mark.parametrize(
    "case", ["gradients", "float32", "width", "one query", "switched off", "no mask"]
)
def test_other_calls_stay_library_calls(case: str) -> None:
    dtype = torch.float32 if case == "float32" else torch.float16
    rows = 1 if case == "one query" else 64
    args = given(rows, 64, 24 if case == "width" else 32, dtype)
    for x in args:
        x.requires_grad_(case == "gradients")
    mask: Any = None if case == "no mask" else padding(rows, 64)
    off = ("flash_attention",) if case == "switched off" else ()
    c = lab.inspect(attention, *args, mask, options={"rewrites_off": off})
    assert rules_of(c.graphs[0].forward) == []
    torch.testing.assert_close(c.result, attention(*args, mask))
