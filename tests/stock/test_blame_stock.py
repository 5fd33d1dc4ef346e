"""Blame finds the first wrong stage of stock torch.compile, and reports no fault where none is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from torch._inductor import config  # noqa: TID251

import inductor_lab as lab
from inductor_lab.cli import main
from inductor_lab.stock.blame import stock_analysis
from inductor_lab.stock.blame.stock_analysis import StockAnalysis
from tests.stock.blamed_programs import PROGRAMS
from tests.stock.faulty_stock import FAULTS, chain, inputs, text_edited


@pytest.mark.parametrize("with_grad", [False, True])
def test_a_right_program_is_not_blamed(with_grad: bool) -> None:
    args = [x.requires_grad_(with_grad) for x in inputs()]
    found = lab.blame(chain, *args, compiler="stock")
    assert found.fault is None, str(found)
    stages = [row.stage for row in found.stages]
    assert stages[:3] == ["captured", "joint", "decomposed"]
    assert stages.count("kernel") == 1 + with_grad
    assert {row.verdict for row in found.stages} <= {"right", "rounding"}, str(found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_wrong_program_is_blamed(name: str) -> None:
    program = PROGRAMS[name]
    found = lab.blame(program.call, *program.inputs(), compiler="stock")
    if found.fault is None and all(judged.right for judged in found.results.values()):
        pytest.skip("this torch computes it correctly")
    assert found.fault is not None, str(found)
    assert (found.fault.verdict, found.fault.stage) == (program.verdict, program.stage), str(found)
    assert program.words in str(found.fault), str(found)
    assert (found.fault.span is not None) == program.names_line, str(found)


@pytest.mark.parametrize("name", FAULTS)
def test_a_seeded_fault_is_located(name: str) -> None:
    seeded = FAULTS[name]
    with seeded.make():
        found = lab.blame(chain, *inputs(), compiler="stock")
    assert found.fault is not None, str(found)
    assert found.fault.stage == seeded.stage, str(found)


def test_a_compile_that_crashes_is_reported() -> None:
    def kill(graph: torch.fx.Graph) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with config.patch({"joint_custom_post_pass": kill}):
        found = lab.blame(torch.sin, torch.ones(3), compiler="stock")
    assert found.fault is not None and found.fault.verdict == "crashes"


def test_a_compile_that_hangs_is_reported() -> None:
    with config.patch({"joint_custom_post_pass": lambda graph: time.sleep(600)}):
        found = lab.blame(torch.sin, torch.ones(3), compiler="stock", limit=2.0)
    assert found.fault is not None and found.fault.verdict == "hangs"


def test_an_exception_of_the_function_comes_through() -> None:
    with pytest.raises(RuntimeError, match="shape"):
        lab.blame(lambda x: x.reshape(7), torch.ones(3), compiler="stock")


class Setting:
    """A number that code is compiled for."""

    def __init__(self, scale: float) -> None:
        self.scale = scale


def test_code_that_was_compiled_for_something_else_is_reported() -> None:
    def times(x: torch.Tensor, setting: Setting) -> torch.Tensor:
        y = x * setting.scale
        return y + 1

    x = torch.rand(9)
    right = lab.inspect(times, x, Setting(2.0), compiler="stock")
    assert right.again(x, Setting(2.0)).hit and not right.again(x, Setting(3.0)).hit
    found = right.blame(x, Setting(4.0))
    assert found.fault is None and "post_grad_passes" in str(found), str(found)
    with lab.faults.stale_guard():
        wrong = lab.inspect(times, x, Setting(2.0), compiler="stock")
        found = wrong.blame(x, Setting(3.0))
        assert wrong.blame().fault is None
    assert found.fault is not None, str(found)
    assert (found.fault.verdict, found.fault.stage) == ("stale", "guards"), str(found)
    assert found.fault.span is not None and found.fault.span.code == "y = x * setting.scale"


def test_an_unknown_compiler_is_refused() -> None:
    with pytest.raises(lab.LabError, match="stock"):
        lab.blame(torch.sin, torch.ones(3), compiler="other")


def with_branches(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,)) + 1


def written_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.max()
    torch._foreach_mul_([x], 2)
    return y


def test_unused_results_of_an_operator_in_place_are_not_read() -> None:
    found = lab.blame(written_in_place, torch.ones(9), compiler="stock")
    assert found.fault is None and found.verdict == "right", str(found)


def test_checks_that_fail_are_no_fault_of_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(analysis: StockAnalysis) -> None:
        raise KeyError("x")

    monkeypatch.setattr(StockAnalysis, "run", fail)
    found = lab.blame(torch.sin, torch.ones(9), compiler="stock")
    assert found.fault is None and found.verdict == "unknown", str(found)
    assert "the call could not be checked: raised KeyError" in str(found)


def test_a_graph_that_does_not_run_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock_analysis, "_left", lambda module, given: [][0])
    found = lab.blame(chain, *inputs(), compiler="stock")
    assert found.fault is None, str(found)
    assert "IndexError" in str([row for row in found.stages if row.verdict == "unknown"])


def test_a_wrapper_with_branches_is_unknown() -> None:
    found = lab.blame(with_branches, torch.ones(9), compiler="stock")
    assert found.fault is None and _verdict_of_kernels(found) == ["unknown"], str(found)
    with text_edited(r"static_cast<float>\(1\.0\)", "1.25f"):
        found = lab.blame(with_branches, torch.ones(9), compiler="stock")
    assert found.fault is not None and found.fault.stage == "compiled", str(found)
    assert "not checked: g0.forward kernel (the wrapper has branches" in found.fault.says


def test_a_wrong_pass_in_a_branch_is_named() -> None:
    with FAULTS["operator of a later pass"].make():
        found = lab.blame(with_branches, torch.ones(9), compiler="stock")
    expected = f"{FAULTS['operator of a later pass'].stage} (inner graph)"
    assert found.fault is not None and found.fault.stage == expected, str(found)


def test_a_wrapper_in_cpp_is_unknown() -> None:
    with config.patch({"cpp_wrapper": True}):
        found = lab.blame(torch.sin, torch.ones(9), compiler="stock")
    assert found.fault is None and _verdict_of_kernels(found) == ["unknown"], str(found)
    assert "C++" in str(found)


def _verdict_of_kernels(found: lab.Blame) -> list[str]:
    return [row.verdict for row in found.stages if row.stage == "kernel"]


PROGRAM = """
import torch


def f(x):
    return torch.sin(x) + 1


def example_inputs():
    return torch.arange(9.0)
"""


def test_blame_of_stock_from_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    assert main(["blame", "--stock", f"{file}:f"]) == 0
    assert "post_grad_passes" in capsys.readouterr().out


def test_minify_of_stock_from_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / "program.py", tmp_path / "small"
    file.write_text(PROGRAM)
    with FAULTS["operator of a later pass"].make():
        assert main(["blame", "--stock", f"{file}:f"]) == 1
        assert "wrong in post_grad_passes" in capsys.readouterr().out
        assert main(["minify", "--stock", f"{file}:f", "--folder", str(folder)]) == 1
    script = (folder / "repro.py").read_text()
    assert "torch.sin(" in script and "+" not in script.split("def ")[1].split("return")[0]
    assert "inductor_lab" not in script


def test_the_script_of_minify_shows_the_failure_of_stock(tmp_path: Path) -> None:
    program = PROGRAMS["floor_of_quotient"]
    try:
        lab.minify(
            program.call, *program.inputs(), compiler="stock", folder=tmp_path, tell=None
        )
    except lab.LabError:
        pytest.skip("this torch computes it correctly")
    command = [sys.executable, str(tmp_path / "repro.py")]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert ended.returncode != 0 and "ImportError" not in ended.stderr
    assert "does not fail any more" not in ended.stdout


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def test_blame_of_stock_from_a_cell(shell: InteractiveShell) -> None:
    shell.run_line_magic("load_ext", "inductor_lab")
    cell = "import torch\ndef f(x):\n    return torch.neg(x) // 2\ny = f(torch.arange(5))"
    with pytest.raises(UsageError, match="--blame"):
        shell.find_cell_magic("compile")("--stock", cell)
    shell.run_cell_magic("compile", "--stock --blame", cell)
    blamed = shell.user_ns["_lab_blame"]
    assert isinstance(blamed, lab.Blame) and blamed.right
    assert any(row.stage == "post_grad_passes" for row in blamed.stages)
    assert shell.user_ns["y"].tolist() == [0, -1, -1, -2, -2]
