"""A table becomes the same elements in Python and in the page."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.notebook.language import spoken
from inductor_lab.widgets.model import document
from inductor_lab.widgets.views import Row, row, table_view, tree_of

JAVASCRIPT = Path(__file__).parents[2] / "javascript"
SCRIPT = """
import { speak } from "%(folder)s/say.js";
import { tableTree } from "%(folder)s/table.js";
let text = "";
for await (const piece of process.stdin) text += piece;
const { texts, views } = JSON.parse(text);
speak(texts);
process.stdout.write(JSON.stringify(views.map(tableTree)));
"""
AWKWARD = table_view("rules", ("rule", ">size", "reason"), [
    row(("a", "1", "")),
    row(("one two", "", "a" * 61), [3, 1], mark="warn", steps=[0, 2]),
    Row(("x" * 24, "2", "x" * 25), (7,), (("stored", "buf0"), ("inlined", "")), "no", ("ok", ""),
        "force buf0 buf1 g0.forward"),
], "a note")  # fmt: skip


def without_empty_texts(tree: Any) -> Any:
    if isinstance(tree, str):
        return tree
    return [*tree[:2], *(without_empty_texts(child) for child in tree[2:] if child != "")]


@pytest.mark.skipif(shutil.which("node") is None, reason="the tables were NOT compared: no node")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_builds_the_same_tables(language: str) -> None:
    lab.language(language)
    try:
        x = torch.randn(8, 16, requires_grad=True)
        shown = document(lab.inspect(lambda x: torch.softmax(x.sin() @ x.T, -1).relu(), x))
        views = [AWKWARD, *(view for pane in shown["panes"].values() for view in pane["views"]
                            if view["kind"] == "table")]  # fmt: skip
        trees = [without_empty_texts(tree_of(view)) for view in views]
        sent = {"texts": spoken().get("texts", {}), "views": views}
    finally:
        lab.language("en")
    done = subprocess.run(
        ["node", "--input-type=module", "-e", SCRIPT % {"folder": JAVASCRIPT.as_uri()}],
        input=json.dumps(sent), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(views) > 6
    assert json.loads(done.stdout) == trees


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        table_view("rules", ("rule", "reason"), [row(["a"])])
