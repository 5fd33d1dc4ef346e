"""`to_dict()`: the document of a result of the compiler, and of stock `torch.compile`.

Results of other tools make their own documents (`Blame.to_dict`).  A result without a document of
its own is a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from graphlib import TopologicalSorter
from typing import Any

from inductor_lab.compiler.capture.capture import Capture
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.ir.program import read_by
from inductor_lab.compiler.records import CompiledGraph, CompiledPart, Record
from inductor_lab.compiler.schedule.schedule import Decision, Decisions, MemoryPlan
from inductor_lab.saved.documents import of_compile, of_kernel
from inductor_lab.saved.documents.kinds import document
from inductor_lab.saved.documents.sources import Sources
from inductor_lab.stock.stock_compilation import (
    StockCompilation,
    StockGraph,
    StockKernel,
    StockPart,
)


def document_of(value: Any) -> dict[str, Any]:
    """The document of a result; alone, its ids begin with its own."""
    return document(_item(value))


@singledispatch
def _item(value: Any) -> Mapping[str, Any]:
    return of_compile.text(value, type(value).__name__)


@_item.register
def _(value: Record) -> Mapping[str, Any]:
    return of_compile.compilation(value)


@_item.register
def _(value: CompiledGraph) -> Mapping[str, Any]:
    return of_compile.graph(value, "graph")


@_item.register
def _(value: CompiledPart) -> Mapping[str, Any]:
    return of_compile.part(value, value.name)


@_item.register
def _(value: Capture) -> Mapping[str, Any]:
    return of_compile.capture(value)


@_item.register
def _(value: Kernel) -> Mapping[str, Any]:
    nests = [n for part in value.group.parts for n in (*part.nests, *part.inlined.values())]
    order = TopologicalSorter(
        {nest.buffer: read_by(nest) - {nest.buffer} for nest in nests}
    ).static_order()
    position = {buffer: number for number, buffer in enumerate(order)}
    operations = of_kernel.operations_of(value.group, value, Sources({}), position, "kernel.")
    return of_kernel.kernel_document(
        value, value.group, Sources({}), "kernel", operations=operations
    )


@_item.register
def _(value: Decision) -> Mapping[str, Any]:
    return of_kernel.decision(value)


@_item.register
def _(value: Decisions) -> Mapping[str, Any]:
    return of_kernel.all_decisions(value)


@_item.register
def _(value: MemoryPlan) -> Mapping[str, Any]:
    return of_kernel.memory_plan(value, Sources({}), {})


@_item.register
def _(value: StockCompilation) -> Mapping[str, Any]:
    return of_compile.stock_compilation(value)


@_item.register
def _(value: StockGraph) -> Mapping[str, Any]:
    return of_compile.stock_graph(value, "graph")


@_item.register
def _(value: StockPart) -> Mapping[str, Any]:
    return of_compile.stock_part(value, value.name)


@_item.register
def _(value: StockKernel) -> Mapping[str, Any]:
    return of_compile.stock_kernel(value, Sources({}), "kernel")
