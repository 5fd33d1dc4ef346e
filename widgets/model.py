"""A compilation → the document that the explorer draws: plain JSON data, and nothing else.

title, subtitle   of the header, with `facts`: the main numbers, each with its pane
groups            the rail: titled lists of pane ids, in pipeline order
panes             id → {title, count, seconds, problem, views}
open              the initial panes
words             the meaning of headings and rules (see `words.py`)
switches          the changes that a live explorer offers (see `switches.py`)
links             provenance (see `links.py`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.step_time import Spent, duration
from inductor_lab.notebook.language import say, spoken
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.widgets import stock
from inductor_lab.widgets.graphs import fx_picture
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.parts import assumed_text, fused_text, part_panes
from inductor_lab.widgets.shapes import Document, Fact, Pane, PaneGroup, Switches, View
from inductor_lab.widgets.split import joint_panes
from inductor_lab.widgets.step_memory import unmeasured_pane
from inductor_lab.widgets.steps import steps_pane
from inductor_lab.widgets.time import time_pane
from inductor_lab.widgets.user_side import source_view, user_panes
from inductor_lab.widgets.views import block, empty_view, fx_lines, pane, text_view
from inductor_lab.widgets.words import words

if TYPE_CHECKING:
    from inductor_lab.compiler.records import CompiledGraph, Record

VERSION = 2
SHOWN_INPUTS = 4
NOTHING = (
    "No graph was captured: the function calls no torch operation, or capture stopped before the "
    "first one (see graph breaks)."
)


def document(compilation: Record | StockCompilation) -> Document:
    """Everything that the explorer shows for a compilation."""
    return linked_document(compilation)[0]


def linked_document(
    compilation: Record | StockCompilation,
) -> tuple[Document, Links]:
    """The document, and its links for code that adds panes."""
    links = Links()
    links.called_from = compilation.source.called_from
    panes: dict[str, Pane] = {}
    groups: list[PaneGroup] = []
    if isinstance(compilation, StockCompilation):
        for title, found in stock.stock_panes(compilation, links):
            _add(groups, panes, title, found)
        stock.finish(compilation, panes, links)
        header = [_fact(*fact) for fact in stock.facts(compilation)]
        return _document(compilation, groups, panes, header, links), links

    _add(groups, panes, "", {"source": pane("source", [])})
    captured = {
        f"g{n}.captured": captured_pane(graph, f"g{n}", links, len(compilation.graphs) > 1)
        for n, graph in enumerate(compilation.graphs)
    }
    if not captured:
        captured = {"captured": pane("captured", [empty_view("graph", NOTHING)], count="0")}
    later = {**user_panes(compilation.capture, links), "steps": pane("steps", [])}
    _add(groups, panes, "capture", {**captured, **later})
    alone = len(compilation.graphs) == 1
    for n, graph in enumerate(compilation.graphs):
        for title, found in _graph_panes(graph, f"g{n}", links):
            _add(groups, panes, title if alone else _of_graph(n, title), found)
    last = {"time": time_pane(compilation), "step_memory": unmeasured_pane()}
    _add(groups, panes, "", last)
    panes["source"]["views"] = [source_view(compilation.source, links)]
    panes["steps"] = steps_pane(compilation.capture, links)
    header, offered = facts(compilation), _switches(compilation)
    return _document(compilation, groups, panes, header, links, offered), links


def _switches(compilation: Record) -> list[Switches]:
    """The changes that a live explorer offers; one that was loaded from a file is never live."""
    if compilation.call is None:
        return []
    from inductor_lab.widgets.switches import switches

    return switches()


def _of_graph(number: int, title: str) -> str:
    return say("graph {n} {title}", n=number, title=say(title))


def _document(
    compilation: Record | StockCompilation,
    groups: list[PaneGroup],
    panes: dict[str, Pane],
    header: list[Fact],
    links: Links,
    offered: Sequence[Switches] = (),
) -> Document:
    return {
        "format": "inductor_lab document",
        "version": VERSION,
        "title": compilation.name,
        "subtitle": subtitle(compilation),
        "facts": header,
        "groups": groups,
        "panes": panes,
        "open": [name for name in _first_look(compilation) if name in panes],
        "switches": list(offered),
        "words": words(),
        "links": links.data(),
        **spoken(),
    }


def add_group(shown: Document, title: str, panes: Mapping[str, Pane]) -> None:
    """Add panes at the end of the pipeline, before the measurements."""
    if panes:
        shown["groups"].insert(len(shown["groups"]) - 1, {"title": title, "panes": list(panes)})
        shown["panes"].update(panes)


def _first_look(compilation: Record | StockCompilation) -> tuple[str, ...]:
    """The initial panes: source and code, and below them an intermediate stage."""
    if not compilation.graphs:
        return ("source", "captured")
    trains = any(graph.backward is not None for graph in compilation.graphs[:1])
    between = ("g0.forward.graph", "g0.backward.graph") if trains else ("g0.forward.schedule",)
    return ("source", "g0.forward.code", *between)


def captured_pane(graph: CompiledGraph, scope: str, links: Links, several: bool) -> Pane:
    """The graph that TorchDynamo captured."""
    captured = graph.captured
    links.graph(captured, f"{scope}.captured", None)
    views: list[View] = [
        fx_picture(captured, links, f"{scope}.captured").view("graph"),
        text_view("text", [block(fx_lines(captured, links, f"{scope}.captured"))]),
    ]
    calls = sum(node.op.startswith("call") for node in captured.nodes)
    title = say("captured {n}", n=scope[1:]) if several else "captured"
    return pane(title, views, count=calls)


def _graph_panes(
    graph: CompiledGraph, scope: str, links: Links
) -> Iterator[tuple[str, dict[str, Pane]]]:
    """(title of the group, its panes) for the later stages of one captured graph."""
    earlier = f"{scope}.captured"
    if graph.joint is not None:
        name = f"{scope}.joint"
        yield "autograd", joint_panes(graph.joint, graph.partition, name, earlier, links)
        earlier = name
    for part in graph.parts:
        yield part.name, part_panes(part, f"{scope}.{part.name}", earlier, links, graph.seconds)


def _add(
    groups: list[PaneGroup], panes: dict[str, Pane], title: str, found: dict[str, Pane]
) -> None:
    groups.append({"title": title, "panes": list(found)})
    panes.update(found)


def subtitle(compilation: Record | StockCompilation) -> str:
    """The inputs of the first graph and its device: `x: f32[1000]  cpu`."""
    if not compilation.graphs:
        return say("nothing was captured")
    nodes = compilation.graphs[0].captured.nodes
    inputs = [n for n in nodes if n.op == "placeholder" and n.tensor is not None]
    given = [n for n in inputs if not re.search("_(parameters|buffers|modules)_", n.name)] or inputs
    named = [(n.given or readable_name(n.name), n.tensor) for n in given[:SHOWN_INPUTS]]
    shown = ", ".join(f"{name}: {tensor}" for name, tensor in named)
    hidden = len(given) - SHOWN_INPUTS
    more = say(", {more} more", more=hidden) if hidden > 0 else ""
    devices = " ".join(dict.fromkeys(n.tensor.device for n in given if n.tensor))
    target = None if isinstance(compilation, StockCompilation) else compilation.target
    return f"({shown}{more})  {target or devices}"


def readable_name(placeholder: str) -> str:
    """Dynamo's `l_x_` → the user's `x`."""
    return placeholder.removeprefix("l_").removeprefix("L_").strip("_") or placeholder


def facts(compilation: Record) -> list[Fact]:
    """The numbers of the header; each links to the pane that explains it."""
    before, after = compilation.before, compilation.after
    graphs, breaks = len(compilation.graphs), len(compilation.capture.breaks)
    coverage = compilation.coverage
    where = "g0.forward.schedule" if compilation.graphs else "source"
    spent = Spent.of(took for part in compilation.parts for took in part.times)
    passes = say("{n} unfused → {m} fused", n=f"{before.passes:,}", m=f"{after.passes:,}")
    assumed = assumed_text(compilation.parts)
    dynamic = [_fact("dynamic sizes", assumed, "symbols")] if assumed else []
    generated = say("nothing to generate")
    if coverage.generated + coverage.calls:
        generated = say("{share} generated", share=f"{100 * coverage.share:.0f} %")
    measured = []
    if spent.kernels:
        measured.append(_fact("time in kernels", duration(spent.kernels), "time"))
    if spent.libraries:
        measured.append(_fact("time in library calls", duration(spent.libraries), "time"))
    return [
        _fact(_noun("graph", graphs), str(graphs), "g0.captured" if graphs else "source"),
        _fact(_noun("break", breaks), str(breaks), "breaks", "warn" if breaks else ""),
        _fact("kernels", _kernels_text(compilation), where),
        _fact("memory passes", passes, where),
        _fact("peak memory", _peak_text(compilation), where.replace("schedule", "memory")),
        *dynamic,
        _fact("traffic saved by fusion", f"{100 * compilation.saved:.1f} %", where),
        _fact("code", generated, where),
        _fact("compile time", f"{compilation.total_seconds:.2f} s", "time"),
        *measured,
    ]


def _kernels_text(compilation: Record) -> str:
    eager = compilation.eager
    return say(
        "{eager}{n} unfused → {fused}",
        eager=say("{n} eager, ", n=f"{eager.kernels:,}") if eager is not None else "",
        n=f"{compilation.before.kernels:,}",
        fused=fused_text(compilation.after.kernels, compilation.coverage.calls),
    )


def _peak_text(compilation: Record) -> str:
    plans = [part.schedule.memory for part in compilation.parts]
    unfused = bytes_text(max((plan.peak_unfused for plan in plans), default=0))
    fused = bytes_text(max((plan.peak_after for plan in plans), default=0))
    return say("{n} without fusion and reuse → {m}", n=unfused, m=fused)


def _noun(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _fact(label: str, value: str, leads_to: str, mark: str = "") -> Fact:
    return {"label": label, "value": value, "pane": leads_to, "mark": mark}
