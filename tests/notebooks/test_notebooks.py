"""The notebooks run from top to bottom, in a real kernel."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = [*sorted(FOLDER.glob("*.ipynb")), *sorted(FOLDER.glob("guides/*/*.ipynb"))]


def name(path: Path) -> str:
    """`00_first_look`, `guides/zh/07_stock`."""
    return path.relative_to(FOLDER).with_suffix("").as_posix()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_notebook_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    assert any("text/html" in out.get("data", {}) for out in outputs), "nothing was displayed"
    if path == NOTEBOOKS[0]:
        difference = notebook.cells[-1].outputs[0]["data"]["text/plain"]
        assert float(difference) < 1e-6, "the first look does not show what it claims"


def test_saved_notebooks_carry_no_output() -> None:
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        assert not any(cell.get("outputs") for cell in cells), f"{path.name}: clear its outputs"


def test_no_line_of_code_scrolls() -> None:
    """88 letters fit where JupyterLab is 900 px wide."""
    for path in NOTEBOOKS:
        cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
        lines = [line for cell in cells for line in cell.source.splitlines()]
        assert [line for line in lines if len(line) > 88] == [], name(path)
