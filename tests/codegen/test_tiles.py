"""Transposed loads use local arrays, and every element is at the right position."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.codegen.cpp.header import header_lines
from inductor_lab.compiler.codegen.cpu import tiles
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.int64, torch.bool]


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(shape, generator=generator) * 50).to(dtype)


@pytest.fixture(params=[0, tiles.SMALLEST_TRANSPOSED], ids=["all", "large"], autouse=True)
def smallest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Use local arrays for small matrices too, so that tests can use irregular shapes."""
    torch.compiler.reset()
    monkeypatch.setattr(tiles, "SMALLEST_TRANSPOSED", request.param)
    yield request.param
    torch.compiler.reset()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(16, 16), (33, 47), (64, 128), (129, 65), (300, 17)])
def test_transposed_and_not(shape: tuple[int, int], dtype: torch.dtype) -> None:
    a, b = numbers(*shape, dtype=dtype), numbers(*shape[::-1], dtype=dtype)
    assert_close(lab.compile(lambda a, b: a + b.t())(a, b), a + b.t(), rtol=0, atol=0)
    assert_close(lab.compile(lambda b: b.t().contiguous())(b), b.t(), rtol=0, atol=0)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "two of them": lambda a, b: a.permute(2, 0, 1).contiguous() * b.permute(2, 0, 1).exp(),
    "one twice": lambda a, b: a.permute(2, 1, 0).contiguous() + a.permute(2, 1, 0).sin(),
    "rows apart": lambda a, b: a.permute(1, 2, 0).contiguous() + 1,
    "both directions": lambda a, b: a.transpose(1, 2).contiguous() + b.reshape(b.shape[0], 70, -1),
    "part of it": lambda a, b: a[:, 1:, 2:].permute(2, 0, 1).contiguous() * 2,
    "under a mask": lambda a, b: torch.nn.functional.pad(a.transpose(1, 2), (1, 2)) * 2,
    "gathered": lambda a, b: a.transpose(1, 2)[:, :, torch.arange(40) % 7] + 1,
    "two results": lambda a, b: (x := a.transpose(1, 2).contiguous(), x.bool()),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, dynamic: bool) -> None:
    fast = lab.compile(PROGRAMS[name], dynamic=dynamic)
    for first in (19, 40):
        a, b = numbers(first, 41, 70) / 50, numbers(first, 41, 70) / 50
        assert_close(fast(a, b), PROGRAMS[name](a, b))


def test_transposed_memory_is_read_contiguously(smallest: int) -> None:
    if smallest > 0:
        small = lab.inspect(lambda a, b: a + b.t(), numbers(30, 20), numbers(20, 30))
        assert "tile0" not in str(small.graphs[0].forward.kernels[0].code)
    found = lab.inspect(lambda a, b: a + b.t(), numbers(300, 260), numbers(260, 300))
    text = str(found.graphs[0].forward.kernels[0].code)
    assert text.count("#pragma omp simd") == 1
    (call,) = (line for line in text.splitlines() if "in1" in line and "lab_transpose" in line)
    whole = "in1 + i0_tile + 300 * i1_tile, 300, i1_end - i1_tile, i0_end - i0_tile"
    assert call.strip() == f"lab_transpose(tile0, 144, {whole});"


@pytest.mark.parametrize(
    ("ctype", "instruction"), [("uint8_t", "punpcklbw"), ("lab_half", "punpcklwd")]
)
def test_short_elements_are_interleaved_in_registers(
    ctype: str, instruction: str, tmp_path: Path
) -> None:
    tools = find_toolchain()
    if tools.family.name != "gcc" or platform.machine() != "x86_64":
        pytest.skip("of GCC for x86-64 the instructions are known")
    call = "lab_transpose(to, 144, from, 1024, 128, 64);"
    kernel = f"void f({ctype}* to, const {ctype}* from) {{ {call} }}"
    source, made = tmp_path / "f.cpp", tmp_path / "f.s"
    source.write_text("\n".join([*header_lines([kernel]), kernel]))
    subprocess.run([*tools.command, *tools.flags, "-S", source, "-o", made], check=True)
    side = 16 if ctype == "uint8_t" else 8
    assert len(re.findall(rf"{instruction}\s+%xmm", made.read_text())) >= side // 2
