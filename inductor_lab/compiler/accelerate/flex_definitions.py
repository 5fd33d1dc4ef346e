"""Defines `flex_attention` and its gradient in terms of ATen: two products and the user functions.

    s = score_mod(q @ k.mT * scale, b, h, i, j)
    s = where(mask_mod(b, h, i, j), s, -inf)
    softmax(s) @ v

Values between the products are float32, or float64 if the operands are.

Inductor: `kernel/flex/`, which has only templates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

Function: TypeAlias = Callable[..., Any]
Given: TypeAlias = tuple[Any, ...]
"""The tensors that a user function reads in addition to its arguments."""
LOG2_E = 1 / math.log(2)


@dataclass(frozen=True)
class Functions:
    """The user functions: `score_mod(score, b, h, i, j, *score_given)` and
    `mask_mod(b, h, i, j, *mask_given)`.

    `joint` takes the arguments of `score_mod`, with the gradient of its result before
    `score_given`.  It returns the gradients of all arguments of `score_mod`.  `places` has the
    positions of scores: batches, heads, rows and columns.  If given, columns come before rows in
    scores.
    """

    score_mod: Function
    mask_mod: Function
    scale: float
    score_given: Given
    mask_given: Given
    joint: Function | None = None
    places: tuple[Tensor, ...] | None = None

    def seen(self, products: Tensor, masked: bool = True) -> Tensor:
        """Return the input of the softmax; `products` are queries times keys, [B, H, M, N]."""
        scores = products * self.scale
        seen: Tensor = self._at_each(scores, self.score_mod, (scores,), self.score_given)
        return torch.where(self.shown(scores), seen, -math.inf) if masked else seen

    def shown(self, scores: Tensor) -> Tensor:
        shown: Tensor = self._at_each(scores, self.mask_mod, (), self.mask_given)
        return shown

    def slopes(
        self, products: Tensor, of_weights: Tensor, logs: Tensor, inner: Tensor, masked: bool = True
    ) -> tuple[Tensor, ...]:
        """Return the softmax weights, the gradient of `products`, and those of `score_given`.

        of_weights        the gradient of the weights
        logs[B, H, M]     the base-2 logarithms of the sums of powers
        inner[B, H, M]    for each row, the sum of the result times its gradient
        """
        scores, logs = products * self.scale, logs.unsqueeze(-1)
        powers = (self.seen(products, masked) - logs / LOG2_E).exp()
        weights = torch.where(logs == -math.inf, 0.0, powers)
        of_seen = weights * (of_weights - inner.unsqueeze(-1))
        of_scores, *of_given = self._at_each(
            scores, self.joint, (scores,), self.score_given, of_seen
        )
        slopes = of_scores * self.scale
        if masked:
            slopes = torch.where(self.shown(scores), slopes, 0.0)
        return weights, slopes, *of_given

    def _at_each(
        self, scores: Tensor, function: Any, score: Given, given: Given, *gradient: Tensor
    ) -> Any:
        """Apply `function` to each score and its position.

        With a gradient, the results are the gradients of the scores, and of the tensors in `given`,
        summed over all scores.
        """
        none = (None,) * len(given)
        results: Any = [0, None, None, None, None, *none] if gradient else 0
        for dim in (2, 3, 1, 0) if self.places else (3, 2, 1, 0):
            place = tuple(0 if n == dim else None for n in range(4))
            taken = ((0,) * len(score), place, (0,) * len(gradient), none)
            function = torch.vmap(function, in_dims=sum(taken, ()), out_dims=results)
        all_places = (torch.arange(size, device=scores.device) for size in scores.shape)
        made = function(*score, *(self.places or all_places), *gradient, *given)
        return (made[0], *made[5:]) if gradient else made


# ---- the two operators -----------------------------------------------------------------------


def forward(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Function, block_mask: Given,
    scale: float, _: Any, score_given: Given = (), mask_given: Given = (),
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the result [B, Hq, M, Dv], and two values for each row, [B, Hq, M].

    These are the base-2 logarithm of the sum of its powers, and its largest score.  The result of a
    fully masked row is 0.
    """
    functions = Functions(score_mod, block_mask[-1], scale, score_given, mask_given)
    seen = functions.seen(_products(query, key))
    largest = seen.amax(-1, keepdim=True)
    shift = torch.where(largest == -math.inf, 0.0, largest)
    powers = (seen - shift).exp()
    total = powers.sum(-1, keepdim=True)
    weights = (powers / torch.where(largest == -math.inf, 1.0, total)).to(query.dtype)
    result = (_in_groups(weights, value) @ _for_each(query, value)).view(*query.shape[:3], -1)
    logs = shift + total.log()
    return result, logs.squeeze(-1) * LOG2_E, largest.squeeze(-1) * LOG2_E


def backward(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, logs: Tensor, grad_out: Tensor | None,
    grad_logs: Tensor | None, score_mod: Function, joint: Function, block_mask: Given,
    scale: float, _: Any, score_given: Given = (), mask_given: Given = (),
) -> tuple[Any, ...]:  # fmt: skip
    """Return the gradients of query, key and value, and of the tensors that `score_mod` reads."""
    functions = Functions(score_mod, block_mask[-1], scale, score_given, mask_given, joint)
    products = _products(query, key)
    grad_out = torch.zeros_like(out) if grad_out is None else grad_out
    inner = (out.to(products.dtype) * grad_out.to(products.dtype)).sum(-1)
    if grad_logs is not None:
        inner = inner - grad_logs * LOG2_E
    of_weights = _products(grad_out, value)
    weights, slopes, *of_given = functions.slopes(products, of_weights, logs, inner)
    slopes = _in_groups(slopes.to(query.dtype), key)
    weights = _in_groups(weights.to(query.dtype), value)
    of_query = (slopes @ _for_each(query, key)).view(query.shape)
    of_key = _for_all(slopes.mT @ _in_groups(query, key), key)
    of_value = _for_all(weights.mT @ _in_groups(grad_out, value), value)
    return of_query, of_key, of_value, tuple(of_given)


FORWARD = torch.ops.higher_order.flex_attention
BACKWARD = torch.ops.higher_order.flex_attention_backward
DEFINITIONS: dict[Any, Function] = {FORWARD: forward, BACKWARD: backward}


# ---- products of heads -----------------------------------------------------------------------


def _products(rows: Tensor, others: Tensor) -> Tensor:
    """Return `rows[B, Hq, M, D] @ others[B, Hkv, N, D].mT`, in float32 for 16-bit operands."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    a, b = _in_groups(rows, others), _for_each(rows, others).mT
    if rows.dtype == wide or rows.device.type != "cuda":
        made = a.to(wide) @ b.to(wide)
    else:
        made = torch.bmm(a, b, out_dtype=wide)
    return made.view(*rows.shape[:3], others.shape[2])


def _in_groups(rows: Tensor, others: Tensor) -> Tensor:
    """Reshape [B, Hq, M, D] to [B * Hkv, Hq // Hkv * M, D], a matrix for heads that share keys."""
    return rows.reshape(rows.shape[0] * others.shape[1], -1, rows.shape[3])


def _for_each(rows: Tensor, others: Tensor) -> Tensor:
    """Reshape keys or values to [B * Hkv, N, D], expanding a batch of size 1."""
    return others.expand(rows.shape[0], *others.shape[1:]).flatten(0, 1)


def _for_all(gradient: Tensor, others: Tensor) -> Tensor:
    """Return the gradient of keys or values, summed over batches that share them."""
    return gradient.view(-1, *others.shape[1:]).sum_to_size(others.shape)
