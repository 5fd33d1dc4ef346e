"""Functions and their gradients at special values: signed zeros, infinities, NaN, ties, bounds.

A result that is not eager mode's must be that of float64, as a remainder of 1e30 by 1e-30.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab

Tensor = torch.Tensor
Function = Callable[..., object]

INF, NAN = math.inf, math.nan
NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, INF, -INF, NAN, 1e-30, 1e30, 3.0, 6.0, -3.0]
PAIRS = [[a for a in NUMBERS for _ in NUMBERS], [b for _ in NUMBERS for b in NUMBERS]]
ROWS = [
    [1.0, 1.0, 0.0, -1.0],
    [0.0, 0.0, 0.0, 0.0],
    [INF, 1.0, INF, 2.0],
    [-INF, -INF, -INF, -INF],
    [NAN, 1.0, 2.0, NAN],
    [-INF, 0.0, 1.0, -INF],
    [2.0, 2.0, 2.0, 2.0],
    [-0.0, 0.0, -0.0, 0.0],
    [1e19, 1e19, 1.0, 1.0],
]
TIES = [0, 1, 6]
"""Rows of finite numbers, some of them equal."""
PLACES = torch.tensor([[0, 0, 1, 1]] * len(ROWS))
VECTORS = [[0.0, 1.0, 2.0], [3.0, 0.0, 0.0], [0.0, -1.0, 2.0], [INF, 2.0, NAN], [1.0, 1e30, -INF]]

OF_PAIRS: dict[str, Function] = {
    **{f.__name__: f for f in (
        torch.maximum, torch.minimum, torch.fmax, torch.fmin, torch.pow, torch.atan2, torch.hypot,
        torch.xlogy, torch.logaddexp, torch.logaddexp2, torch.fmod, torch.remainder, torch.div,
        torch.copysign, torch.float_power, torch.ldexp, torch.clamp_min,
    )},
    "xlog1py": torch.special.xlog1py,
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "lerp by a tensor": lambda x, y: torch.lerp(x, y, y),
    "clamp": lambda x, y: torch.clamp(x, y, y + 1),
    "where": lambda x, y: torch.where(x > y, x * 2, y.log()),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=0.5),
    "sub": lambda x, y: torch.sub(x, y, alpha=2),
    **{loss.__name__: lambda x, y, loss=loss: loss(x, y, reduction="none") for loss in (
        F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.kl_div, F.poisson_nll_loss)},
    "bce": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction="none"),
    "kl_div of logarithms": lambda x, y: F.kl_div(x, y, reduction="none", log_target=True),
    "hinge": lambda x, y: F.hinge_embedding_loss(x, y.detach().sign(), reduction="none"),
    "ranking": lambda x, y: F.margin_ranking_loss(x, y, y.detach().sign(), reduction="none"),
    "heaviside": lambda x, y: torch.heaviside(x.detach(), y.detach()),
    "nextafter": lambda x, y: torch.nextafter(x.detach(), y.detach()),
    "isclose": lambda x, y: torch.isclose(x, y, equal_nan=True),
}  # fmt: skip
OF_ROWS: dict[str, Function] = {
    **{str(f): lambda x, f=f: getattr(x, f)(1) for f in (
        "max", "min", "amax", "amin", "median", "nanmedian", "mode", "cummax", "cummin", "prod",
        "cumprod", "cumsum", "logcumsumexp", "logsumexp", "softmax", "log_softmax", "var", "std",
        "nansum", "nanmean", "argmax", "argmin", "any", "all", "mean",
    )},
    "all amax": lambda x: x[TIES].amax(), "all max": lambda x: x[TIES].max(),
    "aminmax": lambda x: x.aminmax(dim=1), "kthvalue": lambda x: x.kthvalue(2, 1),
    "sort": lambda x: torch.sort(x, stable=True, dim=1), "topk": lambda x: x.topk(2, 1).values,
    "one var": lambda x: x[:, :1].var(1), "std of all": lambda x: x.std(1, correction=0),
    **{f"norm {p}": lambda x, p=p: x.norm(p, 1) for p in (0, 0.5, 1, 2, 3, -1, INF, -INF)},
    "normalize": F.normalize, "renorm": lambda x: x[TIES].renorm(2, 0, 0.5),
    "layer norm": lambda x: F.layer_norm(x[:8], (4,)), "rms norm": lambda x: F.rms_norm(x, (4,)),
    "batch norm": lambda x: F.batch_norm(x[TIES], None, None, training=True),
    "max pool": lambda x: F.max_pool1d(x[:, None], 2, 1, padding=1),
    "adaptive pool": lambda x: F.adaptive_max_pool1d(x[:, None], 3),
    "avg pool": lambda x: F.avg_pool1d(x[:, None], 3, 2, 1, True, False),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "masked attention": lambda x: F.scaled_dot_product_attention(
        x[None, :2], x[None, :2], x[None, :2], torch.tensor([[False, False], [True, False]])),
    "cross entropy": lambda x: F.cross_entropy(x, torch.arange(9) % 4, reduction="none"),
    "products": lambda x: x @ x.T, "differences": lambda x: x.diff(),
    **{f"scatter {r}": lambda x, r=r: x.scatter_reduce(1, PLACES, x.flip(1), r)
       for r in ("sum", "prod", "mean", "amax", "amin")},
    "index_reduce": lambda x: x.index_reduce(1, torch.tensor([0, 0, 3, 3]), x.flip(1), "amin"),
}  # fmt: skip
OF_NUMBERS: dict[str, Function] = {
    **{f.__name__: f for f in (
        torch.rsqrt, torch.sgn, torch.abs, torch.frac, torch.sinc, torch.erfinv, torch.acos,
        torch.acosh, torch.atanh, torch.log1p, torch.expm1, torch.lgamma, torch.digamma, torch.i0,
        torch.exp2, torch.cosh, torch.signbit, torch.logit, torch.nan_to_num, F.hardtanh, F.elu,
        F.gelu, F.mish, F.silu, F.relu6, F.hardswish, F.logsigmoid, F.softsign, F.selu,
    )},
    **{f"power {p}": lambda x, p=p: x**p for p in (0, 0.5, -0.5, -1, 2.0, 3)},
    **{f"{base} to a power": lambda x, base=base: base**x for base in (0, 1, 2)},
    "entr": torch.special.entr, "ndtri": torch.special.ndtri, "log_ndtr": torch.special.log_ndtr,
    "logit of bounds": lambda x: torch.logit(x, 0.1),
    "round": lambda x: (x * 2.5).round(), "decimals": lambda x: (x * 1.23456).round(decimals=2),
    "threshold": lambda x: F.threshold(x, 1.0, 7.0), "celu": lambda x: F.celu(x, 0.3),
    "negative elu": lambda x: F.elu(x, alpha=-0.5), "softplus": lambda x: F.softplus(x, 2, 1.0),
    "tanh gelu": lambda x: F.gelu(x, approximate="tanh"),
    "clamp": lambda x: x.clamp(-1, 1), "swapped clamp": lambda x: x.clamp(1, -1),
    "clamp at NaN": lambda x: x.clamp(NAN, 1), "all dropped": lambda x: F.dropout(x, 1.0),
    "nothing dropped": lambda x: F.dropout(x, 0.0),
}  # fmt: skip
OF_VECTORS: dict[str, Function] = {
    "cosine": F.cosine_similarity, "pairwise": F.pairwise_distance,
    **{f"cdist {p}": lambda x, y, p=p: torch.cdist(x, y, p=p) for p in (0.0, 1.0, 2.0, 3.0, INF)},
    "the same": lambda x, y: torch.cdist(x, x), "dist": torch.dist,
}  # fmt: skip

GROUPS: dict[str, tuple[Mapping[str, Function], Sequence[object]]] = {
    "pairs": (OF_PAIRS, PAIRS),
    "rows": (OF_ROWS, [ROWS]),
    "numbers": (OF_NUMBERS, [NUMBERS * 16]),  # no rest, which eager mode computes otherwise
    "vectors": (OF_VECTORS, [VECTORS, VECTORS[::-1]]),
}
AT_ONCE = 8
"""Functions in one graph."""
CASES = [(name, start) for name, (functions, _) in GROUPS.items()
         for start in range(0, len(functions), AT_ONCE)]  # fmt: skip


def tensors(found: object) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else [y for one in found for y in tensors(one)]


def computed(
    function: Function, given: Sequence[object], count: int, dtype: torch.dtype
) -> list[list[Tensor]]:
    """For each of `count` functions in one graph: its results, and the gradients of its arguments,
    of which each function has its own."""
    own = [[torch.tensor(one, dtype=dtype).requires_grad_() for one in given] for _ in range(count)]
    found = [tensors(one) for one in function(*own)]
    trained = [y for one in found for y in one if y.requires_grad]
    arguments = [x for xs in own for x in xs]
    loss = [(y * y.detach().new_tensor(range(1, y.numel() + 1)).view_as(y)).sum() for y in trained]
    gradients = torch.autograd.grad(loss, arguments, allow_unused=True, materialize_grads=True)
    size = len(given)
    return [[*(y.detach() for y in one), *gradients[i * size : (i + 1) * size]]
            for i, one in enumerate(found)]  # fmt: skip


def differing(found: Tensor, eager: Tensor, exact: Tensor) -> int:
    assert (found.dtype, found.shape) == (eager.dtype, eager.shape)
    near = (torch.isclose(found, one.to(found.dtype), rtol=1e-4, atol=1e-6, equal_nan=True)
            for one in (eager, exact))  # fmt: skip
    return int((~(next(near) | next(near))).sum())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("group", "start"), CASES)
def test_special_values(group: str, start: int) -> None:
    torch.compiler.reset()
    functions, given = GROUPS[group]
    names = list(functions)[start : start + AT_ONCE]

    def function(*own: Sequence[Tensor]) -> list[object]:
        return [functions[name](*xs) for name, xs in zip(names, own, strict=True)]

    found = computed(lab.compile(function), given, len(names), torch.float32)
    eager = computed(function, given, len(names), torch.float32)
    exact = computed(function, given, len(names), torch.float64)
    wrong = [
        f"{name}: {count} of {ours.numel()} of tensor {i}"
        for name, *all_of_it in zip(names, found, eager, exact, strict=True)
        for i, (ours, theirs, truth) in enumerate(zip(*all_of_it, strict=True))
        if (count := differing(ours, theirs, truth))
    ]
    assert wrong == []
