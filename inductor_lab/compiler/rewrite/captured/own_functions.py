"""Functions that torch's own definitions compute wrongly, in the captured graph.

    F.softshrink(x, 0.3)      →      softshrink(x, 0.3)        the function below

AOTAutograd uses these definitions even if its table has none, so the call is replaced before.

Inductor: none; it has these defects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx import GraphModule

aten = torch.ops.aten
Tensor = torch.Tensor

SHORT = (torch.bfloat16, torch.float16)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Eager mode computes 16-bit floats in float32 and rounds once; torch's definition rounds each
    of its steps."""
    return F.softshrink(_wide(input), lambd).to(input.dtype)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The loss of one row is a number, and margins that are 0 or NaN have no loss and no gradient;
    torch's definition gives a vector, and gradients there."""
    _check_types("multi_margin_loss", input, target)
    classes = input.shape[-1] if input.dim() else 1
    rows = input.shape[0] if input.dim() == 2 else 1
    are_sizes_right = target.dim() <= 1 and target.numel() == rows and input.dim() <= 2
    is_weight_right = weight is None or weight.shape == (classes,)
    if not are_sizes_right or not is_weight_right or p not in (1, 2):
        how = size_average, reduce, reduction
        return F.multi_margin_loss(input, target, p, margin, weight, *how)
    x, t = _wide(input).reshape(rows, classes), target.reshape(rows, 1)
    margins = margin - x.gather(1, t) + x
    losses = margins if p == 1 else margins * margins
    if weight is not None:
        losses = losses * weight[t]
    counts = (margins > 0) & (torch.arange(classes, device=t.device) != t)
    losses = losses.where(counts, 0).sum(-1).reshape(target.shape) / classes
    return _reduced(losses, _reduction(size_average, reduce, reduction)).to(input.dtype)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The targets of a row end before its first -1; torch's definition takes class 0 for each that
    is missing.  Margins that are 0 or NaN have no loss and no gradient."""
    _check_types("multilabel_margin_loss", input, target)
    if input.shape != target.shape or input.dim() > 2:
        return F.multilabel_margin_loss(input, target, size_average, reduce, reduction)
    classes = input.shape[-1] if input.dim() else 1
    x, t = _wide(input).reshape(-1, classes), target.reshape(-1, classes)
    is_class = (t >= -1) & (t < classes)
    aten._assert_async.msg(is_class.all(), "argument #2 'target' is out of range")
    given = (t != -1).cumprod(-1).bool().unsqueeze(-1)
    targets = t.unsqueeze(-1).where(given, 0)
    is_target = (given & (targets == torch.arange(classes, device=t.device))).any(-2, keepdim=True)
    margins = 1 - x.gather(-1, targets.squeeze(-1)).unsqueeze(-1) + x.unsqueeze(-2)
    losses = margins.where(given & ~is_target & (margins > 0), 0).sum((-1, -2)) / classes
    losses = losses.reshape(input.shape[:-1])
    return _reduced(losses, _reduction(size_average, reduce, reduction)).to(input.dtype)


def _check_types(name: str, input: Tensor, target: Tensor) -> None:
    if target.dtype != torch.int64:
        raise RuntimeError(f"{name} expects targets of type torch.int64, not {target.dtype}")
    if not input.is_floating_point() or (input.is_cpu and input.dtype in SHORT):
        raise NotImplementedError(f"{name} is not implemented for {input.dtype} on this device")


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in SHORT else x


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """What the old arguments `size_average` and `reduce` stand for."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


OWN: dict[Callable[..., Any], Callable[..., Any]] = {
    F.softshrink: softshrink,
    F.multi_margin_loss: multi_margin_loss,
    F.multilabel_margin_loss: multilabel_margin_loss,
}
"""Function → the one that replaces it."""


def replace_functions(module: GraphModule) -> None:
    """Replace all calls of these functions, also those in nested graphs."""
    for part in [part for part in module.modules() if isinstance(part, GraphModule)]:
        found = [node for node in part.graph.nodes if node.target in OWN]
        for node in found:
            node.target = OWN[node.target]
        if found:
            part.recompile()
