"""The sanitizer reports every read out of bounds, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.sanitizer import environment

PROGRAM = """
import torch
import inductor_lab as lab

x = torch.arange(1000.0)
c = lab.inspect(lambda x: x.sin() + 1, x)
(kernel,) = c.graphs[0].forward.kernels
print(lab.try_kernel(c, kernel.name, str(kernel.code).replace({old!r}, {new!r})))
"""

ATTENTION = """
import torch
import torch.nn.functional as F
import inductor_lab as lab
from inductor_lab.compiler.accelerate import own_attention

own_attention.is_fast_on_this_cpu = lambda dtype, keys: True
for width, dtype in ((2, torch.float32), (12, torch.float32), (64, torch.float32),
                     (24, torch.bfloat16)):
    for rows, keys in ((16, 5), (197, 90)):
        q, k, v = (torch.randn(1, 2, n, width, dtype=dtype) for n in (rows, keys, keys))
        for case in ({}, {"is_causal": True}, {"attn_mask": torch.randn(rows, keys).to(dtype)}):
            c = lab.inspect(lambda: F.scaled_dot_product_attention(q, k, v, **case))
            assert "own_attention" in str(c.graphs[0].forward.rewrites.fired), (width, case)
"""


def reported(tmp_path: Path, program: str) -> str:
    """What the sanitizer says of a program, which has a process of its own."""
    try:
        watched = environment(tmp_path / "watched")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-c", program]
    subprocess.run(command, env={**os.environ, **watched}, check=True)
    return "".join(path.read_text() for path in (tmp_path / "watched").glob("report.*"))


def test_a_kernel_that_reads_out_of_bounds_is_reported(tmp_path: Path) -> None:
    program = PROGRAM.format(old="in0[", new="in0[1000 + ")
    assert "heap-buffer-overflow" in reported(tmp_path, program)


def test_a_kernel_that_reads_in_bounds_is_not_reported(tmp_path: Path) -> None:
    assert reported(tmp_path, PROGRAM.format(old="in0[", new="in0[0 + ")) == ""


def test_attention_reads_and_writes_in_bounds(tmp_path: Path) -> None:
    assert reported(tmp_path, ATTENTION) == ""
