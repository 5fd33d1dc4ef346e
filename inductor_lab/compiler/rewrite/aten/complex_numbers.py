"""Complex numbers that start and end as pairs of real numbers are computed as pairs, in loops.

    view_as_real(view_as_complex(x) * f)   →   cat([a*c - b*d, a*d + b*c], -1)

So a rotary embedding in its complex form is one kernel.  Inductor calls ATen for it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from inductor_lab.compiler.rewrite.aten.identities import Edit, identity
from inductor_lab.compiler.rewrite.insert_calls import Adder
from inductor_lab.compiler.torch_door.torch_api import size_hint

aten = torch.ops.aten


@identity(aten.view_as_real.default)
def pairs_of_reals(node: Node, edit: Edit) -> Node | None:
    """`view_as_real(x * y)`, `x + y` or `x - y` → separate real and imaginary parts.

    Operands that are stored as complex numbers are copied, so they must be smaller than the result.
    """
    of = node.all_input_nodes[0]
    if of.target not in (aten.mul.Tensor, aten.add.Tensor, aten.sub.Tensor):
        return None
    add, most = Adder(node, [node, of]), size_hint(node.meta["val"].numel()) // 4
    return _pair(of, of.meta["val"].dtype, most, add)


def _pair(node: Any, dtype: torch.dtype, most: int, add: Adder) -> Node | None:
    """The real and imaginary parts of a complex node along a last dimension.

    None if it is not a tensor of this dtype, or if it must be copied and has more than `most`
    elements.
    """
    value = node.meta.get("val") if isinstance(node, Node) else None
    if not isinstance(value, torch.Tensor) or value.dtype is not dtype:
        return None
    assert isinstance(node, Node), "only nodes have a value"
    if node.target is aten.view_as_complex.default:
        return node.all_input_nodes[0]
    if node.target in (aten._conj.default, aten.conj_physical.default):
        pair = _pair(node.args[0], dtype, most, add)
        if pair is None:
            return None
        return _stacked(add, _part(add, pair, 0), add(aten.neg.default, _part(add, pair, 1)))
    if node.target in (aten.mul.Tensor, aten.add.Tensor, aten.sub.Tensor) and not node.kwargs:
        x, y = (_pair(operand, dtype, most, add) for operand in node.args)
        if x is None or y is None:
            return None
        return _product(add, x, y) if node.target is aten.mul.Tensor else add(node.target, x, y)
    if size_hint(value.numel()) > most or value.is_conj():
        return None
    return add(aten.view_as_real.default, node)


def _product(add: Adder, x: Node, y: Node) -> Node:
    """The product of complex numbers, rounded as in eager mode."""
    (a, b), (c, d) = ([_part(add, pair, k) for k in (0, 1)] for pair in (x, y))
    ac, bd, ad, bc = (add(aten.mul.Tensor, p, q) for p, q in ((a, c), (b, d), (a, d), (b, c)))
    return _stacked(add, add(aten.sub.Tensor, ac, bd), add(aten.add.Tensor, ad, bc))


def _part(add: Adder, pair: Node, which: int) -> Node:
    return add(aten.select.int, pair, -1, which)


def _stacked(add: Adder, real: Node, imaginary: Node) -> Node:
    parts = [add(aten.unsqueeze.default, part, -1) for part in (real, imaginary)]
    return add(aten.cat.default, parts, -1)
