"""What `flex_attention` and its gradient are, in terms of ATen: two products, and between them what
the user's functions say.

    s = score_mod(q @ k.mT * scale, b, h, i, j)
    s = where(mask_mod(b, h, i, j), s, -inf)
    softmax(s) @ v

Numbers between products have 32 bits, or 64 where those of the products have.

Inductor: `kernel/flex/`, templates alone.
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
"""What a function of the user's reads besides its arguments."""
LOG2_E = 1 / math.log(2)


@dataclass(frozen=True)
class Functions:
    """What the user says of a score and its place: `score_mod(score, b, h, i, j, *score_given)` and
    `mask_mod(b, h, i, j, *mask_given)`.

    `joint` takes what `score_mod` does, with the gradient of its result before what is given, and
    returns the gradients of all that `score_mod` takes.  `places` are those of scores, batches,
    heads, rows and columns; with them the columns come before the rows.
    """

    score_mod: Function
    mask_mod: Function
    scale: float
    score_given: Given
    mask_given: Given
    joint: Function | None = None
    places: tuple[Tensor, ...] | None = None

    def seen(self, products: Tensor, masked: bool = True) -> Tensor:
        """What the softmax is taken of; `products` are queries times keys, [B, H, M, N]."""
        scores = products * self.scale
        seen: Tensor = self._at_each(scores, self.score_mod, (scores,), self.score_given)
        return torch.where(self.shown(scores), seen, -math.inf) if masked else seen

    def shown(self, scores: Tensor) -> Tensor:
        shown: Tensor = self._at_each(scores, self.mask_mod, (), self.mask_given)
        return shown

    def slopes(
        self, products: Tensor, of_weights: Tensor, logs: Tensor, inner: Tensor, masked: bool = True
    ) -> tuple[Tensor, ...]:
        """The weights of the softmax, the gradient of `products`, and those of `score_given`.

        `of_weights` is the gradient of the weights; `logs[B, H, M]` are the logarithms to base 2 of
        the sums of powers, and `inner[B, H, M]` each row of the result times its gradient."""
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
        """`function` at each score, which it is told the place of.

        With a gradient the results are gradients: of the score, and of what is given, for all
        scores together."""
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
    """The result [B, Hq, M, Dv]; for each row, [B, Hq, M], the logarithm to base 2 of the sum of
    its powers, and its largest score.  A row in which all is masked gives 0."""
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
    """The gradients of query, key and value, and of what `score_mod` reads."""
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
    """`rows[B, Hq, M, D] @ others[B, Hkv, N, D].mT`, the sums not rounded to half precision."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    a, b = _in_groups(rows, others), _for_each(rows, others).mT
    if rows.dtype == wide or rows.device.type != "cuda":
        made = a.to(wide) @ b.to(wide)
    else:
        made = torch.bmm(a, b, out_dtype=wide)
    return made.view(*rows.shape[:3], others.shape[2])


def _in_groups(rows: Tensor, others: Tensor) -> Tensor:
    """[B, Hq, M, D] as [B * Hkv, Hq // Hkv * M, D]: heads that share keys are one matrix."""
    return rows.reshape(rows.shape[0] * others.shape[1], -1, rows.shape[3])


def _for_each(rows: Tensor, others: Tensor) -> Tensor:
    """Keys or values as [B * Hkv, N, D]; where there are one batch's, they are there for each."""
    return others.expand(rows.shape[0], *others.shape[1:]).flatten(0, 1)


def _for_all(gradient: Tensor, others: Tensor) -> Tensor:
    """The gradient of keys or values, from that of each batch's."""
    return gradient.view(-1, *others.shape[1:]).sum_to_size(others.shape)
