"""A notebook that ran, converted to HTML: readable without a script, errors in their order."""

from __future__ import annotations

import re

import nbformat
import pytest
from nbclient import NotebookClient

nbconvert = pytest.importorskip("nbconvert", reason="no nbconvert: pip install nbconvert")

CELL = """%%compile
def wave(x):
    return ((x + 1) * 2).sin()

wave(torch.randn(8))"""
BROKEN = """from inductor_lab.compiler import pipeline
from inductor_lab.compiler.base.errors import LabError
def refuse(schedule, options):
    raise LabError("no kernel today", "return ((x + 1) * 2).sin()", "try tomorrow")
pipeline.generate_kernels = refuse"""


@pytest.fixture(scope="module")
def notebook():
    cells = ["import torch\n%load_ext inductor_lab", CELL, BROKEN, CELL]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(made, timeout=120, kernel_name="python3", allow_errors=True).execute()
    return made


def test_converted_output_is_readable_without_javascript(notebook) -> None:
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    inert = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    output = inert[inert.index("lab-plain") :]
    assert "return ((x + 1) * 2).sin()" in output
    assert "cpp_fused" in output and "lab_sin" in output
    assert "Error displaying widget" not in page


def test_an_error_shows_the_traceback_and_the_finished_stages(notebook) -> None:
    outputs = notebook.cells[3].outputs
    shown = [o for o in outputs if o.output_type in ("error", "display_data")]
    assert [output.output_type for output in shown] == ["error", "display_data"]
    assert shown[0].ename == "LabError" and "no kernel today" in shown[0].evalue
    html = shown[1].data["text/html"]
    assert "Finished stages:" in html and "✗ forward.codegen" in html and "<mark>" in html
