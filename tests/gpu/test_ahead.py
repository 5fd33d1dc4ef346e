"""Kernels compiled for a GPU that is not present: failures and register spills are reported."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.codegen.kernel import Code
from tests.gpu.ahead import TARGET, compiled, main, usage

pytest.importorskip("triton")


def test_a_model_of_real_width(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vit", "--dtypes", "bfloat16"]) == 0
    told = capsys.readouterr().out
    assert "vit bfloat16: " in told and ", 0 refused" in told


def test_failed_compiles_are_reported_and_known_kernels_are_skipped() -> None:
    (kernel,) = lab.inspect(torch.sin, torch.ones(9), target=TARGET).parts[0].kernels
    lines = (replace(x, text=x.text.replace("tl.load", "tl.loaf")) for x in kernel.code.lines)
    broken = replace(kernel, name="broken", code=Code(tuple(lines)))
    known: set[str] = set()
    row = compiled([kernel, kernel, broken], known)
    assert (row.kernels, row.different, set(row.refused)) == (3, 2, {"broken"})
    assert "loaf" in row.refused["broken"] and row.registers > 8
    assert compiled([kernel, broken], known).different == 0


def test_register_spills_are_reported() -> None:
    """Four rows in the registers of one warp are 512 numbers per thread."""
    c = lab.inspect(lambda x: torch.softmax(x, -1), torch.ones(64, 4096), target=TARGET)
    (kernel,) = c.parts[0].kernels
    constants = {**kernel.launch["constants"], "XBLOCK": 4}
    crowded = replace(kernel, launch={**kernel.launch, "constants": constants, "num_warps": 1})
    used, stack = usage(crowded.ladder(TARGET)["cubin"])
    assert used > 32 and stack > 500
    assert compiled([crowded], set()).stacks == {kernel.name: stack}
