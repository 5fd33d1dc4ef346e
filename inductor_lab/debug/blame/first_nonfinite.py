"""Find the first node with a NaN or an inf: its result has one, but none of its inputs has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch

from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.debug.blame.blame_result import Born
from inductor_lab.debug.blame.stages import GraphRun

TESTS: Mapping[Literal["NaN", "inf"], Any] = {"NaN": torch.isnan, "inf": torch.isinf}


def first_nonfinite_in(graph: FxGraph, run: GraphRun, stage: str, where: str) -> Iterator[Born]:
    """The first NaN and the first inf of a graph whose results contain some."""
    results = next(node for node in graph.nodes if node.op == "output").inputs
    for what, test in TESTS.items():
        has = {name: _any(value, test) for name, value in run.own.items()}
        if not any(has.get(name, False) for name in results):
            continue
        for node in graph.nodes:
            inherited = any(has.get(name, False) for name in node.inputs)
            if has.get(node.name, False) and not inherited:
                exact = (run.exact or {}).get(node.name)
                yield Born(what, stage, where, node.name, node.span, _any(exact, test))
                break


def _any(value: Any, test: Any) -> bool:
    """Does the value contain one?  Integers contain none."""
    if isinstance(value, tuple | list):
        return any(_any(item, test) for item in value)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return False
    return (value.is_floating_point() or value.is_complex()) and bool(test(value).any())
