"""The tools from a terminal and from a cell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import inductor_lab as lab
from inductor_lab.cli import main

FILE = """
import torch


def f(x):
    a = torch.neg(x)
    return torch.maximum(a, x)


def example_inputs():
    return torch.arange(9, dtype=torch.uint8)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(FILE)
    return path


def test_blame_from_a_terminal(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blame", f"{file}:f"]) == 0
    assert "right" in capsys.readouterr().out
    with lab.faults.wrong_neg():
        assert main(["blame", f"{file}:f"]) == 1
    said = capsys.readouterr().out
    assert "wrong in kernel of g0.forward" in said and "a = torch.neg(x)" in said


def test_minify_from_a_terminal(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = file.parent / "small"
    assert main(["minify", f"{file}:f", "--folder", str(folder)]) == 2
    assert "nothing to shrink" in capsys.readouterr().err
    with lab.faults.wrong_neg():
        assert main(["minify", f"{file}:f", "--folder", str(folder)]) == 1
    assert "torch.neg(x0)" in (folder / "repro.py").read_text()


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def test_blame_from_a_cell(shell: InteractiveShell) -> None:
    shell.run_line_magic("load_ext", "inductor_lab")
    cell = "import torch\ndef f(x):\n    return torch.neg(x) // 2\ny = f(torch.arange(5))"
    shell.run_cell_magic("compile", "--blame", cell)
    blamed = shell.user_ns["_lab_blame"]
    assert isinstance(blamed, lab.Blame) and blamed.right
    assert shell.user_ns["y"].tolist() == [0, -1, -1, -2, -2]
