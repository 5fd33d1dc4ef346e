"""Compare the stages of one graph in float64, and find the first value that differs.

In float64, the stages before code generation agree to many digits, whatever the dtype of the
program.  So a value that differs is wrong; it is not rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, Span
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.rewrite.rewrites import Fired, Step
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.blame.programs import Ran
from inductor_lab.debug.blame.run_graphs import SHAKES, Keeping, values_of

Values = Mapping[str, Any]
DIGITS = 1e-9
"""Tolerance in float64, relative to the value, ..."""
OF_LARGEST = 1e-12
"""... relative to the largest element, ..."""
SHAKEN = 32.0
"""... and relative to the rounding error of the program's dtype."""


def agree(first: Any, second: Any, spread: Any = None) -> bool:
    """Do two values of float64 runs agree within the tolerance?"""
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(agree, first, second))
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return type(first) is not type(second) or bool(first == second) or first != first
    if first.shape != second.shape:
        return False
    first, second = (_comparable(value) for value in (first, second))
    both_nan = first.isnan() & second.isnan()
    equal = (first == second) | both_nan
    allowed = DIGITS * second.abs() + OF_LARGEST * _largest(second)
    if isinstance(spread, torch.Tensor) and spread.shape == first.shape:
        allowed = allowed + SHAKEN * spread
    return bool((equal | ((first - second).abs() <= allowed)).all())


def _comparable(value: torch.Tensor) -> torch.Tensor:
    value = value.detach()
    value = value.to_dense() if value.layout is not torch.strided else value
    return value.to(torch.complex128 if value.dtype.is_complex else torch.float64).cpu()


def _largest(value: torch.Tensor) -> float:
    finite = value[value.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def spread_of(runs: Iterable[Values], exact: Values) -> dict[str, torch.Tensor]:
    """The largest change of each value in the perturbed runs."""
    found: dict[str, torch.Tensor] = {}
    for run in runs:
        for name, value in exact.items():
            other = run.get(name)
            if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
                continue
            if other.shape != value.shape or value.layout is not torch.strided:
                continue
            moved = (_comparable(other) - _comparable(value)).abs().nan_to_num(0.0, 0.0, 0.0)
            found[name] = torch.maximum(found[name], moved) if name in found else moved
    return found


@dataclass(frozen=True)
class GraphRun:
    """A graph run in its own dtypes and in float64, with its rounding errors.

    `exact` is None if it does not run in float64; `drawn` are random numbers, equal in all runs.
    """

    graph: FxGraph
    own: Values
    exact: Values | None
    spread: Mapping[str, torch.Tensor]
    drawn: Values


def run_graph(
    graph: FxGraph, inputs: Sequence[Any], wide_inputs: Sequence[Any], random: Iterable[str],
    drawn: Values | None = None,
) -> GraphRun:
    """Run a graph on inputs of its own dtypes, and on the same inputs in float64.

    The `random` nodes whose numbers were `drawn` before get the same numbers.
    """
    own = values_of(graph.module, inputs, replaced=drawn or {})
    drawn = {name: own[name] for name in random if name in own}
    try:
        exact = values_of(graph.module, wide_inputs, wide=True, replaced=drawn)
    except (RuntimeError, NotImplementedError, TypeError):
        return GraphRun(graph, own, None, {}, drawn)
    shaken = (
        values_of(graph.module, wide_inputs, wide=True, shaken=seed, replaced=drawn)
        for seed in range(1, SHAKES + 1)
    )
    return GraphRun(graph, own, exact, spread_of(shaken, exact), drawn)


# ---- the first value that differs ---------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """The first wrong value of a stage: its node, and the node that it should agree with."""

    node: FxNode
    says: str
    value: str = ""


def first_lost(
    before: FxGraph, exact: Values, after: FxGraph, later: Values
) -> Difference | None:
    """The first node of `before` whose value none of the nodes derived from it computes."""
    heirs: dict[str, list[str]] = {}
    for node in after.nodes:
        for name in node.came_from:
            heirs.setdefault(name, []).append(node.name)
    for node in before.nodes:
        value = exact.get(node.name)
        if node.op == "placeholder" or not isinstance(value, torch.Tensor):
            continue
        made = [n for n in heirs.get(node.name, ()) if isinstance(later.get(n), torch.Tensor)]
        if made and not any(same_numbers(later[name], value) for name in made):
            return Difference(node, f"{node.name} became {', '.join(made)}", made[-1])
    return None


def same_numbers(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Do two tensors agree element by element, whatever their shapes?"""
    if first.numel() != second.numel():
        return False
    return agree(first.reshape(-1), second.reshape(-1))


def first_changed(
    nodes: Iterable[FxNode], exact: Values, later: Values, spread: Values
) -> FxNode | None:
    """The first node whose value differs from the node of the same name in a later graph."""
    for node in nodes:
        known = node.name in exact and node.name in later
        if known and not agree(later[node.name], exact[node.name], spread.get(node.name)):
            return node
    return None


def wrong_rule(step: Step, before: GraphRun, after: Values) -> tuple[Fired, Any] | None:
    """The first application of a rule that changes a value."""
    assert before.exact is not None, "rules are judged in float64"
    for fired in step.fired:
        old, new = before.exact.get(fired.node), after.get(fired.became)
        if old is not None and new is not None and fired.became != fired.node:
            if not agree(new, old, before.spread.get(fired.node)):
                return fired, new
    return None


def lost_gradient(
    captured: FxGraph, gradients: Values, joint: FxGraph, values: Values
) -> Difference | None:
    """The captured node whose gradient in the joint graph is right, but not those of its inputs.

    `gradients` has the gradient of each captured node's value by autograd, in float64.
    """
    made = [
        values[n.name] for n in joint.nodes
        if isinstance(values.get(n.name), torch.Tensor) and (n.is_backward or n.op == "placeholder")
    ]  # fmt: skip

    def found(name: str) -> bool:
        return any(same_numbers(value, gradients[name]) for value in made)

    users: dict[str, int] = {}
    for node in captured.nodes:
        for name in node.inputs:
            users[name] = users.get(name, 0) + 1
    for node in reversed(captured.nodes):
        wanted = [n for n in node.inputs if n in gradients and users[n] == 1]
        if node.name in gradients and wanted and found(node.name):
            lost = [name for name in wanted if not found(name)]
            if lost:
                says = f"the gradient of {lost[0]} is computed by no node"
                return Difference(node, says, lost[0])
    return None


def gradients_of(module: Any, inputs: Sequence[Any], tangent: Callable[..., Any]) -> Values:
    """The gradient of each node's value by autograd, in float64."""
    found: dict[str, torch.Tensor] = {}

    class Hooked(Keeping):
        def run_node(self, n: torch.fx.Node) -> Any:
            value = super().run_node(n)
            if isinstance(value, torch.Tensor) and value.requires_grad and n.op != "output":
                if value.is_leaf and n.op == "placeholder":
                    value = value.view_as(value)

                def keep(gradient: torch.Tensor, name: str = n.name) -> None:
                    found[name] = gradient.detach()

                value.register_hook(keep)
            return value

    with torch.enable_grad():
        results = Hooked(module, wide=True, keep=False).run_graph(inputs)
        leaves = [
            r for r in pytree.tree_leaves(results)
            if isinstance(r, torch.Tensor) and r.requires_grad
        ]  # fmt: skip
        if leaves:
            given = [tangent(value, number) for number, value in enumerate(leaves)]
            torch.autograd.backward(leaves, given)
    return found


def wrong_buffer(
    ran: Ran, buffers: Mapping[str, Buffer], known: GraphRun
) -> tuple[str, str] | None:
    """The first buffer of a loop program (in float64) that has the value of none of its nodes, and
    the node."""
    assert known.exact is not None, "loops are judged in float64"
    nodes_of: dict[str, list[str]] = {}
    for name, node in holders(buffers):
        nodes_of.setdefault(name, []).append(node)
    for name, value in ran.buffers.items():
        nodes = nodes_of.get(name, [])
        same_size = [
            n for n in nodes
            if isinstance(known.exact.get(n), torch.Tensor)
            and known.exact[n].numel() == value.numel()
        ]  # fmt: skip
        if same_size and not any(_holds(value, known, node) for node in same_size):
            return name, same_size[-1]
    return None


def holders(buffers: Mapping[str, Buffer]) -> list[tuple[str, str]]:
    """A buffer and the node whose value it holds; for several buffers of a node, the last one."""
    last = {node: name for name, buffer in buffers.items() for node in sorted(buffer.origins)}
    return [(name, node) for node, name in last.items()]


def _holds(value: torch.Tensor, known: GraphRun, node: str) -> bool:
    """Does a buffer have the values of a node?"""
    assert known.exact is not None, "compared in float64"
    spread = known.spread.get(node)
    spread = None if spread is None else spread.reshape(-1)
    return agree(value.reshape(-1), known.exact[node].reshape(-1), spread)


# ---- the line in user code ----------------------------------------------------------------------


def span_of(name: str, graphs: Sequence[FxGraph]) -> Span | None:
    """The user's line of a node, searched in the graphs from the last to the first."""
    names = {name}
    for graph in reversed(graphs):
        known = [node for node in graph.nodes if node.name in names]
        for node in known:
            if node.span is not None:
                return node.span
        names |= {ancestor for node in known for ancestor in node.came_from}
    return None
