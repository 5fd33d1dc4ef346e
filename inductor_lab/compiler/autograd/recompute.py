"""The cost of recomputing a forward op in the backward.

Inductor: `torch/_functorch/partitioners.py`, `get_default_op_list` and `should_ban_recomputation`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch

from inductor_lab.compiler.capture.operands import by_name, operand
from inductor_lab.compiler.capture.text import node_value
from inductor_lab.compiler.ir.flops import call_flops
from inductor_lab.compiler.ir.ops import OPS
from inductor_lab.compiler.torch_door.torch_api import (
    CheckpointPolicy,
    OpOverload,
    nbytes_hint,
    size_hint,
)

CREATION = frozenset(
    "full full_like zeros zeros_like ones ones_like arange iota scalar_tensor eye tril triu "
    "empty empty_like empty_strided empty_permuted new_zeros new_ones new_full new_empty "
    "lift_fresh_copy tril_indices triu_indices".split()
)
COPY = frozenset(
    "_to_copy clone copy cat stack constant_pad_nd index gather embedding index_select "
    "select_scatter slice_scatter diagonal_scatter as_strided_scatter flip roll repeat "
    "convert_element_type device_put _unsafe_view _reshape_copy view_copy expand_copy "
    "permute_copy".split()
)
REDUCTION = frozenset(
    "sum mean prod amax amin max min argmax argmin any all var std var_mean std_mean norm "
    "linalg_vector_norm logsumexp native_layer_norm native_group_norm _softmax _log_softmax "
    "_safe_softmax _fused_rms_norm cumsum cumprod".split()
)


class Price(IntEnum):
    """The cost class of recomputing an op, cheapest first; `memory_budget` decides what is
    allowed."""

    FREE = 0
    CHEAP = 1
    REDUCTION = 2
    HEAVY = 3
    NEVER = 4


@dataclass(frozen=True, slots=True)
class Recompute:
    """The price of an op, and the reason as text."""

    price: Price
    reason: str


def recompute_price(node: torch.fx.Node) -> Recompute:
    """The cost of recomputing `node` from its inputs."""
    target: Any = node.target
    if node.op == "placeholder":
        return Recompute(Price.NEVER, "an input of the graph")
    if node.op == "get_attr" or target is operator.getitem or is_size(node):
        return Recompute(Price.FREE, "free")
    if not isinstance(target, OpOverload):
        return _price_of_function(target)
    name = target._schema.name.partition("::")[2]
    if _is_random(node, target):
        return Recompute(Price.NEVER, "random: recomputing would give different numbers")
    if target._schema.is_mutable:
        return Recompute(Price.NEVER, "writes into its argument")
    if any(argument.alias_info for argument in target._schema.arguments):
        return Recompute(Price.FREE, "a view: no work")
    if torch.Tag.pointwise in target.tags or name in CREATION | COPY:
        return Recompute(Price.CHEAP, "cheap: fuses into its users")
    if name == "scatter" and _writes_one_per_row(node):
        return Recompute(Price.CHEAP, "cheap: selects one element per row")
    if name in REDUCTION:
        return Recompute(Price.REDUCTION, "a reduction: reads more than it writes")
    if target.namespace in ("aten", "prims"):
        return Recompute(Price.HEAVY, f"{name} is an expensive op")
    return Recompute(Price.NEVER, "a custom op: recomputing it may not be safe")


def _writes_one_per_row(node: torch.fx.Node) -> bool:
    """Does a scatter write a number to one position of each row?  Its lowering then compares
    positions.

    The gradient of cross entropy starts with such a scatter: a one in each row of a zero matrix.
    """
    if node.target is not torch.ops.aten.scatter.value:
        return False
    dim, index = node.args[1], node_value(operand(node, 2))
    return index.ndim > 0 and type(index.shape[dim]) is int and index.shape[dim] == 1


def _price_of_function(target: Any) -> Recompute:
    if getattr(target, "__module__", "") in ("_operator", "math", "torch"):
        return Recompute(Price.FREE, "arithmetic on sizes")
    return Recompute(Price.NEVER, "not an ATen op: recomputing it may not be safe")


def is_size(node: torch.fx.Node) -> bool:
    """Is this a symbolic number rather than a tensor?"""
    return isinstance(node_value(node), torch.SymInt | torch.SymFloat | torch.SymBool)


def _is_random(node: torch.fx.Node, target: OpOverload) -> bool:
    """Is it random?  Attention has this tag because of its dropout, whose probability may be
    zero."""
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    return bool(by_name(target, node.args, node.kwargs).get("dropout_p", 1.0) != 0.0)


def asked_to_recompute(node: torch.fx.Node) -> bool:
    """Is the node inside a `torch.utils.checkpoint` region?"""
    return node.meta.get("recompute") in (
        CheckpointPolicy.MUST_RECOMPUTE,
        CheckpointPolicy.PREFER_RECOMPUTE,
    )


def asked_to_save(node: torch.fx.Node) -> bool:
    """Does the user's checkpoint policy require saving it?"""
    return node.meta.get("recompute") in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


def estimated_flops(node: torch.fx.Node) -> int:
    """Flops of one op, counted as in the schedule for loops and library calls.

    Any other op counts one for each element that it reads or computes.
    """
    value = node_value(node)
    if recompute_price(node).price == Price.FREE:
        return 0
    shapes = [_shape(node_value(n)) if isinstance(n, torch.fx.Node) else n for n in node.args]
    known = call_flops(str(node.target), shapes, _shape(value)) if "." in str(node.target) else 0
    name = getattr(getattr(node.target, "_schema", None), "name", "").partition("::")[2]
    made = _numel(value)
    name = {"div": "truediv", "pow": "square" if node.args[-1] == 2 else "pow"}.get(name, name)
    if name in OPS:
        return OPS[name].flops * made
    return known or max(made, sum(_numel(node_value(n)) for n in node.all_input_nodes))


def _shape(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(map(size_hint, value.shape))
    return value


def _numel(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return nbytes_hint(value) // max(value.dtype.itemsize, 1)
    if isinstance(value, list | tuple):
        return sum(_numel(item) for item in value)
    return 0
