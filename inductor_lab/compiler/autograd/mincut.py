"""Which values to save: a minimum cut.

Every forward value is an edge from `in` to `out`; its capacity is the cost of saving the value. The
source is connected to the values that cannot be recomputed, the sink to the values that the
backward reads.  A minimum cut between source and sink is the cheapest set of values to save: all
values behind the cut can be recomputed from it.

    source ──inf──> x.in ══4096══> x.out ──inf──> sin.in ══8192══> sin.out ──inf──> sink

Chen et al. 2016, "Training deep nets with sublinear memory cost", for trading memory for time;
Inductor: `torch/_functorch/partitioners.py`, `solve_min_cut`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import networkx as nx
from networkx.algorithms.flow import boykov_kolmogorov


@dataclass(frozen=True, slots=True)
class Pipe:
    """One forward value in the flow network.

    inputs        the values it is computed from
    width         the cost of saving it; None if it cannot be saved (a tuple, a checkpointed value)
    is_source     it cannot be recomputed, or must not be
    is_needed     the backward reads it
    """

    name: str
    inputs: tuple[str, ...]
    width: int | None
    is_source: bool
    is_needed: bool


def cheapest_cut(pipes: Iterable[Pipe]) -> frozenset[str] | None:
    """Names of the values to save; None if no finite cut exists.

    Of several minimum cuts it is the one nearest to the sink, which has the least recomputation.
    """
    network, needed = _network(list(pipes))
    if not needed:
        return frozenset()
    try:
        residual = boykov_kolmogorov(network, "source", "sink", capacity="width")
    except nx.NetworkXUnbounded:
        return None
    open_end = _reaches_sink(residual)
    return frozenset(
        name
        for name, side in (node for node in open_end if isinstance(node, tuple))
        if side == "out" and (name, "in") not in open_end
    )


def _network(pipes: list[Pipe]) -> tuple[nx.DiGraph, bool]:
    network = nx.DiGraph()
    network.add_nodes_from(("source", "sink"))
    known = {pipe.name for pipe in pipes}
    for pipe in pipes:
        enters, leaves = (pipe.name, "in"), (pipe.name, "out")
        width = {} if pipe.width is None else {"width": pipe.width}
        network.add_edge(enters, leaves, **width)
        if pipe.is_source:
            network.add_edge("source", enters)
        else:
            network.add_edges_from(((i, "out"), enters) for i in pipe.inputs if i in known)
        if pipe.is_needed:
            network.add_edge(leaves, "sink")
    return network, any(pipe.is_needed for pipe in pipes)


def _reaches_sink(residual: nx.DiGraph) -> set[object]:
    """All nodes with a path of positive residual capacity to the sink."""
    reached: set[object] = {"sink"}
    frontier: list[object] = ["sink"]
    edges: Mapping[object, Mapping[object, Mapping[str, float]]] = residual.pred
    while frontier:
        for before, edge in edges[frontier.pop()].items():
            if before not in reached and edge["flow"] < edge["capacity"]:
                reached.add(before)
                frontier.append(before)
    return reached
