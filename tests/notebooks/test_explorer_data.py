"""A cell's output holds the explorer twice: as HTML, and as data that needs no trust."""

from __future__ import annotations

import json

import nbformat
import pytest
from nbclient import NotebookClient

from inductor_lab.widgets.compressed import unzipped
from inductor_lab.widgets.mime import MIME_TYPE

SETUP = """import torch, inductor_lab as lab
def f(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2
c = lab.inspect(f, torch.ones(100, requires_grad=True))"""
CELLS = (SETUP, "c", "lab.load(c.save('c.lab.json'))",
         "lab.inspect(f, torch.ones(100), compiler='stock')",
         "%load_ext inductor_lab", "%%compile\ndef g(x):\n    return x * 2\n_ = f(torch.ones(100)), g(torch.ones(100))",
         "__vsc_ipynb_file__ = 'a.ipynb'", "c")  # fmt: skip


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """The data of the outputs of all cells."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    folder = str(tmp_path_factory.mktemp("notebook"))
    resources = {"metadata": {"path": folder}}
    NotebookClient(made, timeout=240, kernel_name="python3", resources=resources).execute()
    return [dict(cell.outputs[-1].data) if cell.outputs else {} for cell in made.cells]


@pytest.mark.parametrize("cell", [1, 2, 3], ids=["compiled", "loaded", "stock"])
def test_an_output_has_html_and_data(bundles, cell):
    shown = bundles[cell]
    assert {"text/html", "text/plain", MIME_TYPE} <= shown.keys()
    assert shown[MIME_TYPE]["format"] == "inductor_lab explorer"
    assert "inductorLab" in shown["text/html"]


def test_the_output_of_several_compilations_has_the_data_of_each(bundles):
    documents = map(unzipped, bundles[5][MIME_TYPE]["gzip"])
    titles = [document["title"].partition("(")[0] for document in documents]
    assert titles == ["f", "g"]
    assert "renderTabs" in bundles[5]["text/html"]


def test_the_data_adds_little_to_a_notebook(bundles):
    data, page = (len(json.dumps(bundles[1][kind])) for kind in (MIME_TYPE, "text/html"))
    assert data < 0.2 * page and data + page < 210_000, "most of a small output is the script"


def test_a_front_end_with_a_widget_of_its_own_gets_no_data(bundles):
    assert MIME_TYPE not in bundles[7]
    assert "application/vnd.jupyter.widget-view+json" in bundles[7]
