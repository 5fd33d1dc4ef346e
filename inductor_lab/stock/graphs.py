"""The trace texts of a compile id → its graphs, kernels and schedule as records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from inductor_lab.compiler.autograd.graphs import JointGraph
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.span import shown_file
from inductor_lab.stock.graph_text import read_graph
from inductor_lab.stock.ir_text import fusion_steps, ir_nodes, origins_by_node
from inductor_lab.stock.kernel_data import with_operations
from inductor_lab.stock.output_code import read_output_code
from inductor_lab.stock.stock_compilation import StockGraph, StockPart
from inductor_lab.stock.trace_index import PartTexts, TraceTexts

_FRAME = re.compile(r'File "(.*?)", line (\d+)')
Ancestors = Mapping[str, tuple[str, ...]]

NO_IR = "A trace has no IR and no fusion log: use lab.inspect(compiler='stock') in this process."
NO_CODE = "Stock did not generate code."
CACHED = "The graph came from stock's cache, so it was not scheduled in this run."
ONLY_LINES = "Stock reported lines, not nodes, for each kernel: it is linked to all nodes of them."
NO_PROVENANCE = "No links from kernels to nodes: write the log with INDUCTOR_PROVENANCE=1."


def stock_graph(texts: TraceTexts, hints: Mapping[str, int], name: str) -> StockGraph:
    """The records of one compile id; values that were not reported are None or empty."""
    captured = read_graph(name, texts.captured, hints=hints)
    to_captured: dict[str, tuple[str, ...]] = {}
    for part in texts.parts:
        to_captured |= part.to_captured
    joint = _joint(texts, to_captured, hints)
    found = [_part(texts, part, position, to_captured, joint, hints)
             for position, part in enumerate(texts.parts)]
    forward = next((part for part in found if part.name == "forward"), None)
    backward = next((part for part in found if part.name == "backward"), None)
    return StockGraph(texts.compile_id, captured, joint, forward, backward, _error(texts))


def _joint(texts: TraceTexts, ancestors: Ancestors, hints: Mapping[str, int]) -> JointGraph | None:
    if not texts.joint:
        return None
    graph = read_graph("joint", texts.joint, ancestors, hints)
    given = [node.name for node in graph.nodes if node.op == "placeholder"]
    tangents = tuple(name for name in given if name.startswith("tangents"))
    forward = read_graph("forward", texts.directions.get("forward", ""))
    saved = texts.directions.get("forward", "").count("SavedForBackwardsAOTOutput")
    outputs = next((n.args for n in forward.nodes if n.op == "output"), "")
    count = max(len(outputs.strip("()").split(",")) - saved, 0) if outputs else 0
    return JointGraph(graph, count, tuple(n for n in given if n not in tangents), tangents)


def _part(
    texts: TraceTexts,
    part: PartTexts,
    position: int,
    to_captured: Ancestors,
    joint: JointGraph | None,
    hints: Mapping[str, int],
) -> StockPart:
    known = {node.name for node in joint.graph.nodes} if joint else set()
    ancestors = {name: (name,) for name in known} if joint else to_captured
    direction = _direction_of(part, position)
    given = texts.directions.get(direction) or texts.directions.get("inference", "")
    before = read_graph(direction, part.before or given or part.after, ancestors, hints)
    after = read_graph(direction, part.after, ancestors, hints) if part.after else None
    provenance = part.provenance or by_lines(part.stacks, after or before)
    output = read_output_code(part.code, provenance, after or before)
    origins = origins_by_node(part.fusion)
    found = StockPart(
        name=direction,
        graph=before,
        after=after,
        ir_before=tuple(ir_nodes(part.ir_before, origins)),
        ir_after=tuple(ir_nodes(part.ir_after, origins)),
        fusion=tuple(fusion_steps(part.fusion)),
        kernels=output.kernels,
        host=output.host,
        text=part.code,
        cache=part.cache or texts.aot_cache,
        missing=_missing(part, before, output.problem),
        cuda_graph_skips=tuple(dict.fromkeys(part.cuda_graphs)),
    )
    return with_operations(found)


def _direction_of(part: PartTexts, position: int) -> str:
    """The direction, from the heading of the code or the order: stock compiles forward first."""
    backward = "_backward']" in part.code[:60] or (not part.code and position > 0)
    return "backward" if backward else "forward"


def by_lines(stacks: Mapping[str, list[str]], graph: FxGraph) -> dict[str, list[str]]:
    """`name:handle` → nodes, if stock reported a kernel's source lines but not its nodes."""
    return {
        kernel: [
            node.name
            for node in graph.nodes
            if node.span is not None and (node.span.file, node.span.line) in lines
        ]
        for kernel, lines in ((k, set(_lines(v))) for k, v in stacks.items())
    }


def _lines(stacks: list[str]) -> Iterator[tuple[str, int]]:
    """The innermost frame of each printed stack."""
    for stack in stacks:
        frames = _FRAME.findall(stack)
        if frames:
            yield shown_file(frames[-1][0]), int(frames[-1][1])


def _missing(part: PartTexts, graph: FxGraph, problem: str) -> dict[str, str]:
    found = {}
    if not part.ir_before:
        found["ir"] = CACHED if part.cache == "hit" else NO_IR
    if not part.code:
        found["code"] = NO_CODE
    elif problem:
        found["code"] = f"It cannot be read: {problem}"
    elif not part.provenance:
        found["provenance"] = ONLY_LINES if part.stacks else NO_PROVENANCE
    if not graph.nodes:
        found["graph"] = "The log has no graph for this direction, or one that cannot be read."
    return found


def _error(texts: TraceTexts) -> str:
    kind, reason = texts.metrics.get("fail_type"), texts.metrics.get("fail_reason")
    return f"{kind}: {reason}" if kind else ""
