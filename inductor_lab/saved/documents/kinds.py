"""The kinds of documents: for each, its type and the version of its JSON Schema.

A version grows only if a field is removed or changes its meaning, and the old schema stays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import resources
from typing import Any

from inductor_lab.compiler.base.errors import UnknownName, unknown_name
from inductor_lab.saved.documents import (
    command_types,
    comparison_types,
    compile_types,
    kernel_types,
    tool_types,
)

KINDS: Mapping[str, type] = {
    "advice": tool_types.Advice,
    "benchmark": tool_types.Benchmark,
    "benchmark_series": tool_types.BenchmarkSeries,
    "blame": tool_types.Blame,
    "cache": command_types.Cache,
    "capture": compile_types.Capture,
    "comparison": comparison_types.Comparison,
    "compilation": compile_types.Compilation,
    "compile": tool_types.Compile,
    "compile_time": tool_types.CompileTime,
    "decision": kernel_types.Decision,
    "decisions": kernel_types.Decisions,
    "doctor": command_types.Doctor,
    "edited_kernel": comparison_types.EditedKernel,
    "error": command_types.Error,
    "facts": command_types.Facts,
    "field": command_types.Field,
    "graph": compile_types.Graph,
    "graph_break": compile_types.GraphBreak,
    "graph_breaks": tool_types.GraphBreaks,
    "judgement": comparison_types.Judgement,
    "kernel": kernel_types.Kernel,
    "library_call": kernel_types.LibraryCall,
    "memory": command_types.Memory,
    "memory_plan": kernel_types.MemoryPlan,
    "minified": tool_types.Minified,
    "operation": kernel_types.Operation,
    "outline": command_types.Outline,
    "part": compile_types.Part,
    "rank_diff": comparison_types.RankDiff,
    "recompiles": tool_types.Recompiles,
    "run_diff": comparison_types.RunDiff,
    "stage": tool_types.Stage,
    "stage_change": comparison_types.StageChange,
    "stock_compilation": compile_types.StockCompilation,
    "stock_graph": compile_types.StockGraph,
    "stock_kernel": compile_types.StockKernel,
    "stock_part": compile_types.StockPart,
    "text": kernel_types.Text,
    "trace": tool_types.Trace,
    "trace_entry": tool_types.TraceEntry,
}
VERSIONS: Mapping[str, int] = {}
"""The versions of kinds; 1 for a kind that is not here."""


def schema_name(kind: str) -> str:
    """The name of the newest schema of a kind.

    >>> schema_name("kernel")
    'kernel.v1'
    """
    return f"{kind}.v{VERSIONS.get(kind, 1)}"


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind; raises UnknownName."""
    if kind not in KINDS:
        what, todo = unknown_name("kind of document", kind, list(KINDS))
        raise UnknownName(what, todo=todo)
    file = resources.files(__package__).joinpath("schemas", f"{schema_name(kind)}.json")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def document(item: Mapping[str, Any]) -> dict[str, Any]:
    """A document: the item, with the name of its schema first."""
    return {"schema": schema_name(item["kind"]), **item}


def finite(value: float | None) -> float | None:
    """A number as JSON has it: without infinities and NaN, which become null."""
    return value if value is not None and math.isfinite(value) else None
