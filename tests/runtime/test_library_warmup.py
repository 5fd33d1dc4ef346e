"""The small library calls that warm up libraries while a graph is compiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternCall,
    Layout,
    LoopProgram,
)
from inductor_lab.compiler.runtime import library_warmup

GPU = "cuda:90"


def kinds(fn: Any, *args: Any) -> set[library_warmup.Kind]:
    c = lab.inspect(fn, *args, target=GPU)
    programs = [part.schedule.program for part in c.parts]
    return {kind for p in programs for step in p.steps for kind in library_warmup._kinds(step, p)}


def small(*size: int, dtype: torch.dtype = torch.float32) -> library_warmup.Small:
    return library_warmup.Small(size, dtype, "cuda:0")


def test_equal_products_of_many_sizes_are_one_kind() -> None:
    def f(x: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ v).sin() @ w

    found = kinds(f, torch.ones(64, 300), torch.ones(300, 500), torch.ones(500, 70))
    assert found == {("aten.mm.default", (small(16, 16), small(16, 16)))}


def test_sizes_below_the_minimum_are_kept() -> None:
    found = kinds(torch.bmm, torch.ones(3, 40, 8), torch.ones(3, 8, 50))
    assert found == {("aten.bmm.default", (small(3, 16, 8), small(3, 8, 16)))}


def test_no_warm_up_on_a_cpu() -> None:
    c = lab.inspect(torch.mm, torch.ones(30, 40), torch.ones(40, 50))
    program = c.parts[0].schedule.program
    assert program.steps and library_warmup.warm_up_libraries(program) == []


def attention(length: int, dropout: float) -> LoopProgram:
    """Return a program with one step, a call of flash attention on a GPU."""
    names, size = ("q", "k", "v"), (8, 12, length, 64)
    buffers = {
        name: Buffer(name, BufferKind.INPUT, torch.float16, "cuda:0", Layout.contiguous(size))
        for name in names
    }
    views = tuple(BufferView(name, buffers[name].layout) for name in names)
    op = "aten._scaled_dot_product_flash_attention.default"
    call = ExternCall(("out", *[None] * 8), op, (*views, dropout, True))
    return LoopProgram("f", names, buffers, (call,), ())


def test_attention_has_no_dropout_and_keeps_its_length() -> None:
    program = attention(512, 0.1)
    ((op, args),) = library_warmup._kinds(program.steps[0], program)
    assert op.endswith("flash_attention.default")
    assert args == (*[small(1, 1, 512, 64, dtype=torch.float16)] * 3, 0.0, True)


def test_no_warm_up_of_attention_with_a_mask() -> None:
    """A kernel reads rows of a mask in words of 16 bytes, even if they are not aligned.

    With a mask of 12 by 12 in float16, this ends the process's use of the GPU.
    """
    program = attention(12, 0.0)
    (flash,) = program.steps
    assert isinstance(flash, ExternCall) and list(library_warmup._kinds(flash, program))
    mask = Buffer("mask", BufferKind.INPUT, torch.float16, "cuda:0", Layout.contiguous((12, 12)))
    op = "aten._scaled_dot_product_efficient_attention.default"
    given = (*flash.args[:3], BufferView("mask", mask.layout), True, 0.0, True)
    program = replace(program, buffers={**program.buffers, "mask": mask})
    masked = ExternCall(("out", None, None, None), op, given)
    assert list(library_warmup._kinds(masked, program)) == []
    given = (*given[:3], None, *given[4:])
    assert list(library_warmup._kinds(ExternCall(("out", None, None, None), op, given), program))


def test_no_warm_up_with_large_tensors() -> None:
    program = attention(1 << 15, 0.0)
    assert list(library_warmup._kinds(program.steps[0], program)) == []


def test_errors_during_warm_up_are_reported_by_the_real_call() -> None:
    kind = ("aten.mm.default", (torch.ones(2, 3), torch.ones(2, 3)))
    with pytest.raises(RuntimeError):
        torch.mm(*kind[1])
    library_warmup._use({kind})
