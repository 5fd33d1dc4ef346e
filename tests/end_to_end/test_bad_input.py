"""Errors for users: they say what happened and what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import inductor_lab as lab
from inductor_lab import cli
from inductor_lab.compiler.base.errors import (
    CannotWrite,
    CompileFailed,
    CompilerDefect,
    NoCompiler,
    NotRunnable,
    UnknownTarget,
    UnreadableFile,
)
from inductor_lab.compiler.lower.graph import LOWERINGS
from tests.scripts import script


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(NoCompiler, match="install"):
        lab.inspect(double, torch.ones(3), options={"cache": False})


def test_a_compiler_that_fails_names_the_users_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = script(
        tmp_path / "g++",
        'case "$*" in *--version*) echo "g++ (broken) 12.2.0"; exit 0;; esac\n'
        'echo "kernel.cpp:1:1: error: I do not feel like it"; exit 1',
    )
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(CompileFailed) as caught:
        lab.inspect(double, torch.ones(3))
    text = str(caught.value)
    assert "I do not feel like it" in text and str(broken) in text
    assert list((tmp_path / "cache").rglob("*.cpp")), "the kernel is saved for the user"


def test_an_unknown_target() -> None:
    with pytest.raises(UnknownTarget, match="cuda:90"):
        lab.inspect(double, torch.ones(3), target="abacus:1")


def test_a_report_with_an_unwritable_path(tmp_path: Path) -> None:
    c = lab.inspect(double, torch.ones(3))
    with pytest.raises(CannotWrite, match="missing"):
        c.report(tmp_path / "missing" / "folder" / "double.html")
    with pytest.raises(CannotWrite, match="missing"):
        c.save(tmp_path / "missing" / "folder" / "double.json")


@pytest.mark.parametrize("content", ["", "not json", "[]", '{"inductor_lab": 1}', "\x00\xff"])
def test_a_damaged_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "damaged.lab.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(UnreadableFile, match=r"damaged\.lab\.json"):
        lab.load(path)


def test_a_file_of_a_newer_version(tmp_path: Path) -> None:
    path = lab.inspect(double, torch.ones(3)).save(tmp_path / "double.json")
    data = json.loads(path.read_text())
    data["inductor_lab"] = data["inductor_lab"] + 1
    path.write_text(json.dumps(data))
    with pytest.raises(UnreadableFile, match="newer"):
        lab.load(path)


def test_running_a_loaded_graph_raises(tmp_path: Path) -> None:
    c = lab.load(lab.inspect(double, torch.ones(3)).save(tmp_path / "double.json"))
    with pytest.raises(NotRunnable, match=r"lab\.inspect"):
        c.capture.graphs[0].run(torch.ones(3))


def test_the_command_line_exits_with_2_for_bad_input(tmp_path: Path, capsys) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("def f(x):\n    return x + 1\n")
    for arguments in (
        ["demo", "nosuch"],
        ["explain", "nowhere.py:f"],
        ["explain", f"{mine}:g"],
        ["explain", f"{mine}:f"],
        ["explain", f"{mine}:f", "--args", "(torch.ones(3),"],
    ):
        assert cli.main(arguments) == 2, arguments
    assert "example_inputs" in capsys.readouterr().err


def test_explain_writes_a_report(tmp_path: Path, capsys) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("import torch\ndef f(x):\n    return x.sin() + 1\n")
    page = tmp_path / "f.html"
    code = cli.main(["explain", f"{mine}:f", "--args", "torch.ones(30)", "--report", str(page)])
    assert code == 0 and "<html" in page.read_text()
    assert "lab_sin" in capsys.readouterr().out


SLOW_COMPILE = """
import os, sys, torch
import inductor_lab as lab
from inductor_lab.compiler.runtime import toolchain
print("ready", flush=True)
f = lambda x: (x.sin() + x.cos()).tanh()
try:
    lab.inspect(f, torch.ones(1000))
except KeyboardInterrupt:
    os.environ["CXX"] = "g++"
    assert torch.allclose(lab.inspect(f, torch.ones(1000)).result, f(torch.ones(1000)))
    print("recovered", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are another thing on Windows")
def test_control_c_during_a_compile(tmp_path: Path) -> None:
    slow = script(
        tmp_path / "slow-g++",
        f'case "$*" in *kernel*) touch {tmp_path}/started; sleep 30;; esac\n'
        'exec g++ "$@"',
    )
    environment = {
        **os.environ,
        "CXX": str(slow),
        "INDUCTOR_LAB_CACHE_DIR": str(tmp_path / "cache"),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_COMPILE],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert "recovered" in output


def two_lines(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return y.cumsum(0) * torch.erf(x)


def stumble(*given: object, **more: object) -> None:
    raise KeyError("on purpose")


@pytest.mark.parametrize(
    "broken, phase, op, line",
    [
        ("rewrite.passes._first_match", "forward.rewrite", "aten.sin.default", "y = x.sin()"),
        ("lower.graph.fallback", "forward.lower", "aten.erf.default", "torch.erf(x)"),
        ("schedule.fusion.walk.Walk.place", "forward.schedule", "aten.mul.Tensor",
         "torch.erf(x)"),
        ("codegen.generate.cpp_kernel", "forward.codegen", "aten.sin.default", "y = x.sin()"),
        ("pipeline.host_program", "forward.host", "", ""),
        ("pipeline.build_executable", "forward.load", "", ""),
        ("pipeline.partition", "partition", "", ""),
    ],
)
def test_a_compiler_defect_names_phase_op_and_line(
    broken: str, phase: str, op: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(LOWERINGS, torch.ops.aten.erf.default)
    monkeypatch.setattr(f"inductor_lab.compiler.{broken}", stumble)
    x = torch.ones(3, requires_grad=phase == "partition")
    with pytest.raises(CompilerDefect, match="KeyError: 'on purpose'") as caught:
        lab.inspect(two_lines, x)
    assert caught.value.phase == phase and op in caught.value.op and line in str(caught.value)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=f"failed in {phase}"):
        lab.compile(two_lines)(x)
