"""IPython deletes its variables, including those of TorchDynamo, without errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CELLS = """import gc, torch
import inductor_lab as lab
def f(x): return x.sin() * len([1, x.shape[0]])
print(len(lab.inspect(f, torch.ones(3)).graphs), [n for n in globals() if "builtins_dict" in n])
"""
RESET = """get_ipython().run_line_magic("reset", "-f")
import gc, torch
torch.compiler.reset()
gc.collect()
print("clear")
"""


@pytest.mark.parametrize("more", ["", RESET], ids=["the end", "%reset"])
def test_functions_are_deleted_before_variables_of_torchdynamo(more: str, tmp_path: Path) -> None:
    file = tmp_path / "cells.ipy"
    file.write_text(CELLS + more)
    command = [sys.executable, "-m", "IPython", "--no-banner", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    said = ran.stdout + ran.stderr
    assert "1 ['__builtins_dict__" in said and ("clear" in said) == bool(more)
    assert "KeyError" not in said, said
