"""Optional parts can be deleted: without them programs still compile and are correct."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILER = "inductor_lab.compiler"
TOOLS = tuple(
    f"inductor_lab.{name}"
    for name in (
        "bench", "cli", "course", "debug", "distributed", "notebook", "saved", "stock", "widgets",
    )
)  # fmt: skip
TRITON = (f"{COMPILER}.codegen.triton", f"{COMPILER}.runtime.triton", "triton")
ACCELERATE = (f"{COMPILER}.accelerate",)


def modules_without(refused: tuple[str, ...], *options: str) -> list[str]:
    """Compile and check some programs in a new process that cannot import these packages."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.project.deleted", *refused, *options],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout.split()


@pytest.mark.parametrize(
    "refused", [ACCELERATE, TOOLS, TRITON, (*ACCELERATE, *TOOLS, *TRITON)],
    ids=["accelerators", "tools", "Triton", "all of them"],
)  # fmt: skip
def test_programs_are_right_without(refused: tuple[str, ...]) -> None:
    used = modules_without(refused)
    assert f"{COMPILER}.pipeline" in used
    assert [name for name in used if name.startswith(refused)] == []
