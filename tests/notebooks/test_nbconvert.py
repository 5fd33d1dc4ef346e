"""A notebook that ran, converted to HTML: readable without a script."""

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


def test_converted_output_is_readable_without_javascript() -> None:
    cells = ["import torch\n%load_ext inductor_lab", CELL]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    inert = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    output = inert[inert.index("lab-plain") :]
    assert "return ((x + 1) * 2).sin()" in output
    assert "cpp_fused" in output and "lab_sin" in output
    assert "Error displaying widget" not in page
