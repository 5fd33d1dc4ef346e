"""The annotated source asks for what it shows, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.widgets import picture
from inductor_lab.widgets.links import Links


def scaled(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    return y.sin().sum()


def test_no_graph_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: Any) -> None:
        raise AssertionError("a graph is laid out")

    monkeypatch.setattr(picture, "layered", refused)
    shown = lab.inspect(scaled, torch.randn(64, requires_grad=True)).annotate()
    lines = {line.text.strip(): line for _, block in shown.blocks for line in block}
    line = lines["y = x * 2"]
    assert line.nbytes and any("mul" in text for text in line.loops) and line.code
    assert "<details>" in shown._repr_html_()


def test_sources_are_found_without_a_search() -> None:
    class Numbers(dict[tuple[str, str, str], int]):
        def __iter__(self) -> Any:
            raise AssertionError("all things are looked at")

    links = Links(_numbers=Numbers())
    line = links.line("a.py", 3)
    node = links.add("node", "g0", "sin", [line])
    buffer = links.add("buffer", "g0", "buf0", [node])
    assert links.sources([buffer]) == [line] and links.sources([]) == []
