"""Block sizes of kernels, measured on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
TUNED = {"mode": "max-autotune-no-cudagraphs"}


def several(x, y):
    return (x + 1).sin(), F.softmax(x, -1), y.sum(0), x + y.t()


def test_the_fastest_blocks_are_chosen_and_stored(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))
    x, y = torch.randn(2048, 4096, device="cuda"), torch.randn(4096, 2048, device="cuda")
    compilation = lab.inspect(several, x, y, options=TUNED)
    for got, expected in zip(compilation.result, several(x, y), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    choices = compilation.graphs[0].forward.executable.choices
    assert choices
    for choice in choices:
        took = dict(choice.seconds)
        assert len(took) > 3 and took[choice.chosen] <= choice.seconds[0][1]
        assert choice.chosen in str(choice)
    again = lab.inspect(several, x, y, options=TUNED)
    assert [c.seconds for c in again.graphs[0].forward.executable.choices] == [
        c.seconds for c in choices
    ]


def test_overwritten_inputs_are_written_once() -> None:
    def function(x):
        x.mul_(2).add_(1)
        return x.sum(-1)

    x = torch.ones(4096, 1024, device="cuda")
    result = lab.compile(function, options=TUNED)(x)
    assert bool((x == 3).all()) and bool((result == 3 * 1024).all())


def test_with_cuda_graphs() -> None:
    compiled = lab.compile(several, mode="max-autotune")
    for seed in range(5):
        torch.manual_seed(seed)
        x, y = torch.randn(256, 512, device="cuda"), torch.randn(512, 256, device="cuda")
        for got, expected in zip(compiled(x, y), several(x, y), strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
