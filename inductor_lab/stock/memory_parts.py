"""The buffers of stock's wrappers: which FX nodes they hold, and which lines compute them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from inductor_lab.debug.memory.parts import HostPart, order_in, places_in
from inductor_lab.stock.stock_compilation import StockCompilation, StockGraph, StockPart

_NAME = re.compile(r"\bbuf\d+\b")
_REUSE = re.compile(r"^\s*(buf\d+) = (\w+); del \w+")
RULE = "min-cut partition of torch"


def stock_parts(compilation: StockCompilation) -> tuple[HostPart, ...]:
    """The wrappers of a live compilation."""
    return tuple(
        _part(f"g{number}.{part.name}", graph, part)
        for number, graph in enumerate(compilation.graphs)
        for part in graph.parts
        if part.text
    )


def _part(name: str, graph: StockGraph, part: StockPart) -> HostPart:
    steps = dict(_steps(part))
    joint = graph.joint
    graphs = (joint.graph if joint is not None else None, part.graph, part.last)
    backward = graph.backward
    saved = [n.name for n in backward.graph.nodes if n.op == "placeholder"] if backward else []
    return HostPart(
        name=name,
        direction="backward" if part.name == "backward" else "forward",
        text=part.text,
        outputs=joint.num_forward_outputs if joint is not None else 1 << 30,
        buffers=_buffers(part.text.split("\n"), steps),
        places=places_in(*graphs),
        order=order_in(*graphs),
        why=dict.fromkeys(saved, RULE),
        steps=steps,
    )


def _steps(part: StockPart) -> Iterator[tuple[int, frozenset[str]]]:
    """The nodes of each line of the text; `part.host` has the lines outside of kernels."""
    text, at = part.text.split("\n"), 0
    for line in part.host.lines:
        while at < len(text) and text[at] != line.text:
            at += 1
        at += 1
        if line.origins and line.statement:
            yield at, line.origins


def _buffers(
    text: list[str], steps: Mapping[int, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """The nodes of the first step that has a buffer; a buffer in reused memory has its own."""
    found: dict[str, frozenset[str]] = {}
    for number, nodes in sorted(steps.items()):
        for name in _NAME.findall(text[number - 1]):
            found.setdefault(name, nodes)
    return found
