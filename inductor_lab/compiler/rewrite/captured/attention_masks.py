"""Removes redundant attention masks from the captured graph, and makes other masks contiguous.

    mask = (torch.arange(n) >= 0).expand(b, 1, n, m)
    F.scaled_dot_product_attention(q, k, v, attn_mask=mask)    →    ... attn_mask=None
    ... attn_mask=torch.ones(n, m).bool().tril()               →    ... is_causal=True
    ... attn_mask=rows[:, None].expand(n, m)  (on a GPU)       →    ... attn_mask=mask.contiguous()

A mask that depends on no input is computed once, at compile time.  A mask that allows everything,
or a causal mask, prevents torch from choosing its fastest kernel; transformers makes both.  No
fused GPU kernel accepts a mask whose last dimension has gaps: torch then computes attention in
float32 without fusion.  This pass runs before AOTAutograd, so that torch itself chooses the kernel,
with its backward and its dropout.

Inductor has no such pass; it sees attention only after decomposition (`fuse_attention.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.torch_door.torch_api import without_modes

LARGEST = 1 << 24
"""The largest number of elements of a mask and of its intermediates: a few milliseconds of one
core."""

ATTENTION = torch.nn.functional.scaled_dot_product_attention
_READERS = (ATTENTION, torch.nn.functional.embedding)
"""Functions that read a mask or its positions and return no view of them."""
MASK, CAUSAL = (3, "attn_mask"), (5, "is_causal")
"""Position and name of an argument."""

_FACTORIES = (torch.arange, torch.ones, torch.zeros, torch.full)
_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    [
        *(*_FACTORIES, torch.tril, torch.triu, torch.where, torch.diff, torch.cumsum),
        *(torch.logical_and, torch.logical_or, torch.logical_not, torch.ones_like),
        *(operator.add, operator.sub, operator.mul, operator.getitem, operator.invert),
        *(operator.ge, operator.gt, operator.le, operator.lt, operator.eq, operator.ne),
        *(operator.and_, operator.or_, operator.floordiv, operator.mod),
    ]
)
_METHODS = frozenset(
    "expand to bool float unsqueeze view reshape tril triu contiguous ge gt le lt eq ne repeat"
    " clone logical_and logical_or logical_not masked_fill transpose flatten expand_as"
    " new_ones cumsum".split()
)
"""Functions that may compute a mask: none is random or writes to memory."""


def simplify_masks(module: GraphModule) -> tuple[str, ...]:
    """Simplify the masks of attention calls in a captured graph; returns the names of changed
    calls."""
    known: dict[Node, torch.Tensor | None] = {}
    changed = []
    for node in module.graph.find_nodes(op="call_function", target=ATTENTION):
        mask = _argument(node, MASK, None)
        if isinstance(mask, Node) and _argument(node, CAUSAL, False) is False:
            if mask not in known:
                known[mask] = _value(mask)
            if _simplified(node, mask, known[mask]):
                changed.append(node.name)
    if changed:
        module.recompile()
    return tuple(changed)


def _simplified(node: Node, mask: Node, value: torch.Tensor | None) -> bool:
    """Give the call a better mask; returns False if there is none."""
    if value is not None and _allows_all(value):
        _set(node, MASK, None)
        return True
    if value is not None and _is_causal(node, value):
        _set(node, MASK, None)
        _set(node, CAUSAL, True)
        return True
    fake = mask.meta.get("example_value")
    if not isinstance(fake, torch.Tensor) or fake.device.type == "cpu" or fake.dim() == 0:
        return False
    if fake.stride(-1) == 1 or not isinstance(fake.shape[-1], int) or fake.shape[-1] == 1:
        return False
    with mask.graph.inserting_before(node):
        dense = mask.graph.call_method("contiguous", (mask,))
    dense.meta = {**node.meta, "example_value": fake.contiguous()}
    _set(node, MASK, dense)
    return True


def _allows_all(value: torch.Tensor) -> bool:
    # one element of each expanded dimension
    once = [slice(None if stride else 1) for stride in value.stride()]
    value = value[tuple(once)]
    return bool(value.all() if value.dtype is torch.bool else (value == 0).all())


def _is_causal(node: Node, value: torch.Tensor) -> bool:
    """Does each row of the mask allow exactly itself and the rows before it?"""
    lengths = [_length(operand) for operand in node.args[:2]]
    if value.dtype is not torch.bool or value.dim() < 2 or list(value.shape[-2:]) != lengths:
        return False
    return bool((value == torch.ones_like(value[(0,) * (value.dim() - 2)]).tril()).all())


def _length(operand: Any) -> Any:
    fake = operand.meta.get("example_value") if isinstance(operand, Node) else None
    return fake.shape[-2] if isinstance(fake, torch.Tensor) and fake.dim() > 1 else None


def _argument(node: Node, which: tuple[int, str], default: Any) -> Any:
    place, name = which
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def _set(node: Node, which: tuple[int, str], value: Any) -> None:
    place, name = which
    if len(node.args) > place:
        node.update_arg(place, value)
    else:
        node.update_kwarg(name, value)


# ---- the value of a mask ---------------------------------------------------------------------


def _value(mask: Node) -> torch.Tensor | None:
    """The value of the mask on the CPU; None if it depends on an input or may be written to."""
    made = _computation_of(mask)
    if made is None or not _never_written(made):
        return None
    values: dict[Node, Any] = {}
    with without_modes(), torch.no_grad():
        for node in made:
            values[node] = _computed(node, values)
    found = values[mask]
    return found if isinstance(found, torch.Tensor) and found.numel() else None


def _computation_of(mask: Node) -> list[Node] | None:
    """The nodes that compute the mask, in order; None if an input or a symbol is among them."""
    wanted, seen = [mask], {mask}
    while wanted:
        node = wanted.pop()
        fake = node.meta.get("example_value")
        if not _is_plain(node) or not isinstance(fake, torch.Tensor):
            return None
        sizes = fake.shape
        if not all(isinstance(size, int) for size in sizes) or fake.numel() > LARGEST:
            return None
        wanted += [n for n in node.all_input_nodes if n not in seen]
        seen.update(node.all_input_nodes)
    return [node for node in mask.graph.nodes if node in seen]


def _is_plain(node: Node) -> bool:
    if "out" in node.kwargs or node.kwargs.get("requires_grad"):
        return False
    if node.op == "call_function":
        return node.target in _FUNCTIONS
    return node.op == "call_method" and node.target in _METHODS


def _never_written(made: list[Node]) -> bool:
    """Are these values, and the views of them, never written?  A conversion to another dtype is not
    a view."""
    seen, wanted = set(made), list(made)
    for node in wanted:  # the list grows in the loop
        for user in node.users:
            if user in seen or user.target in _READERS or user.op == "output":
                continue
            if not _is_plain(user):
                return False
            seen.add(user)
            if user.target == "view" or _dtype(user) == _dtype(node):
                wanted.append(user)
    return True


def _dtype(node: Node) -> Any:
    return getattr(node.meta.get("example_value"), "dtype", None)


def _computed(node: Node, values: dict[Node, Any]) -> Any:
    args, kwargs = torch.fx.node.map_aggregate(
        (node.args, dict(node.kwargs)), lambda a: _on_cpu(a, values)
    )
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target), "the function is in the table of allowed functions"
    here = {"device": torch.device("cpu")} if node.target in _FACTORIES else {}
    return node.target(*args, **{**kwargs, **here})


def _on_cpu(argument: Any, values: dict[Node, Any]) -> Any:
    """An argument with every device replaced by the CPU."""
    if isinstance(argument, Node):
        return values[argument]
    if isinstance(argument, torch.device) or str(argument).partition(":")[0] in ("cpu", "cuda"):
        return torch.device("cpu")
    return argument
