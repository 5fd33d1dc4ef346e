"""`inductor-lab warm`: later users load the code that a notebook compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from inductor_lab.cli import main
from inductor_lab.compiler.runtime.cache.kernel_cache import CHECKSUM, SHARED, VARIABLE

CODE = """import torch
import inductor_lab as lab
torch.manual_seed(0)
print(lab.inspect(lambda x: (x.sin() + 1).sum(-1), torch.randn(7, 9)).graphs[0].forward.kernels[0])
"""


def entries(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.rglob(CHECKSUM)}


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_second_user_compiles_nothing(tmp_path: Path, capsys) -> None:
    cells = [nbformat.v4.new_code_cell(text) for text in ("import sys", CODE, "1 / 0")]
    for name in ("a", "with_the_same_code"):
        nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / f"{name}.ipynb")
    shared = tmp_path / "class"
    assert main(["warm", str(tmp_path), "--into", str(shared)]) == 0
    said = capsys.readouterr().out
    assert "a.ipynb  1 cells raised" in said and "same_code" not in said
    assert f"{len(entries(shared))} entries added to {shared}" in said and entries(shared)
    env = os.environ | {SHARED: str(shared), VARIABLE: str(tmp_path / "own")}
    subprocess.run([sys.executable, "-c", CODE], env=env, check=True, capture_output=True)
    assert entries(tmp_path / "own") == set()
    env[SHARED] = ""
    subprocess.run([sys.executable, "-c", CODE], env=env, check=True, capture_output=True)
    assert entries(tmp_path / "own")


def test_a_missing_notebook_is_reported(tmp_path: Path, capsys) -> None:
    assert main(["warm", str(tmp_path)]) == 2
    assert "no notebook in" in capsys.readouterr().err
