"""A live GraphModule → `FxGraph`: metadata, spans, module paths and ancestry of its nodes.

This is not on the compiler's hot path: the pipeline calls it only for compilations that are
inspected.  A graph of 1,000 nodes takes some tens of milliseconds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.capture.fx_graph import FxGraph, FxNode, Span, TensorFacts
from inductor_lab.compiler.capture.span import innermost
from inductor_lab.compiler.capture.text import arguments_text, graph_text, node_value, target_text
from inductor_lab.compiler.torch_door.torch_api import DTYPE_NAMES, nbytes_hint

_FIRST_NAME = re.compile(r"^[LG]\['(\w+)'\]")
_ARRAY = re.compile(r"^___from_numpy\((.*)\)$")
_Spans = dict[tuple[str, str], Span | None]
_ITEM = re.compile(r"\['?(\w+)'?\]")


def fx_graph(module: torch.fx.GraphModule, name: str, *, earlier: FxGraph | None = None) -> FxGraph:
    """The record of a GraphModule; `earlier` is the graph that it was made from, for
    `came_from`."""
    spans: _Spans = {}
    ancestors = _ancestors(module.graph, earlier)
    facts = (_fx_node(node, spans, ancestors, of) for node, of in _locator(module.graph).items())
    nodes = tuple(_by_place(earlier, facts))
    return FxGraph(name, nodes, graph_text(name, module.graph, nodes), module)


def _fx_node(
    node: torch.fx.Node, spans: _Spans, ancestors: Mapping[str, tuple[str, ...]], at: torch.fx.Node
) -> FxNode:
    place = (at.meta.get("stack_trace") or "", _callee(at))
    if place not in spans:
        spans[place] = innermost(*place)
    is_input = node.op == "placeholder"
    return FxNode(
        name=node.name,
        op=node.op,
        target=target_text(node.target),
        args=arguments_text(node),
        inputs=tuple(n.name for n in node.all_input_nodes),
        tensor=tensor_facts(node_value(node)),
        span=None if is_input else spans[place],
        module_path=module_path(node),
        came_from=ancestors.get(node.name, ()),
        is_backward=is_backward(node),
        given=given_name(node) if is_input else "",
    )


def _locator(graph: torch.fx.Graph) -> dict[torch.fx.Node, torch.fx.Node]:
    """Each node → the node that has its location in the user's code.

    This is the node itself.  For a node that torch has added (a number converted to a tensor), it
    is the first node that uses it.
    """
    told: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in reversed(graph.nodes):
        user = None if node.meta.get("stack_trace") else next(iter(node.users), None)
        told[node] = node if user is None else told[user]
    return dict(reversed(told.items()))


def _callee(node: torch.fx.Node) -> str:
    """The name of the callee in the user's code: `"sin"` for `torch.sin(x)`, `"pow"` for `x **
    2`."""
    stack = node.meta.get("source_fn_stack") or node.meta.get("fwd_source_fn_stack")
    target = stack[-1][1] if stack else node.target
    return target if isinstance(target, str) else getattr(target, "__name__", "")


def is_backward(node: torch.fx.Node) -> bool:
    """Does this node compute a gradient?"""
    tag = node.meta.get("partitioner_tag", "")
    return tag in ("is_backward", "must_be_in_backward") or bool(node.meta.get("autograd_backward"))


def tensor_facts(value: Any) -> TensorFacts | None:
    """Metadata of a (fake) tensor; None for any other value."""
    if not isinstance(value, torch.Tensor):
        return None
    strided = value.layout == torch.strided
    return TensorFacts(
        dtype=DTYPE_NAMES[value.dtype],
        shape=tuple(str(size) for size in value.shape),
        stride=tuple(str(step) for step in value.stride()) if strided else (),
        device=str(value.device),
        nbytes=nbytes_hint(value),
    )


def given_name(node: torch.fx.Node) -> str:
    """The user's name of an input that Dynamo found.

    It is `h.0.attn.weight` for `L['self']._modules['h']._modules['0'].attn._parameters['weight']`,
    and `x` for `___from_numpy(L['x'])`, an array.
    """
    name = getattr(getattr(node.meta.get("grapharg"), "source", None), "name", "")
    path = _ARRAY.sub(r"\1", name() if callable(name) else name)
    return _dotted(_FIRST_NAME.sub(r"\1", path)).removeprefix("self.")


def module_path(node: torch.fx.Node) -> str:
    """The module of a node, such as `encoder.layer.3.attention`; "" outside modules."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    if first := _FIRST_NAME.match(path):
        rest = path[first.end() :].lstrip(".")
        path = rest if path.startswith("L") else f"{first[1]}.{rest}".rstrip(".")
    return _dotted(path)


def _dotted(path: str) -> str:
    """`net._modules['0']._parameters['weight']` → `net.0.weight`."""
    path = _ITEM.sub(r".\1", path)
    return re.sub(r"\b_(modules|parameters|buffers)\.|\.?__wrapped__", "", path).strip(".")


def _ancestors(graph: torch.fx.Graph, earlier: FxGraph | None) -> dict[str, tuple[str, ...]]:
    """For each node, the names of its ancestors in `earlier`, from the most reliable source
    available.

    1. `lab_from`, which our rewrites set; 2. the same name and target (our partitioner and passes
    keep names); 3. `from_node`, the chain that FX keeps; 4. an argument's position; 5.
    `source_fn_stack`; 6. for gradients, the forward nodes with the same autograd sequence number,
    and for a sum of gradients the ancestors of its operands.  Other nodes get the ancestors with
    the same source expression (`_by_place`).
    """
    if earlier is None:
        return {}
    known = {node.name: node for node in earlier.nodes}
    inputs = [node.name for node in earlier.nodes if node.op == "placeholder"]
    rules = (
        partial(_by_rewrite, known),
        partial(_by_name, known),
        partial(_by_from_node, known),
        partial(_by_position, inputs),
        partial(_by_source_fn, known),
    )
    found: dict[str, tuple[str, ...]] = {}
    by_sequence: dict[int, dict[str, None]] = defaultdict(dict)
    for node in graph.nodes:
        names = next((names for rule in rules if (names := rule(node))), ())
        sequence = node.meta.get("seq_nr")
        if names and not is_backward(node) and sequence is not None:
            by_sequence[sequence].update(dict.fromkeys(names))
        if not names and node.meta.get("is_gradient_acc"):
            summands = (found.get(n.name, ()) for n in node.all_input_nodes)
            names = tuple(dict.fromkeys(ancestor for a in summands for ancestor in a))
        elif not names and is_backward(node):
            names = tuple(by_sequence.get(sequence, ()))
        if names:
            found[node.name] = names
    return found


def _by_place(earlier: FxGraph | None, nodes: Iterable[FxNode]) -> Iterator[FxNode]:
    """Give calls without ancestors the calls of `earlier` with the same source location."""
    names: dict[tuple[str, int, int], list[str]] = defaultdict(list)
    for known in earlier.nodes if earlier else ():
        if known.span and known.op.startswith("call"):
            names[known.span.file, known.span.line, known.span.column].append(known.name)
    for node in nodes:
        if node.span and not node.came_from and node.op.startswith("call"):
            place = (node.span.file, node.span.line, node.span.column)
            node = replace(node, came_from=tuple(names.get(place, ())))
        yield node


def _by_rewrite(known: Mapping[str, FxNode], node: torch.fx.Node) -> tuple[str, ...]:
    return _only_known(known, node.meta.get("lab_from", ()))


def _by_name(known: Mapping[str, FxNode], node: torch.fx.Node) -> tuple[str, ...]:
    same = known.get(node.name)
    if same is None or node.op == "output":
        return ()
    is_saved_value = node.op == "placeholder"
    return (node.name,) if is_saved_value or same.target == target_text(node.target) else ()


def _by_from_node(known: Mapping[str, FxNode], node: torch.fx.Node) -> tuple[str, ...]:
    level = list(node.meta.get("from_node") or ())
    while level:
        names = _only_known(known, (source.name for source in level))
        if names:
            return names
        level = [deeper for source in level for deeper in source.from_node]
    return ()


def _by_position(inputs: list[str], node: torch.fx.Node) -> tuple[str, ...]:
    position = getattr(node.meta.get("desc"), "idx", None)
    if node.op != "placeholder" or position is None or position >= len(inputs):
        return ()
    return (inputs[position],)


def _by_source_fn(known: Mapping[str, FxNode], node: torch.fx.Node) -> tuple[str, ...]:
    stack = node.meta.get("source_fn_stack") or node.meta.get("fwd_source_fn_stack") or ()
    return _only_known(known, (name for name, _ in reversed(stack)))[:1]


def _only_known(known: Mapping[str, FxNode], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name in known))
