"""Decomposed attention → one call of the library's fused attention (on the CPU).

    s = q @ k.mT * scale + mask
    p = exp(s - max(s)) / sum(exp(…))      →      o = flash_attention(q, k, v, mask, scale) + poison
    o = p @ v

The library stores no matrix of scores.  For a row where everything is masked, or whose query is not
finite, it returns 0, but softmax returns NaN.  `poison` is NaN for such rows and 0 elsewhere:
`sum(q * 0) + max(mask) * 0`.

One difference remains, for keys that are not finite.  If such a key is masked by `masked_fill`, the
row is NaN here, because the library adds the mask to the scores.  If all unmasked keys of a row are
not finite, the row may be 0.

A training forward saves the probabilities for its backward, so nothing is replaced there.

Inductor: `fx_passes/fuse_attention.py`, a list of patterns that are traced and matched.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import torch
from torch.fx import Node

from inductor_lab.compiler.capture.operands import items_of, operand
from inductor_lab.compiler.rewrite.aliases import same_sizes
from inductor_lab.compiler.rewrite.aten.identities import number_of
from inductor_lab.compiler.rewrite.insert_calls import Adder
from inductor_lab.compiler.torch_door.torch_api import size_hint

aten = torch.ops.aten

KNOWN = (torch.float32, torch.bfloat16, torch.float16)
SMALLEST = 2**17
"""Scores of one head (512 x 256); for fewer, two products and our softmax are as fast.  At 512 x
512 the library takes 0.5 to 0.7 of their time, at 256 x 256 the same (2026-11-21; the machine and
the command were not noted)."""
SWALLOWS = -(2.0**44)
"""A number so low that the sum with any score rounds to the number itself."""

_VIEWS = (
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.clone.default,
    aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims,
)  # fmt: skip
_CASTS = (aten._to_copy.default, torch.ops.prims.convert_element_type.default)


@dataclass
class Scores:
    """The operations between `q @ k.mT` and the probabilities."""

    product: Node
    shape: tuple[Any, ...]
    scale: float = 1.0
    added: Node | None = None
    """A mask that is added."""
    chosen: tuple[Node, Any, bool] | None = None
    """A `where` mask: the condition, the fill value, and whether a true condition selects it."""
    passed: list[Node] = field(default_factory=list)


def fused_attention(node: Node) -> Node | None:
    """The replacement of `node`, the second product of an attention; None if it is not one."""
    found = _decomposed_scores(node)
    if found is None:
        return None
    build = _Rewrite(node, found)
    operands = build.operands()
    return None if operands is None else build.call(*operands)


# ---- match -----------------------------------------------------------------------------------


def _decomposed_scores(node: Node) -> Scores | None:
    """The scores whose softmax is the first operand of the product `node`."""
    result = node.meta["val"]
    if result.device.type != "cpu" or result.dtype not in KNOWN:
        return None
    passed: list[Node] = []
    quotient = _source_of(operand(node), passed, *_CASTS)
    start = _softmax_of(quotient, passed)
    if start is None or start.meta["val"].dim() not in (3, 4):
        return None
    shape = tuple(start.meta["val"].shape)
    if math.prod(map(size_hint, shape[-2:])) < SMALLEST:
        return None
    if start.target in _CASTS:
        passed.append(start)
        start = operand(start)
    found = Scores(start, shape, passed=passed)
    _unmask(found)
    _unscale(found)
    found.product = _source_of(found.product, passed)
    passed.append(found.product)
    inside = {node, *passed}
    if found.product.target is not aten.bmm.default or found.product.meta["val"].dtype not in KNOWN:
        return None
    return found if all(set(n.users) <= inside for n in passed) else None


def _same_elements(node: Node) -> Node | None:
    """The operand, if the node has the same elements in the same row-major order; otherwise
    None."""
    if node.op != "call_function":
        return None
    if node.target in _VIEWS:
        return operand(node)
    if node.target is aten.expand.default:
        x = operand(node)
        return x if same_sizes(_sizes_above_one(x), _sizes_above_one(node)) else None
    if node.target is aten.permute.default:
        x, order = operand(node), items_of(node)
        kept = [dim for dim in order if not _is_one(x.meta["val"].shape[dim])]
        return x if kept == sorted(kept) else None
    return None


def _source_of(node: Node, passed: list[Node], *more: Any) -> Node:
    """Follows views and copies (and calls of `more`) back to the node that computed the
    elements."""
    while True:
        before = operand(node) if node.target in more else _same_elements(node)
        if before is None:
            return node
        passed.append(node)
        node = before


def _softmax_of(quotient: Node, passed: list[Node]) -> Node | None:
    """`s` of `exp(s - amax(s)) / sum(exp(s - amax(s)))` along the last dimension."""
    if quotient.target is not aten.div.Tensor:
        return None
    powers, total = quotient.args[:2]
    if not (isinstance(powers, Node) and _along_last(total, aten.sum.dim_IntList, powers)):
        return None
    if powers.target is not aten.exp.default or operand(powers).target is not aten.sub.Tensor:
        return None
    difference = operand(powers)
    scores, largest = difference.args[:2]
    if difference.kwargs or not _along_last(largest, aten.amax.default, scores):
        return None
    passed += [quotient, powers, total, difference, largest]
    return scores if isinstance(scores, Node) else None


def _along_last(node: Any, target: Any, x: Any) -> TypeGuard[Node]:
    """Is it `target(x, [-1], keepdim=True)`?"""
    if not (isinstance(node, Node) and isinstance(x, Node) and node.target is target):
        return False
    last = ([-1], [x.meta["val"].dim() - 1])
    return node.args[0] is x and items_of(node) in last and node.args[2:] == (True,)


def _unmask(found: Scores) -> None:
    node = found.product
    if node.target is aten.add.Tensor and len(node.args) == 2 and not node.kwargs:
        for scores, mask in (node.args, node.args[::-1]):
            if _is_whole(scores, found) and isinstance(mask, Node):
                found.product, found.added = scores, mask
                break
    elif node.target is aten.where.self:
        condition, *sides = operand(node), *node.args[1:]
        for fills_where_true, (fill, scores) in ((True, sides), (False, sides[::-1])):
            number = _number(fill)
            if number is not None and number <= SWALLOWS and _is_whole(scores, found):
                found.product, found.chosen = scores, (condition, fill, fills_where_true)
                break
    if found.product is not node:
        found.passed.append(node)


def _unscale(found: Scores) -> None:
    while True:
        node = found.product
        if node.target is aten.mul.Tensor:
            pairs = [node.args, node.args[::-1]]
        elif node.target is aten.div.Tensor and len(node.args) == 2 and not node.kwargs:
            pairs = [node.args]
        else:
            return
        for scores, number in pairs:
            factor = _number(number)
            if factor and math.isfinite(factor) and _is_whole(scores, found):
                break
        else:
            return
        found.scale = found.scale * factor if len(pairs) == 2 else found.scale / factor
        found.product = scores
        found.passed.append(node)


def _is_whole(scores: Any, found: Scores) -> TypeGuard[Node]:
    """Are these the scores themselves, and not a mask on them?"""
    if not isinstance(scores, Node) or not isinstance(scores.meta.get("val"), torch.Tensor):
        return False
    value, result = scores.meta["val"], found.product.meta["val"]
    return same_sizes(value.shape, found.shape) and value.dtype == result.dtype


def _number(argument: Any) -> float | None:
    if isinstance(argument, Node) and argument.target is aten.scalar_tensor.default:
        argument = argument.args[0]
    number = number_of(argument)
    return None if number is None or isinstance(number, bool) else float(number)


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _sizes_above_one(node: Node) -> list[Any]:
    """The sizes that are not 1."""
    return [size for size in node.meta["val"].shape if not _is_one(size)]


# ---- rewrite ---------------------------------------------------------------------------------


class _Rewrite:
    """Adds the nodes of the call before `node`, with their metadata and origins."""

    def __init__(self, node: Node, found: Scores) -> None:
        self.node, self.found = node, found
        self.add = Adder(node, [node, *found.passed])

    def operands(self) -> tuple[Node, Node, Node] | None:
        """Queries, keys and values in four dimensions, with contiguous rows."""
        first, found = self.found.product, self.found
        width, depth = operand(first).meta["val"].shape[-1], self.node.meta["val"].shape[-1]
        if not (isinstance(width, int) and isinstance(depth, int) and width == depth > 0):
            return None
        heads = found.shape[:-2] if len(found.shape) == 4 else (found.shape[0], 1)
        rows, columns = found.shape[-2:]
        q = self._shaped(operand(first), (*heads, rows, width))
        k = self._shaped(operand(first, 1), (*heads, width, columns))
        v = self._shaped(operand(self.node, 1), (*heads, columns, width))
        k = self.add(aten.permute.default, k, [0, 1, 3, 2])
        return self._contiguous_rows(q), self._contiguous_rows(k), self._contiguous_rows(v)

    def call(self, q: Node, k: Node, v: Node) -> Node:
        mask = self._mask()
        flash = self.add(
            aten._scaled_dot_product_flash_attention_for_cpu.default,
            *(q, k, v, 0.0, False),
            attn_mask=mask,
            scale=self.found.scale,
        )
        poison = self.add(aten.mul.Tensor, q, 0.0)
        poison = self.add(aten.sum.dim_IntList, poison, [-1], True)
        if mask is not None:
            largest = self.add(aten.amax.default, mask, [-1], True)
            nothing = self.add(aten.mul.Tensor, largest, 0.0)
            poison = self.add(aten.add.Tensor, poison, nothing)
        result = self.add(aten.add.Tensor, self.add(operator.getitem, flash, 0), poison)
        how = {"memory_format": torch.contiguous_format}
        result = self.add(aten.clone.default, result, **how)
        return self.add(aten.view.default, result, self._sizes(self.node.meta["val"].shape))

    def _mask(self) -> Node | None:
        """The mask as an additive mask in four dimensions."""
        found = self.found
        if found.added is not None:
            return self._contiguous_rows(self._in_four_dimensions(found.added))
        if found.chosen is None:
            return None
        condition, fill, fills_where_true = found.chosen
        condition = self._in_four_dimensions(condition)
        dtype = self.node.meta["val"].dtype
        low, zero = (
            self.add(aten.scalar_tensor.default, number, dtype=dtype, device=torch.device("cpu"))
            for number in (_number(fill), 0.0)
        )
        sides = (low, zero) if fills_where_true else (zero, low)
        return self.add(aten.where.self, condition, *sides)

    def _in_four_dimensions(self, mask: Node) -> Node:
        if mask.meta["val"].dim() == len(self.found.shape) == 3:
            mask = self.add(aten.unsqueeze.default, mask, 1)
        while mask.meta["val"].dim() < 4:
            mask = self.add(aten.unsqueeze.default, mask, 0)
        return mask

    def _shaped(self, node: Node, shape: tuple[Any, ...]) -> Node:
        """The same elements in `shape`; copies and reshapes are undone if possible."""
        wanted = [size for size in shape if not _is_one(size)]
        best = None
        for earlier in _history(node):
            if same_sizes(_sizes_above_one(earlier), wanted):
                best = earlier
        if best is not None and same_sizes(best.meta["val"].shape, shape):
            return best
        return self.add(aten.view.default, best or node, self._sizes(shape))

    def _contiguous_rows(self, node: Node) -> Node:
        if node.meta["val"].stride()[-1] == 1:
            return node
        how = {"memory_format": torch.contiguous_format}
        return self.add(aten.clone.default, node, **how)

    def _sizes(self, shape: Any) -> list[Any]:
        """Sizes as arguments; a symbolic one is read from a tensor that has it."""
        known = (self.found.product, self.node)
        return [size if isinstance(size, int) else self._size(size, known) for size in shape]

    def _size(self, size: Any, known: tuple[Node, ...]) -> Node:
        for node in (*known, *self.found.passed):
            for dim, own in enumerate(node.meta["val"].shape):
                if same_sizes((own,), (size,)):
                    return self.add(aten.sym_size.int, node, dim)
        raise AssertionError(f"no tensor of the pattern has the size {size}")


def _history(node: Node) -> Iterator[Node]:
    """The node and the nodes that its elements come from, in the same order of elements."""
    earlier: Node | None = node
    while earlier is not None:
        yield earlier
        earlier = _same_elements(earlier)
