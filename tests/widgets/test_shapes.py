"""What Python sends has the fields that the page's modules are checked against."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets import shapes
from inductor_lab.widgets.compressed import unzipped, zipped
from inductor_lab.widgets.model import document

SENT = Path(__file__).parents[2] / "javascript" / "sent.d.ts"
SHAPES = {name: each for name, each in vars(shapes).items() if is_typeddict(each)}
VIEWS = {get_args(get_type_hints(view)["kind"])[0]: view for view in get_args(shapes.View)}


def interfaces(text: str) -> dict[str, set[str]]:
    """The fields of each interface; `name?` is one that may be missing."""
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    found = re.findall(r"export interface (\w+) \{\n(.*?)\n\}", bare, flags=re.DOTALL)
    return {name: set(re.findall(r"^  (\w+\??):", body, re.MULTILINE)) for name, body in found}


def fields(shape: Any) -> set[str]:
    hints = get_type_hints(shape, include_extras=True)
    return {f"{name}?" if get_origin(hint) is NotRequired else name for name, hint in hints.items()}


def test_python_and_the_page_name_the_same_fields() -> None:
    there = interfaces(SENT.read_text(encoding="utf-8"))
    only_for_the_page = {"Change"}  # arguments of what_if, which Python does not look into
    assert there.keys() - only_for_the_page == SHAPES.keys()
    for name, shape in SHAPES.items():
        assert fields(shape) == there[name], name


def misfits(value: Any, wanted: Any, place: str = "document") -> list[str]:
    """Where a value has not the fields of its shape."""
    if wanted == shapes.View:
        wanted = VIEWS[value["kind"]]
    if is_typeddict(wanted):
        hints = get_type_hints(wanted)
        needed = {name for name in fields(wanted) if not name.endswith("?")}
        odd = value.keys() - hints.keys() | needed - value.keys()
        inner = (misfits(value[name], hint, f"{place}.{name}")
                 for name, hint in hints.items() if name in value)  # fmt: skip
        return [f"{place}: {name}" for name in odd] + [each for found in inner for each in found]
    arguments = get_args(wanted)
    if get_origin(wanted) is list:
        return [each for n, item in enumerate(value)
                for each in misfits(item, arguments[0], f"{place}[{n}]")]  # fmt: skip
    if get_origin(wanted) is dict:
        return [each for name, item in value.items()
                for each in misfits(item, arguments[1], f"{place}.{name}")]  # fmt: skip
    return []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_document_has_the_fields_that_its_shapes_say(language: str) -> None:
    lab.language(language)
    try:
        x = torch.randn(8, 16, requires_grad=True)
        shown = document(lab.inspect(lambda x: torch.softmax(x.sin() @ x.T, -1).relu(), x))
    finally:
        lab.language("en")
    kinds = {view["kind"] for pane in shown["panes"].values() for view in pane["views"]}
    assert kinds >= {"text", "tree", "graph", "guards", "steps"}
    assert misfits(unzipped(zipped(shown)), shapes.Document) == []
    shown["panes"]["source"]["title_"] = ""  # type: ignore[typeddict-unknown-key]
    assert misfits(shown, shapes.Document) == ["document.panes.source: title_"]
