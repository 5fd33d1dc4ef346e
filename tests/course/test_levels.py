"""The pictures of a GPU's levels and of a guard are drawn from the compile."""

from __future__ import annotations

import re

import pytest
import torch

import inductor_lab as lab
from inductor_lab import course
from inductor_lab.course.levels import gpu_levels, guard_life


@pytest.fixture(autouse=True)
def english() -> None:
    course.speak("en")
    torch._dynamo.reset()


def test_the_levels_of_a_kernel() -> None:
    def rows(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    kernel = lab.inspect(rows, torch.randn(64, 1000), target="cuda:90").graphs[0].forward.kernels[0]
    drawn = gpu_levels(kernel)
    each = 1024 // (kernel.launch["num_warps"] * 32)
    assert str(drawn).startswith("64 programs of 1,024 elements") \
        and f"registers: {each} elements each" in str(drawn)  # fmt: skip
    warps, blocks = kernel.launch["num_warps"], 2048 // (32 * kernel.launch["num_warps"])
    assert drawn.html.count('class="input"') == 64 + 1 + warps + 32
    assert drawn.html.count('class="box"') == 132 - 64 + blocks - 1
    assert 'role="img"' in drawn.html and "<desc>" in drawn.html
    width = float(re.search(r'width="(\d+)"', drawn.html)[1])  # type: ignore[index]
    assert width <= 760, "it fits into a 900 px wide notebook"
    course.speak("zh")
    assert "多处理器" in str(gpu_levels(kernel))


def test_the_life_of_a_guard() -> None:
    def gate(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 8 else x + 1

    gated = lab.inspect(gate, torch.ones(4, 3), options={"dynamic": True})
    drawn = guard_life(gated, [(rows, gated.again(torch.ones(rows, 3))) for rows in (8, 9)])
    lines = [line.strip() for line in str(drawn).splitlines()]
    assert lines[1:4] == ["first call: 4", f"{lines[2].partition(':')[0]}: 2, ...",
                          "2 <= x.size()[0] <= 8"]  # fmt: skip
    assert "reused" in lines[4] and "compiled again" in lines[5]
    assert drawn.html.count('class="arrow"') == 2, "a cross in the row of 9, and in the legend"
