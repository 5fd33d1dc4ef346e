"""Optional parts can be deleted: without them programs still compile and are correct."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from inductor_lab.compiler.accelerators import LISTS
from inductor_lab.compiler.base.passes import Later

ROOT = Path(__file__).parents[2]
COMPILER = "inductor_lab.compiler"
TOOLS = tuple(
    f"inductor_lab.{name}"
    for name in (
        "bench", "cli", "course", "debug", "distributed", "mini", "notebook", "saved", "stock",
        "widgets",
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


IN_USE = {f"{COMPILER}.{name}" for name in (
    "codegen.cpu.accumulators", "codegen.cpu.half_roundings", "lower.passes.split_reductions",
)}  # fmt: skip
"""Files of optional passes whose helpers other files import."""
PASSES = tuple(sorted(
    {step.apply.module for table in LISTS.values() for step in table.values()
     if isinstance(step.apply, Later)} - IN_USE
))  # fmt: skip
REFUSED = {
    "accelerators": ACCELERATE,
    "tools": TOOLS,
    "Triton": TRITON,
    "passes": PASSES,
    "all of them": (*ACCELERATE, *TOOLS, *TRITON, *PASSES),
}


@pytest.mark.parametrize("name", REFUSED)
def test_demos_and_operators_are_correct_without(name: str) -> None:
    modules_without(REFUSED[name], "--wide")


def test_optional_passes_have_separate_files() -> None:
    later = [step.apply for table in LISTS.values() for step in table.values()
             if isinstance(step.apply, Later)]  # fmt: skip
    assert all(callable(getattr(import_module(one.module), one.name)) for one in later)
    assert len(PASSES) > 15


@pytest.mark.parametrize("name", REFUSED)
def test_programs_are_correct_without(name: str) -> None:
    refused = REFUSED[name]
    used = modules_without(refused)
    assert f"{COMPILER}.pipeline" in used
    assert [name for name in used if name.startswith(refused)] == []
