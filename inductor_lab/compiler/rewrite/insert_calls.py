"""New calls in a graph: their position, their origins, and the metadata of their results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_aggregate

from inductor_lab.compiler.torch_door.torch_api import OpOverload, make_fx, size_hint


class Adder:
    """Adds calls before a node.  They get the origins of the `consumed` nodes and the metadata of
    the first of these."""

    def __init__(self, before: Node, consumed: list[Node]) -> None:
        self.before = before
        names = (name for node in consumed for name in node.meta.get("lab_from", ()))
        self.meta = {**consumed[0].meta, "lab_from": tuple(dict.fromkeys(names))}

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        with self.before.graph.inserting_before(self.before):
            new = self.before.graph.call_function(target, args, kwargs)
        new.meta = dict(self.meta)
        new.meta["val"] = computed(new)
        return new


def inline_definition(
    node: Node, definition: Callable[..., Any], table: Mapping[Any, Callable[..., Any]]
) -> None:
    """Replace a node by the calls of `definition` with the node's arguments.

    The calls are traced and decomposed by `table`.  Arguments may contain graphs, and results may
    be tuples; each result gets the dtype and strides of the node's result.
    """
    given = [n for n in node.all_input_nodes if "val" in n.meta]
    module: Any = node.graph.owning_module

    def run(*values: Any) -> Any:
        known = dict(zip(given, values, strict=True))

        def value(item: Any) -> Any:
            if not isinstance(item, Node):
                return item
            return known[item] if item in known else operator.attrgetter(str(item.target))(module)

        return _in_layout_of(definition(*map_aggregate(node.args, value)), node.meta["val"])

    facts = [n.meta["val"] for n in given]
    with mode_of(facts):
        traced = make_fx(run, decomposition_table=table)(*facts)
    calls = dict(zip(traced.graph.find_nodes(op="placeholder"), given, strict=True))
    add = Adder(node, [node])
    for call in traced.graph.find_nodes(op="get_attr"):
        name = f"{node.name}_{call.target}"
        setattr(module, name, getattr(traced, call.target))
        call.target = name
    with node.graph.inserting_before(node):
        results = node.graph.graph_copy(traced.graph, calls)
    for new in calls.values():
        if new not in given:
            new.meta = {**add.meta, "val": new.meta["val"]}
    _replace_items(node, results)


def _replace_items(node: Node, results: Any) -> None:
    """Replace the items of a node that returned all results by these results."""
    for user in list(node.users):
        result = results[user.args[1]]
        if isinstance(result, Node):
            user.replace_all_uses_with(result)
            node.graph.erase_node(user)
        else:
            _replace_items(user, result)
    node.graph.erase_node(node)


def _in_layout_of(value: Any, fake: Any) -> Any:
    """Tensors with the dtype and memory order of others, which have no gaps."""
    if isinstance(fake, tuple | list):
        return tuple(map(_in_layout_of, value, fake))
    if not isinstance(value, torch.Tensor):
        return value
    value = value.to(fake.dtype)
    if value.stride() == fake.stride():
        return value
    order = sorted(range(fake.dim()), key=lambda dim: size_hint(fake.stride(dim)), reverse=True)
    back = [order.index(dim) for dim in range(fake.dim())]
    return value.permute(order).contiguous().permute(back)


def computed(node: Node) -> Any:
    """The fake result of a node, computed from its operands; None if that fails."""
    if node.target is not operator.getitem and not isinstance(node.target, OpOverload):
        return None
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    fakes = (n.meta["val"] for n in (*node.all_input_nodes, node))
    function: Callable[..., Any] = node.target
    with mode_of(fakes):
        return function(*args, **kwargs)


def mode_of(fakes: Iterable[Any]) -> Any:
    """The mode in which fake tensors were made."""
    return next(getattr(fake, "fake_mode", None) for fake in flat(fakes))


def flat(values: Any) -> Iterator[torch.Tensor]:
    """The tensors among some values, at any depth."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from flat(value)
