"""Kernels under GCC's address sanitizer: the first access to memory that is not theirs ends the
process, and a report says where.

The option `check_bounds` writes other kernels than those that run without it; this looks at them as
they are, with what the C++ compiler moved and guessed.  For Linux, with GCC.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from tests.scripts import script

LIBRARIES = ("libasan.so", "libstdc++.so")
"""Loaded before all others; the second one since torch throws exceptions."""


def environment(folder: Path) -> dict[str, str]:
    """Variables for processes whose kernels are watched; `folder` keeps these kernels apart, and
    has the reports.  FileNotFoundError without GCC and its sanitizer."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise FileNotFoundError("g++ is not on the path")
    found = [_library(compiler, name) for name in LIBRARIES]
    folder.mkdir(parents=True, exist_ok=True)
    watching = script(folder / "g++", f'exec {shlex.quote(compiler)} "$@" -fsanitize=address')
    return {
        "CXX": str(watching),
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": f"detect_leaks=0:detect_odr_violation=0:log_path={folder / 'report'}",
        "INDUCTOR_LAB_CACHE_DIR": str(folder / "kernels"),
    }


def run_again(command: list[str], folder: Path) -> int:
    """Run a command whose kernels are watched, print the reports; its exit status."""
    for earlier in folder.glob("report.*"):
        earlier.unlink()
    status = subprocess.call(command, env={**os.environ, **environment(folder)})
    for report in sorted(folder.glob("report.*")):
        print(report.read_text(errors="replace"))
    return status


def is_on() -> bool:
    """Are the kernels of this process watched?"""
    return LIBRARIES[0] in os.environ.get("LD_PRELOAD", "")


def _library(compiler: str, name: str) -> str:
    command = [compiler, f"-print-file-name={name}"]
    path = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    if not path.is_absolute():
        raise FileNotFoundError(f"{compiler} has no {name}")
    return str(path.resolve())
