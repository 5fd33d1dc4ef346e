"""What a compile id told → its graphs, kernels and schedule as records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from inductor_lab.compiler.autograd.graphs import JointGraph
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.span import shown_file
from inductor_lab.stock.graph_text import read_graph
from inductor_lab.stock.ir_text import fusion_steps, ir_nodes, origins_by_node
from inductor_lab.stock.output_code import read_output_code
from inductor_lab.stock.stock_compilation import StockGraph, StockPart
from inductor_lab.stock.trace_index import PartTold, Told

_FRAME = re.compile(r'File "(.*?)", line (\d+)')
Ancestors = Mapping[str, tuple[str, ...]]

NO_IR = "Stock tells its IR and fusion log to this process only: use lab.inspect(compiler='stock')."
NO_CODE = "Stock did not get as far as code."
CACHED = "The graph came from stock's cache: nothing was scheduled this time."
ONLY_LINES = "Stock told the lines of a kernel, not its nodes: it is linked to all nodes of them."
NO_PROVENANCE = "No links from kernels to nodes: write the log with INDUCTOR_PROVENANCE=1."


def stock_graph(told: Told, hints: Mapping[str, int], name: str) -> StockGraph:
    """The records of one compile id; whatever was not told is None or empty."""
    captured = read_graph(name, told.captured, hints=hints)
    to_captured: dict[str, tuple[str, ...]] = {}
    for part in told.parts:
        to_captured |= part.to_captured
    joint = _joint(told, to_captured, hints)
    found = [_part(told, part, position, to_captured, joint, hints)
             for position, part in enumerate(told.parts)]
    forward = next((part for part in found if part.name == "forward"), None)
    backward = next((part for part in found if part.name == "backward"), None)
    return StockGraph(told.compile_id, captured, joint, forward, backward, _error(told))


def _joint(told: Told, ancestors: Ancestors, hints: Mapping[str, int]) -> JointGraph | None:
    if not told.joint:
        return None
    graph = read_graph("joint", told.joint, ancestors, hints)
    given = [node.name for node in graph.nodes if node.op == "placeholder"]
    tangents = tuple(name for name in given if name.startswith("tangents"))
    forward = read_graph("forward", told.directions.get("forward", ""))
    saved = told.directions.get("forward", "").count("SavedForBackwardsAOTOutput")
    outputs = next((n.args for n in forward.nodes if n.op == "output"), "")
    count = max(len(outputs.strip("()").split(",")) - saved, 0) if outputs else 0
    return JointGraph(graph, count, tuple(n for n in given if n not in tangents), tangents)


def _part(
    told: Told,
    part: PartTold,
    position: int,
    to_captured: Ancestors,
    joint: JointGraph | None,
    hints: Mapping[str, int],
) -> StockPart:
    known = {node.name for node in joint.graph.nodes} if joint else set()
    ancestors = {name: (name,) for name in known} if joint else to_captured
    direction = _direction_of(part, position)
    given = told.directions.get(direction) or told.directions.get("inference", "")
    before = read_graph(direction, part.before or given or part.after, ancestors, hints)
    after = read_graph(direction, part.after, ancestors, hints) if part.after else None
    provenance = part.provenance or by_lines(part.stacks, after or before)
    output = read_output_code(part.code, provenance, after or before)
    origins = origins_by_node(part.fusion)
    return StockPart(
        name=direction,
        graph=before,
        after=after,
        ir_before=tuple(ir_nodes(part.ir_before, origins)),
        ir_after=tuple(ir_nodes(part.ir_after, origins)),
        fusion=tuple(fusion_steps(part.fusion)),
        kernels=output.kernels,
        host=output.host,
        text=part.code,
        cache=part.cache or told.aot_cache,
        missing=_missing(part, before, output.problem),
    )


def _direction_of(part: PartTold, position: int) -> str:
    """By the heading of its code, else by order: stock compiles a forward first."""
    backward = "_backward']" in part.code[:60] or (not part.code and position > 0)
    return "backward" if backward else "forward"


def by_lines(stacks: Mapping[str, list[str]], graph: FxGraph) -> dict[str, list[str]]:
    """`name:handle` → nodes, where stock told a kernel's source lines and not its nodes."""
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


def _missing(part: PartTold, graph: FxGraph, problem: str) -> dict[str, str]:
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


def _error(told: Told) -> str:
    kind, reason = told.metrics.get("fail_type"), told.metrics.get("fail_reason")
    return f"{kind}: {reason}" if kind else ""
