"""The document of a stock `torch.compile` compilation: the same panes as for inductor_lab.

A view without data says so, and how to get the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.rewrite.rewrites import Step
from inductor_lab.stock.stock_compilation import IrNode, StockKernel
from inductor_lab.widgets.graphs import OPEN_UP_TO, fx_picture, node_paths
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.modules import common_module, module_frames
from inductor_lab.widgets.parts import ops_to, step_diff
from inductor_lab.widgets.picture import ROOT, Frame, Item, Picture, draw
from inductor_lab.widgets.replayed import cuda_graph_views
from inductor_lab.widgets.shapes import Block, Pane, View
from inductor_lab.widgets.split import joint_panes
from inductor_lab.widgets.step_memory import unmeasured_pane
from inductor_lab.widgets.steps import steps_pane
from inductor_lab.widgets.stock_fusion import why_not_fused_view
from inductor_lab.widgets.time import bars_view, timeline_view
from inductor_lab.widgets.user_side import source_view, user_panes
from inductor_lab.widgets.views import (
    block,
    code_lines,
    empty_view,
    fx_lines,
    pane,
    plain_lines,
    row,
    table_view,
    text_view,
)

if TYPE_CHECKING:
    from inductor_lab.compiler.capture.fx_graph import FxGraph
    from inductor_lab.stock.stock_compilation import StockCompilation, StockGraph, StockPart

EXTERN = "(a library function: stock does not generate its code)"
FROM_LOG = "From stock's fusion log."
UNTOLD = "Not reported by stock PyTorch."
NO_GRAPH = (
    "No graph was reported: the function calls no torch operation, or the log does not contain it."
)


def stock_panes(c: StockCompilation, links: Links) -> Iterator[tuple[str, dict[str, Pane]]]:
    """(title of a group of the rail, its panes), in pipeline order."""
    yield "", {"source": pane("source", [])}
    several = len(c.graphs) > 1
    captured = {
        f"g{n}.captured": _captured(graph, f"g{n}", links, several)
        for n, graph in enumerate(c.graphs)
    }
    if not captured:
        captured = {"captured": pane("captured", [empty_view("graph", NO_GRAPH)], count="0")}
    users = user_panes(c.capture, links)
    yield "capture", {**captured, **users, "steps": steps_pane(c.capture, links)}
    for n, graph in enumerate(c.graphs):
        for title, found in _graph_panes(graph, f"g{n}", links):
            yield (f"graph {n} {title}" if several else title), found
    yield "", {"time": _time(c), "step_memory": unmeasured_pane()}


def finish(c: StockCompilation, panes: dict[str, Pane], links: Links) -> None:
    """Fill the views that show what all other views link to."""
    panes["source"]["views"] = [source_view(c.source, links)]
    if c.capture.runs:
        panes["steps"] = steps_pane(c.capture, links)


def facts(c: StockCompilation) -> list[tuple[str, str, str, str]]:
    """The numbers of the header: label, value, linked pane, mark."""
    code = next((f"g{n}.{p.name}.code" for n, g in enumerate(c.graphs) for p in g.parts), "source")
    first = "g0.captured" if c.graphs else "source"
    breaks = len(c.capture.breaks)
    extern = sum(kernel.language == "extern" for kernel in c.kernels)
    own = len(c.kernels) - extern
    total, linked = c.statements
    share = f"{100 * linked / total:.0f} %" if total else "none"
    found = [
        ("stock", c.torch_version or "torch.compile", "time", ""),
        (_noun("graph", len(c.graphs)), str(len(c.graphs)), first, ""),
        (_noun("break", breaks), str(breaks), "breaks", "warn" if breaks else ""),
        (_noun("kernel", own), str(own), code, ""),
        (_noun("library function", extern), str(extern), code, ""),
        ("statements linked", share, code, ""),
        ("compile time", f"{c.total_seconds:.2f} s", "time", ""),
    ]
    if c.problems:
        found.append(("problems", str(len(c.problems)), "time", "warn"))
    return found


def _noun(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _captured(graph: StockGraph, scope: str, links: Links, several: bool) -> Pane:
    links.graph(graph.captured, f"{scope}.captured", None)
    calls = sum(node.op.startswith("call") for node in graph.captured.nodes)
    title = f"captured {scope[1:]}" if several else "captured"
    found = pane(title, _graph_views(graph.captured, f"{scope}.captured", links), count=calls)
    return {**found, "problem": "failed" if graph.error else ""}


def _graph_views(graph: FxGraph, scope: str, links: Links) -> list[View]:
    if not graph.text.strip():
        return [empty_view("graph", UNTOLD)]
    return [
        fx_picture(graph, links, scope).view("graph"),
        text_view("text", [block(fx_lines(graph, links, scope))]),
    ]


def _graph_panes(
    graph: StockGraph, scope: str, links: Links
) -> Iterator[tuple[str, dict[str, Pane]]]:
    earlier = f"{scope}.captured"
    if graph.error:
        yield "failed", {f"{scope}.error": pane("error", [text_view("text", [
            block(plain_lines(graph.error), first=0, language="")])], problem="failed")}
    if graph.joint is not None:
        name = f"{scope}.joint"
        yield "autograd", joint_panes(graph.joint, None, name, earlier, links)
        earlier = name
    for part in graph.parts:
        yield part.name, _part_panes(part, f"{scope}.{part.name}", earlier, links)


def _part_panes(part: StockPart, scope: str, earlier: str, links: Links) -> dict[str, Pane]:
    links.graph(part.graph, scope, earlier)
    links.graph(part.last, scope, earlier)
    for node in (*part.ir_before, *part.ir_after):
        links.add("buffer", scope, node.name, links.find("node", scope, sorted(node.origins)))
    calls = sum(node.op.startswith("call") for node in part.graph.nodes)
    return {
        f"{scope}.graph": pane("graph", _graph_views(part.graph, scope, links), count=calls),
        f"{scope}.rewrites": _rewrites(part, scope, links),
        f"{scope}.loops": _ir(part, scope, links),
        f"{scope}.schedule": _schedule(part, scope, links),
        f"{scope}.code": _code(part, scope, links),
        f"{scope}.host": _host(part, scope, links),
    }


def _rewrites(part: StockPart, scope: str, links: Links) -> Pane:
    """The graph after stock's passes, and the diff; stock does not report single rules."""
    if part.after is None:
        return pane("passes", [empty_view("diff", UNTOLD)])
    changed = part.after.text.split() != part.graph.text.split()
    step = Step("all stock passes", part.graph, part.after, ())
    diff: View = (
        text_view("diff", [step_diff(step, scope, links)])
        if changed
        else empty_view("diff", "Stock's passes did not change this graph.")
    )
    return pane("passes", [diff, *_graph_views(part.after, scope, links)])


def _ir(part: StockPart, scope: str, links: Links) -> Pane:
    """Scheduler nodes before fusion."""
    if not part.ir_before:
        return pane("IR", [empty_view("text", part.missing.get("ir", UNTOLD))])
    views: list[View] = [_ir_text(part.ir_before, scope, links, "text"),
                         _ir_picture(part, scope, links, fused=False).view("graph")]
    return pane("IR", views, count=len(part.ir_before))


def _ir_text(nodes: tuple[IrNode, ...], scope: str, links: Links, name: str) -> View:
    blocks = []
    for node in nodes:
        things = links.find("buffer", scope, [node.name])
        lines = [[line, things] for line in node.text.split("\n")]
        blocks.append(block(lines, f"{node.name}   {node.kind}"))
    return text_view(name, blocks)


def _schedule(part: StockPart, scope: str, links: Links) -> Pane:
    """The fusion decisions with reasons, and the memory traffic of each kernel."""
    kernels = _kernels_view(part, scope, links)
    if not part.ir_before:
        why = part.missing.get("ir", UNTOLD)
        return pane("schedule", [empty_view("graph", why), kernels], count=len(part.kernels))
    rows = [
        row((f"{s.first} + {s.second}", "fused" if s.fused else "not fused", s.reason),
            links.find("buffer", scope, (s.first, s.second)) or _members(s.first, s.second,
                                                                         scope, links),
            mark="ok" if s.fused else "no")
        for s in part.fusion
    ]
    decisions = (
        table_view("decisions", ("pair", "decision", "reason"), rows, FROM_LOG)
        if rows
        else empty_view("decisions", "Stock's fusion log lists no pairs: no two nodes share data.")
    )
    views: list[View] = [_ir_picture(part, scope, links, fused=True).view("graph"), decisions,
                         why_not_fused_view(part, scope, links), kernels,
                         _ir_text(part.ir_after, scope, links, "IR after fusion")]
    count = ops_to(len(part.ir_before), len(part.ir_after))
    return pane("schedule", views, count=count)


def _members(first: str, second: str, scope: str, links: Links) -> list[int]:
    return links.find("buffer", scope, (*first.split("_"), *second.split("_")))


def _kernels_view(part: StockPart, scope: str, links: Links) -> View:
    rows = [
        row((k.name, k.language, k.calls, bytes_text(k.bytes_read), bytes_text(k.bytes_written)),
            links.find("node", scope, k.nodes), [("computes", ", ".join(k.nodes) or "unknown")])
        for k in part.kernels
    ]
    columns = ("kernel", "language", ">calls", ">reads", ">writes")
    return table_view("kernels", columns, rows, "Bytes are counted from the graph.")


def _ir_picture(part: StockPart, scope: str, links: Links, *, fused: bool) -> Picture:
    """One box for each scheduler node, with a frame around fused nodes."""
    made = {buffer: node.name for node in part.ir_before for buffer in node.writes}
    edges = [
        (made[buffer], node.name)
        for node in part.ir_before
        for buffer in node.reads
        if made.get(buffer, node.name) != node.name
    ]
    groups = {m: n for n in part.ir_after for m in n.members if fused and len(n.members) > 1}
    frames, frame_of = _module_frames(part, groups, edges)
    for group in dict.fromkeys(groups.values()):
        things = tuple(links.find("node", scope, sorted(group.origins)))
        around = frame_of.get(group.members[0], ROOT)
        sub = f"{len(group.members)} nodes in one kernel"
        frames.append(Frame(group.name, group.name, sub, group.kind, around, True, things))
    frame_of.update({member: group.name for member, group in groups.items()})
    items = [_ir_item(node, scope, links, frame_of.get(node.name, ROOT)) for node in part.ir_before]
    return draw(part.name, items, frames, edges)


def _ir_item(node: IrNode, scope: str, links: Links, frame: str) -> Item:
    return Item(
        name=node.name,
        label=f"{node.name} = {' + '.join(sorted(node.origins)) or node.kind}",
        sub=node.kind,
        role="call" if node.kind == "ComputedBuffer" else "extern",
        tip=f"{node.name}: {node.kind}\nreads {', '.join(node.reads) or 'nothing'}",
        things=tuple(links.find("buffer", scope, [node.name])),
        frame=frame,
    )


def _module_frames(
    part: StockPart, groups: Mapping[str, IrNode], edges: list[tuple[str, str]]
) -> tuple[list[Frame], dict[str, str]]:
    """Module frames of a large program; nodes of one kernel are in the same frame."""
    if len(part.ir_before) <= OPEN_UP_TO:
        return [], {}
    paths = node_paths((*part.graph.nodes, *part.last.nodes))
    where = {
        node.name: common_module(
            paths.get(origin, "") for origin in groups.get(node.name, node).origins
        )
        for node in part.ir_before
    }
    kinds = {node.name: node.kind for node in part.ir_before}
    frames, frame_of = module_frames(where, kinds, edges)
    return list(frames), dict(frame_of)


def _code(part: StockPart, scope: str, links: Links) -> Pane:
    blocks = [_kernel_block(kernel, scope, links) for kernel in part.kernels]
    if not blocks:
        nothing = "No kernels: this part only calls libraries or creates views."
        why = part.missing.get("code", nothing)
        return pane("code", [empty_view("text", why)])
    views: list[View] = [text_view("text", blocks)]
    if "provenance" in part.missing:
        views.append(empty_view("links", part.missing["provenance"]))
    return pane("code", views, count=len(part.generated))


def _kernel_block(kernel: StockKernel, scope: str, links: Links) -> Block:
    if kernel.language == "extern":
        lines: list[Any] = [[EXTERN, links.find("node", scope, kernel.nodes)]]
        return block(lines, f"{kernel.name}   extern", first=0, language="")
    shown = code_lines(kernel.code, links, scope)
    return block(shown, f"{kernel.name}   {kernel.language}", language=kernel.language)


def _host(part: StockPart, scope: str, links: Links) -> Pane:
    if not part.text:
        return pane("host", [empty_view("text", part.missing.get("code", UNTOLD))])
    lines = code_lines(part.host, links, scope)
    return pane("host", [text_view("text", [block(lines)])])


def _time(c: StockCompilation) -> Pane:
    views: list[View] = [timeline_view(c.name, c.phases)] if c.phases else []
    if c.capture.seconds:
        note = "Reported by PyTorch. Parent phases include their children."
        views.append(bars_view("phases", c.capture.seconds, note))
    if c.problems:
        rows = [row((problem,), mark="warn") for problem in c.problems]
        views.append(table_view("problems", ("could not be read",), rows))
    views += cuda_graph_views(c)
    return pane("time", views or [empty_view("timeline", UNTOLD)], seconds=c.total_seconds)
