"""`c.cuda_graphs()`: which parts of a compiled call are replayed as CUDA graphs, and why not.

For our compiler the reasons are those of `compiler/runtime/cuda_graph_reasons.py`; for stock they
are the warnings of its log `cudagraphs` ("skipping cudagraphs due to ..."); it has none for a CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from inductor_lab.compiler.base.display import Documented
from inductor_lab.compiler.base.errors import NotReplayed
from inductor_lab.compiler.records import CompiledGraph, CompiledPart, Record
from inductor_lab.compiler.runtime.cuda_graph_reasons import MODES, not_requested, why_not
from inductor_lab.stock.stock_compilation import StockCompilation, StockGraph, StockPart


@dataclass(frozen=True, slots=True)
class ReplayedPart:
    """One part; `reason` is why it is not replayed, "" if it is."""

    part: str
    reason: str

    @property
    def replayed(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        return f"{self.part}: {'replayed' if self.replayed else f'not replayed: {self.reason}'}"


@dataclass(frozen=True)
class CudaGraphs(Documented):
    """The parts of a compilation, in order; made by `c.cuda_graphs()`."""

    name: str
    parts: tuple[ReplayedPart, ...]

    @property
    def all_replayed(self) -> bool:
        return all(part.replayed for part in self.parts)

    def __repr__(self) -> str:
        replayed = sum(part.replayed for part in self.parts)
        return f"CudaGraphs({self.name}: {replayed} of {len(self.parts)} parts replayed)"

    def __str__(self) -> str:
        return "\n".join([repr(self), *(f"  {part}" for part in self.parts)])


def cuda_graphs(compilation: Record | StockCompilation, *, require: bool = False) -> CudaGraphs:
    """Implements `Compilation.cuda_graphs` and `StockCompilation.cuda_graphs`."""
    found = CudaGraphs(compilation.name, tuple(_parts(compilation)))
    if require and not found.all_replayed:
        missing = "\n  ".join(str(part) for part in found.parts if not part.replayed)
        raise NotReplayed(f"{compilation.name} is not replayed as CUDA graphs", todo=missing)
    return found


def _parts(compilation: Record | StockCompilation) -> Iterator[ReplayedPart]:
    mode = compilation.call.options.mode if compilation.call is not None else None
    graphs: Iterable[CompiledGraph | StockGraph] = compilation.graphs
    for number, graph in enumerate(graphs):
        for part in graph.parts:
            reason = _reason(part, mode)
            yield ReplayedPart(f"g{number}.{part.name}", reason)


def _reason(part: CompiledPart | StockPart, mode: str | None) -> str:
    if isinstance(part, StockPart):
        against = "; ".join(part.cuda_graph_skips)
    else:
        against = why_not(part.schedule.program) or ""
    if asked := not_requested(devices_of(part), mode or MODES[0]):
        return f"{asked} ({against})" if against else asked
    if not against and mode is None:
        return "unknown: a saved file has no mode"
    return against


def devices_of(part: CompiledPart | StockPart) -> set[str]:
    """The devices of the tensors of a part."""
    if isinstance(part, StockPart):
        return {node.tensor.device for node in part.last.nodes if node.tensor is not None}
    return {buffer.device for buffer in part.schedule.program.buffers.values()}


def is_on_gpu(part: CompiledPart | StockPart) -> bool:
    """Is a tensor of this part on a CUDA GPU?"""
    return any(device.startswith("cuda") for device in devices_of(part))
