"""marimo runs one of our notebooks, and shows explorers, benchmarks and steppers as widgets.

tests/browser/test_marimo.py looks at them in Chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("reactive.py")

pytestmark = pytest.mark.skipif(
    find_spec("marimo") is None, reason="no marimo; to run it: pip install marimo"
)


def marimo(*arguments: str | Path) -> str:
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    done = subprocess.run(
        [sys.executable, "-m", "marimo", "-y", *map(str, arguments)], timeout=400, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def exported(program: Path, page: Path) -> str:
    """The page of a program that has run; marimo stores its outputs as JSON."""
    marimo("export", "html", program, "-o", page)
    return page.read_text(encoding="utf-8").replace("\\u003C", "<")


def test_a_notebook_of_ours_runs_in_marimo(tmp_path: Path) -> None:
    program = tmp_path / "dump.py"
    marimo("convert", ROOT / "notebooks" / "09_dump.ipynb", "-o", program)
    text = exported(program, tmp_path / "dump.html")
    assert text.count("<marimo-anywidget") == 1, "the compilation is shown as a widget"
    for part in ("output_code.py", "fx_graph_runnable.py", "A kernel, changed by hand"):
        assert part in text


def test_every_result_is_a_widget_and_other_cells_react(tmp_path: Path) -> None:
    program = shutil.copy(PROGRAM, tmp_path)  # marimo writes a folder next to it
    text = exported(Path(program), tmp_path / "reactive.html")
    assert text.count("<marimo-anywidget") == 5
    assert "selected {} in source" in text and "selected row {}" in text
    assert "<iframe" not in text, "HTML with a script would be shown in a frame of its own"
