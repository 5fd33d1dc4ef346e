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


def reported(tmp_path: Path, old: str, new: str) -> str:
    """What the sanitizer says of a kernel with another text, which has a process of its own."""
    try:
        watched = environment(tmp_path / "watched")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-c", PROGRAM.format(old=old, new=new)]
    subprocess.run(command, env={**os.environ, **watched}, check=True)
    return "".join(path.read_text() for path in (tmp_path / "watched").glob("report.*"))


def test_a_kernel_that_reads_out_of_bounds_is_reported(tmp_path: Path) -> None:
    assert "heap-buffer-overflow" in reported(tmp_path, "in0[", "in0[1000 + ")


def test_a_kernel_that_reads_in_bounds_is_not_reported(tmp_path: Path) -> None:
    assert reported(tmp_path, "in0[", "in0[0 + ") == ""
