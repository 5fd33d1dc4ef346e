"""Algebraic identities that hold bit for bit, also for NaN, infinities and the sign of zero.

A rule gets one node and returns its replacement, or None.  It may add a node with `edit.add`.  The
driver checks whether the replacement is allowed (strides, aliasing).

Inductor: `fx_passes/joint_graph.py`, `post_grad.py` and the pattern matcher.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from torch.fx import Node

from inductor_lab.compiler.capture.operands import items_of, operand
from inductor_lab.compiler.rewrite.aliases import same_sizes

aten, prims = torch.ops.aten, torch.ops.prims


@dataclass(frozen=True)
class Edit:
    """Adds nodes before `node`; a new node gets the metadata and the source location of `node`."""

    node: Node

    def add(self, target: Any, *args: Any) -> Node:
        name = target._schema.name.split("::")[-1]
        with self.node.graph.inserting_before(self.node):
            new = self.node.graph.create_node("call_function", target, args, name=name)
        new.meta = dict(self.node.meta)
        return new


Rule = Callable[[Node, Edit], Node | None]

RULES: dict[str, Rule] = {}
"""Every identity, by name."""

BY_TARGET: dict[Any, list[str]] = {}
"""Target of a node → the names of the rules for it."""


def identity(*targets: Any) -> Callable[[Rule], Rule]:
    """Register a rule for nodes that call one of `targets`."""

    def register(rule: Rule) -> Rule:
        name = rule.__name__
        assert name not in RULES, f"two identities are named {name}"
        RULES[name] = rule
        for target in targets:
            BY_TARGET.setdefault(target, []).append(name)
        return rule

    return register


def number_of(argument: Any) -> int | float | None:
    """The number that an argument is, as a literal or as a tensor filled with one number; otherwise
    None."""
    if isinstance(argument, bool | int | float):
        return argument
    if isinstance(argument, Node) and argument.target is aten.full.default:
        fill = argument.args[1]
        return fill if isinstance(fill, bool | int | float) else None
    return None


def _value(argument: Any) -> torch.Tensor | None:
    """The fake tensor of an argument, if it is a real-valued tensor of the graph."""
    value = argument.meta.get("val") if isinstance(argument, Node) else None
    return value if isinstance(value, torch.Tensor) and not value.is_complex() else None


def _is_real(argument: Any) -> TypeGuard[Node]:
    """Is it a real-valued tensor of the graph?"""
    return _value(argument) is not None


def _is_zero(number: float | None, sign: float) -> bool:
    return number is not None and number == 0 and math.copysign(1.0, number) == sign


def _calls(argument: Any, *targets: Any) -> TypeGuard[Node]:
    return isinstance(argument, Node) and argument.target in targets


# ---- arithmetic ------------------------------------------------------------------------------


@identity(aten.mul.Tensor, aten.mul.Scalar)
def mul_one(node: Node, edit: Edit) -> Node | None:
    """`x * 1`, `1 * x` → `x`."""
    for x, one in (node.args[:2], node.args[1::-1]):
        if _is_real(x) and number_of(one) == 1:
            return x
    return None


@identity(aten.div.Tensor, aten.div.Scalar)
def div_one(node: Node, edit: Edit) -> Node | None:
    """`x / 1` → `x`, for floats."""
    x, one = node.args[:2]
    return x if _is_real(x) and number_of(one) == 1 else None


@identity(aten.div.Tensor, aten.div.Scalar)
def div_power_of_two(node: Node, edit: Edit) -> Node | None:
    """`x / 8` → `x * 0.125`: both round the same exact result, and a product is cheaper."""
    x, divisor = node.args[:2]
    value = _value(x)
    if value is None or not value.is_floating_point() or not isinstance(divisor, int | float):
        return None
    mantissa, exponent = math.frexp(divisor) if math.isfinite(divisor) else (0.0, 0)
    if abs(mantissa) != 0.5 or abs(exponent - 1) > 14 or divisor == 1:
        return None
    return edit.add(aten.mul.Tensor, x, 1.0 / divisor)


@identity(aten.add.Tensor, aten.add.Scalar)
def add_zero(node: Node, edit: Edit) -> Node | None:
    """`n + 0` → `n` for integers, `x + -0.0` → `x` for floats (but `-0.0 + 0.0` is `0.0`)."""
    if len(node.args) > 2 or node.kwargs:
        return None
    for x, zero in (node.args[:2], node.args[1::-1]):
        if not _is_real(x):
            continue
        is_neutral = _is_zero(number_of(zero), -1.0)
        if not x.meta["val"].is_floating_point():
            is_neutral = number_of(zero) == 0
        if is_neutral:
            return x
    return None


@identity(aten.sub.Tensor, aten.sub.Scalar)
def sub_zero(node: Node, edit: Edit) -> Node | None:
    """`x - 0` → `x` (but not `x - -0.0`)."""
    if len(node.args) > 2 or node.kwargs:
        return None
    x, zero = node.args[:2]
    return x if _is_real(x) and _is_zero(number_of(zero), 1.0) else None


@identity(aten.neg.default)
def double_neg(node: Node, edit: Edit) -> Node | None:
    """`-(-x)` → `x`; also for integers, which wrap around."""
    inner = node.args[0]
    return operand(inner) if _calls(inner, aten.neg.default) else None


@identity(aten.abs.default)
def abs_of_neg(node: Node, edit: Edit) -> Node | None:
    """`abs(-x)` → `abs(x)`; not for bytes, where `-x` is `256 - x`."""
    inner = node.args[0]
    value = _value(node)
    if value is None or not value.dtype.is_signed:
        return None
    return edit.add(aten.abs.default, operand(inner)) if _calls(inner, aten.neg.default) else None


_IDEMPOTENT = (
    aten.abs.default, aten.relu.default, aten.floor.default, aten.ceil.default, aten.trunc.default,
    aten.round.default,
)  # fmt: skip


@identity(*_IDEMPOTENT)
def idempotent(node: Node, edit: Edit) -> Node | None:
    """`relu(relu(x))` → `relu(x)`; also abs, floor, ceil, trunc, round."""
    inner = node.args[0]
    return inner if _calls(inner, node.target) and len(node.args) == 1 else None


@identity(aten.logical_not.default)
def double_not(node: Node, edit: Edit) -> Node | None:
    """`not not b` → `b`, for bool tensors."""
    inner = node.args[0]
    return operand(inner) if _calls(inner, aten.logical_not.default) else None


_SELF = (
    aten.maximum.default,
    aten.minimum.default,
    aten.bitwise_and.Tensor,
    aten.bitwise_or.Tensor,
)


@identity(*_SELF)
def with_itself(node: Node, edit: Edit) -> Node | None:
    """`maximum(x, x)` → `x`; also minimum, `x & x`, `x | x`."""
    a, b = node.args[:2]
    return a if a is b and isinstance(a, Node) else None


@identity(aten.where.self)
def where_same(node: Node, edit: Edit) -> Node | None:
    """`where(c, a, a)` → `a`."""
    _, a, b = node.args
    return a if a is b and isinstance(a, Node) else None


# ---- powers: eager mode computes these exponents in the same way.  In NumPy code, the exponent is
# a tensor; NumPy computes 1, 2, -1 and 0.5 in this way, and we round as NumPy does


def _raised(node: Node, wanted: float) -> Node | None:
    """The base, if the exponent is this number and the power has the dtype and sizes of the
    base."""
    x, exponent = node.args
    value, result = _value(x), node.meta["val"]
    if value is None or value.dtype != result.dtype or number_of(exponent) != wanted:
        return None
    return operand(node) if same_sizes(value.shape, result.shape) else None


@identity(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor)
def pow_one(node: Node, edit: Edit) -> Node | None:
    """`x ** 1` → `x`."""
    return _raised(node, 1)


@identity(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor)
def pow_two(node: Node, edit: Edit) -> Node | None:
    """`x ** 2` → `x * x`."""
    x = _raised(node, 2)
    return edit.add(aten.mul.Tensor, x, x) if x is not None else None


@identity(aten.pow.Tensor_Tensor)
def pow_minus_one(node: Node, edit: Edit) -> Node | None:
    """`x ** -1` → `1 / x`, in float32 and float64."""
    x = _raised(node, -1)
    exact = x is not None and x.meta["val"].dtype in (torch.float32, torch.float64)
    return edit.add(aten.reciprocal.default, x) if exact else None


@identity(aten.pow.Tensor_Tensor)
def pow_half(node: Node, edit: Edit) -> Node | None:
    """`x ** 0.5` → `sqrt(x)` in float32 and float64, also of integers, which become float64."""
    x, exponent = node.args
    value, result = _value(x), node.meta["val"]
    if value is None or number_of(exponent) != 0.5 or not same_sizes(value.shape, result.shape):
        return None
    if result.dtype not in (torch.float32, torch.float64):
        return None
    if value.dtype != result.dtype:
        x = edit.add(torch.ops.prims.convert_element_type.default, x, result.dtype)
    return edit.add(aten.sqrt.default, x)


@identity(aten.pow.Tensor_Scalar)
def pow_three(node: Node, edit: Edit) -> Node | None:
    """`x ** 3` → `x * x * x`, in float32 and float64 (half precision would round in between)."""
    x, exponent = node.args
    value = _value(x)
    if value is None or value.dtype not in (torch.float32, torch.float64) or exponent != 3:
        return None
    return edit.add(aten.mul.Tensor, edit.add(aten.mul.Tensor, x, x), x)


_ROOTS = {0.5: aten.sqrt.default, -0.5: aten.rsqrt.default, -1: aten.reciprocal.default}


@identity(aten.pow.Tensor_Scalar)
def pow_root(node: Node, edit: Edit) -> Node | None:
    """`x ** 0.5` → `sqrt(x)`, also -0.5 and -1, as in eager mode, also for -inf and -0.0."""
    x, exponent = node.args
    value = _value(x)
    if value is None or value.dtype not in (torch.float32, torch.float64):
        return None
    root = _ROOTS.get(exponent) if isinstance(exponent, int | float) else None
    return edit.add(root, x) if root is not None else None


# ---- views and copies ------------------------------------------------------------------------

_VIEWS = (
    aten.view.default, aten.reshape.default, aten.expand.default, aten.permute.default,
    aten.transpose.int, aten.slice.Tensor, aten.alias.default, aten.detach.default,
)  # fmt: skip


@identity(*_VIEWS)
def view_of_same_shape(node: Node, edit: Edit) -> Node | None:
    """A view that changes neither sizes nor strides nor offset → its operand."""
    x = operand(node)
    value, result = _value(x), _value(node)
    if value is None or result is None or not same_sizes(value.shape, result.shape):
        return None
    return x if same_sizes((value.storage_offset(),), (result.storage_offset(),)) else None


@identity(aten.view.default)
def view_of_view(node: Node, edit: Edit) -> Node | None:
    """`view(view(x, a), b)` → `view(x, b)`."""
    inner, sizes = node.args
    if not _calls(inner, aten.view.default):
        return None
    return edit.add(aten.view.default, operand(inner), sizes)


_PERMUTES = (aten.permute.default, aten.transpose.int, aten.t.default)


@identity(*_PERMUTES)
def permute_of_permute(node: Node, edit: Edit) -> Node | None:
    """`permute(permute(x, p), q)` → `permute(x, p[q])`, or `x` if the two undo each other."""
    inner = node.args[0]
    if not _calls(inner, *_PERMUTES):
        return None
    first, second = _order(inner), _order(node)
    both = [first[d] for d in second]
    x = operand(inner)
    return x if both == sorted(both) else edit.add(aten.permute.default, x, both)


def _order(node: Node) -> list[int]:
    rank = node.meta["val"].dim()
    order = list(range(rank))
    if node.target is aten.permute.default:
        return [d % rank for d in items_of(node)]
    if node.target is aten.t.default:
        return order[::-1]
    _, a, b = node.args
    assert isinstance(a, int) and isinstance(b, int), "the dimensions of a transpose are ints"
    order[a], order[b] = order[b], order[a]
    return order


_COPIES = (aten.clone.default, aten._to_copy.default, prims.convert_element_type.default)


@identity(*_COPIES)
def copy_of_same_kind(node: Node, edit: Edit) -> Node | None:
    """A copy to the same dtype, device and strides → its operand."""
    if node.kwargs.get("pin_memory") or node.kwargs.get("non_blocking"):
        return None
    return node.args[0] if isinstance(node.args[0], Node) else None


_CASTS = (aten._to_copy.default, prims.convert_element_type.default)


@identity(*_CASTS)
def there_and_back(node: Node, edit: Edit) -> Node | None:
    """`bf16(f32(x))` → `x` for a bf16 `x`: a wider dtype holds every value of a narrower one."""
    inner = node.args[0]
    if not _calls(inner, *_CASTS):
        return None
    x, wide = _value(operand(inner)), _value(inner)
    if x is None or wide is None or not holds(wide.dtype, x.dtype):
        return None
    return operand(inner)


_WIDER: dict[torch.dtype, tuple[torch.dtype, ...]] = {
    torch.bfloat16: (torch.float32, torch.float64),
    torch.float16: (torch.float32, torch.float64),
    torch.float32: (torch.float64,),
    torch.bool: (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float32),
    torch.uint8: (torch.int16, torch.int32, torch.int64, torch.float32, torch.float64),
    torch.int8: (torch.int16, torch.int32, torch.int64, torch.float32, torch.float64),
    torch.int16: (torch.int32, torch.int64, torch.float32, torch.float64),
    torch.int32: (torch.int64, torch.float64),
}


def holds(wide: torch.dtype, narrow: torch.dtype) -> bool:
    """Does every value of `narrow` survive a round trip through `wide`?"""
    return wide in _WIDER.get(narrow, ())


@identity(aten.cat.default)
def cat_of_one(node: Node, edit: Edit) -> Node | None:
    """`cat([x])` → `clone(x)`."""
    tensors = items_of(node, 0)
    if len(tensors) != 1:
        return None
    value, result = _value(tensors[0]), _value(node)
    if value is None or result is None or value.stride() != result.stride():
        return None
    return edit.add(aten.clone.default, tensors[0])
