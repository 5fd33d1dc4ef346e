"""What a contract can be about: counts of a compiled call, with the user's lines that cause them.

    softmax(x)   →   graphs 1, breaks 0, kernels 1, library_calls 0, bytes 8192, peak 4096
                     lines: "kernel: y = x.softmax(-1)"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inductor_lab.compiler.capture.capture import Capture
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.records import CompiledPart, Record
from inductor_lab.compiler.schedule.schedule import Group
from inductor_lab.debug.explore.cuda_graph_report import cuda_graphs
from inductor_lab.stock.stock_compilation import StockCompilation, StockPart

NAMES = ("graphs", "breaks", "recompiles", "kernels", "library_calls", "bytes", "generated", "peak",
         "cudagraphs")  # fmt: skip
"""The facts, in the order in which messages list them."""


@dataclass(frozen=True)
class Facts:
    """The counts of one contract's calls.

    counts   by name (see `NAMES`).  `bytes` are read and written by all kernels and library calls,
             `generated` is the share of generated kernels, 0 to 1, `peak` the largest number of
             bytes of intermediates and outputs that are alive at the same time, `cudagraphs` the
             share of parts that are replayed as CUDA graphs.  Stock `torch.compile` reports neither
             `bytes` nor `peak`.
    lines    what each line of the user causes, `"kernel: y = x.softmax(-1)"`, and how often
    source   the lines of the compiled function
    """

    counts: Mapping[str, float]
    lines: Mapping[str, int] = field(default_factory=dict)
    source: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "lines": dict(sorted(self.lines.items())),
                "source": list(self.source)}  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Facts:
        return cls(data["counts"], data.get("lines", {}), tuple(data.get("source", ())))


def facts_of(compiled: Record | StockCompilation) -> Facts:
    """The facts of one compiled call; `recompiles` is 0."""
    lines = Counter(_break_lines(compiled.capture))
    counts: dict[str, float] = {
        "graphs": len(compiled.graphs), "breaks": len(compiled.capture.breaks), "recompiles": 0,
    }  # fmt: skip
    if isinstance(compiled, StockCompilation):
        calls = Counter(line for part in compiled.parts for line in _stock_lines(part))
    else:
        calls = Counter(line for part in compiled.parts for line in _own_lines(part))
        counts["bytes"] = compiled.after.bytes
        plans = [part.schedule.memory.peak_after for part in compiled.parts]
        counts["peak"] = max(plans, default=0)
    kernels = sum(n for line, n in calls.items() if line.startswith("kernel"))
    counts["kernels"], counts["library_calls"] = kernels, calls.total() - kernels
    counts["generated"] = kernels / calls.total() if calls else 1.0
    replayed = [part.replayed for part in cuda_graphs(compiled).parts]
    counts["cudagraphs"] = sum(replayed) / len(replayed) if replayed else 0.0
    source = tuple(line.strip() for line in compiled.source.text.splitlines() if line.strip())
    return Facts(counts, lines + calls, source)


def _break_lines(capture: Capture) -> Iterator[str]:
    for each in capture.breaks:
        yield f"break: {each.span.code if each.span else '?'}"


def _own_lines(part: CompiledPart) -> Iterator[str]:
    graphs = [part.graph, *(step.after for step in part.rewrites.steps if step.after is not None)]
    code = _code_of(graphs)
    for step in part.schedule.steps:
        what = "kernel" if isinstance(step, Group) else f"library call {step.op}"
        yield f"{part.name} {what}".removeprefix("forward ") + f": {_joined(step.origins, code)}"


def _stock_lines(part: StockPart) -> Iterator[str]:
    code = _code_of([part.graph, part.last])
    for kernel in part.kernels:
        what = f"library call {kernel.name}" if kernel.language == "extern" else "kernel"
        for _ in range(kernel.calls):
            yield f"{what}: {_joined(kernel.nodes, code)}"


def _code_of(graphs: Iterable[FxGraph]) -> dict[str, tuple[int, str]]:
    """Line number and text of each node's line."""
    return {node.name: (node.span.line, node.span.code)
            for graph in graphs for node in graph.nodes if node.span is not None}  # fmt: skip


def _joined(nodes: Iterable[str], code: Mapping[str, tuple[int, str]]) -> str:
    lines = sorted({code[node] for node in nodes if node in code})
    return "; ".join(text for _, text in lines) or "?"
