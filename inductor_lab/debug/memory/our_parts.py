"""The buffers of our host programs: the nodes that they hold, and why some are saved."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_lab.compiler.ir.expr import NO_ORIGINS
from inductor_lab.compiler.records import CompiledGraph, CompiledPart, Record
from inductor_lab.debug.memory.parts import HostPart, order_in, places_in


def our_parts(compilation: Record) -> tuple[HostPart, ...]:
    """The host programs of a live compilation."""
    return tuple(
        _part(f"g{number}.{part.name}", graph, part)
        for number, graph in enumerate(compilation.graphs)
        for part in graph.parts
        if part.executable is not None
    )


def _part(name: str, graph: CompiledGraph, part: CompiledPart) -> HostPart:
    assert part.executable is not None, "only parts with code run"
    graphs = [part.graph, *(step.after for step in part.rewrites.steps)]
    if graph.joint is not None:
        graphs.append(graph.joint.graph)
    saved = graph.partition.saved if graph.partition is not None else ()
    return HostPart(
        name=name,
        direction="backward" if part.name == "backward" else "forward",
        text=str(part.host),
        outputs=_outputs(graph, part),
        file=part.executable.file,
        buffers=dict(_buffers(part)),
        places=places_in(*reversed(graphs)),
        order=order_in(*reversed(graphs)),
        why={each.name: each.why for each in saved},
        steps={n: line.origins for n, line in enumerate(part.host.code.lines, 1) if line.origins},
    )


def _outputs(graph: CompiledGraph, part: CompiledPart) -> int:
    if graph.joint is None or part.name == "backward":
        return len(part.loops.outputs)
    return graph.joint.num_forward_outputs


def _buffers(part: CompiledPart) -> Iterator[tuple[str, frozenset[str]]]:
    program = part.schedule.program
    nests = {nest.buffer: nest.origins for nest in program.nests}
    for name, buffer in program.buffers.items():
        yield name, buffer.origins or nests.get(name, NO_ORIGINS)


def planned_peak(compilation: Record) -> int:
    """The largest number of bytes that the memory plans have alive, with values saved before.

    Arguments and parameters are not counted.  Graphs run one after the other, and then their
    backwards in reverse order; gradients stay alive.
    """
    alive = most = 0
    for graph in compilation.graphs:
        most = max(most, alive + graph.forward.schedule.memory.peak_after)
        alive += _left_over(graph.forward)
    for graph in reversed(compilation.graphs):
        if graph.backward is not None:
            most = max(most, alive + graph.backward.schedule.memory.peak_after)
            kept = graph.partition.cut_bytes if graph.partition is not None else 0
            alive += _left_over(graph.backward) - kept
    return most


def _left_over(part: CompiledPart) -> int:
    """Bytes of the buffers that a part returns."""
    plan, end = part.schedule.memory, len(part.schedule.steps)
    return sum(life.nbytes for life in plan.lifetimes if life.last >= end)
