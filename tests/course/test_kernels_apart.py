"""A student's kernel or pass that hangs or crashes is reported with its line; missing tools are
reported in the words of `inductor-lab doctor`."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inductor_lab import course
from inductor_lab.course.given.fusion import refused
from inductor_lab.debug.doctor import NO_TRITON, _compiler

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@pytest.fixture(autouse=True)
def own_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("INDUCTOR_LAB_COURSE_FILE", str(tmp_path / "course.json"))
    course.speak("en")
    yield
    course.speak("en")


def endless_kernel(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    while True:
        at = at + 1


def crashing_kernel(x, out, count, BLOCK: tl.constexpr):
    ctypes.string_at(0)


def endless_pass(tree):
    turns = 0
    while True:
        turns += 1


def crashing_pass(tree):
    ctypes.string_at(0)


def endless_scheduler(program):
    groups = [[nest.buffer] for nest in program.nests]
    while refused(program, groups) is None:
        groups = list(groups)


KERNELS = (endless_kernel, crashing_kernel)
ENDLESS = (endless_kernel, endless_pass, endless_scheduler)


@pytest.mark.parametrize("name, solution, line", [
    *(("7.3", made(kernel), line) for made in (triton.jit, lambda kernel: kernel)
      for kernel, line in zip(KERNELS, ("at = at|while", "string_at"), strict=True)),
    ("6.6", endless_pass, "turns|while"), ("6.6", crashing_pass, "string_at"),
    ("5.5", endless_scheduler, "refused|groups"),
])  # fmt: skip
def test_a_hang_or_crash_is_reported_with_its_line(
    name: str, solution: Any, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = getattr(solution, "fn", solution) in ENDLESS
    monkeypatch.setattr(type(course.EXERCISES[name]), "limit", 12.0 if hangs else 60.0)
    verdict = course.check(name, solution)
    said, where = verdict.message.split("\n")
    expected = "still running after 12 s" if hangs else "it ended its process (SIGSEGV)"
    assert said.startswith(expected) and where.startswith("in line ") and re.search(line, where)
    assert verdict.points == 0


def without(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(f"{package}.runtime")]:
        monkeypatch.setitem(sys.modules, name, None)


def test_without_triton_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    without("triton", monkeypatch)
    message = course.check("7.3", endless_kernel).message
    assert "triton is missing" in message and NO_TRITON.partition(" (")[0] in message


@pytest.mark.parametrize("name", ["5.5", "6.6"])
def test_without_a_compiler_it_says_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path / "cache"))
    message = course.check(name, _untouched(name)).message
    for line in _compiler().todo.splitlines():
        assert line.strip() in message


def _untouched(name: str) -> Callable[[Any], Any]:
    def alone(program: Any) -> Any:
        return [[nest.buffer] for nest in program.nests]

    return alone if name == "5.5" else lambda tree: tree
