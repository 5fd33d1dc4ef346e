"""Our own definitions of operators that PrimTorch does not decompose, in terms of fusible ones.

    _cdist_forward(a[4, 3], b[5, 3], p)   →   norm(a[4, 1, 3] - b[1, 5, 3], p), the last dimension

Inductor: `decomposition.py`, and fallbacks for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from inductor_lab.compiler.rewrite.decompose.eager_dtype_checks import fits
from inductor_lab.compiler.torch_door.torch_api import known_decompositions, suggest_memory_format

aten = torch.ops.aten
DEFINITIONS: dict[Any, Callable[..., Any]] = {}
"""Overload → definition; `@defines` adds them."""


Definition = TypeVar("Definition", bound=Callable[..., Any])


def defines(*operators: Any) -> Callable[[Definition], Definition]:
    """Register a definition of some overloads."""

    def register(definition: Definition) -> Definition:
        DEFINITIONS.update(dict.fromkeys(operators, definition))
        return definition

    return register


FLOAT32_MAX = torch.finfo(torch.float32).max


# ---- distances -------------------------------------------------------------------------------

MATMUL_ROWS = 25
"""From this number of rows, eager mode computes Euclidean distances by a matrix product."""


@defines(aten._cdist_forward.default)
def cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """The p-norm of the difference of each row of x1 and each of x2."""
    if x1.shape[-1] == 0:
        batch: torch.Size = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        return x1.new_zeros((*batch, x1.shape[-2], x2.shape[-2]))
    many = x1.shape[-2] > MATMUL_ROWS or x2.shape[-2] > MATMUL_ROWS
    if p == 2 and (compute_mode == 1 or (not compute_mode and many)):
        return _from_product(x1, x2)
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if p == math.inf:  # eager mode ignores NaN
        difference = difference.where(difference == difference, 0)
    return _norm(difference, p)


@defines(aten.linalg_cross.default)
def cross(a: Tensor, b: Tensor, *, dim: int = -1) -> Tensor:
    """Without the index tables of torch's definition."""
    a, b = torch.broadcast_tensors(a, b)
    (x, y, z), (u, v, w) = a.unbind(dim), b.unbind(dim)
    return torch.stack((y * w - z * v, z * u - x * w, x * v - y * u), dim)


@defines(aten.linalg_vector_norm.default)
def vector_norm(
    x: Tensor,
    order: float = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """torch's definition, which needs nonnegative dimensions up to torch 2.11."""
    known = known_decompositions()[aten.linalg_vector_norm.default]
    dims = None if dim is None else [d % max(x.ndim, 1) for d in dim]
    result: Tensor = known(x, order, dims, keepdim, dtype=dtype)
    return result


def _norm(x: Tensor, p: float) -> Tensor:
    """The p-norm along the last dimension."""
    if p == 0:
        return x.abs().ceil().clamp_max(1).sum(-1)  # NaN stays
    if p == 1:
        return x.abs().sum(-1)
    if p == 2:
        return x.square().sum(-1).sqrt()
    if p == math.inf:
        # amax raises for an empty tensor
        return x.abs().amax(-1) if x.numel() else x.abs().sum(-1)
    return (x.abs() ** p).sum(-1) ** (1 / p)


def _from_product(x1: Tensor, x2: Tensor) -> Tensor:
    """sqrt(|a|^2 - 2*a*b + |b|^2), all three terms in one matrix product."""
    squares1, squares2 = (x.square().sum(-1, keepdim=True) for x in (x1, x2))
    left = torch.cat([x1 * -2, squares1, torch.ones_like(squares1)], -1)
    right = torch.cat([x2, torch.ones_like(squares2), squares2], -1)
    return torch.matmul(left, right.mT).clamp_min(0).sqrt()


@defines(aten._trilinear.default)
def trilinear(
    x: Tensor,
    y: Tensor,
    z: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The sum of a product of three tensors, each with new dimensions of size 1."""
    parts = []
    for tensor, dims in ((x, expand1), (y, expand2), (z, expand3)):
        for dim in sorted(dims):
            tensor = tensor.unsqueeze(dim)
        parts.append(tensor)
    product = parts[0] * parts[1] * parts[2]
    return product.sum(tuple(sumdim), dtype=product.dtype) if sumdim else product


@defines(aten.roll.default)
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """Swaps two parts of each dimension.

    torch's definition, which is used for symbolic sizes, gathers every element.
    """
    if not all(isinstance(size, int) for size in x.shape):
        looked_up: Tensor = known_decompositions()[aten.roll.default](x, shifts, dims)
        # for one dimension the definition is row-major, but eager mode keeps channels last
        kept = len(dims) == 1
        return looked_up.contiguous(memory_format=suggest_memory_format(x)) if kept else looked_up
    if not dims:
        return roll(x.flatten(), shifts, (0,)).view(x.shape)
    if x.numel() == 0:
        return x.clone()
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        start = -shift % size
        x = torch.cat((x.narrow(dim, start, size - start), x.narrow(dim, 0, start)), dim)
    return x


@defines(aten.im2col.default)
def im2col(
    x: Tensor,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """Each window of the images (..., C, H, W) as a column: (..., C * window, windows).

    This is a view.  torch's definition, which is used with padding, gathers every element.
    """
    if any(padding):
        given = (x, kernel_size, dilation, padding, stride)
        looked_up: Tensor = known_decompositions()[aten.im2col.default](*given)
        return looked_up
    windows = x
    for size, apart, step in zip(kernel_size, dilation, stride, strict=True):
        windows = windows.unfold(-2, (size - 1) * apart + 1, step)[..., ::apart]
    columns = windows.movedim((-2, -1), (-4, -3)).clone(memory_format=torch.contiguous_format)
    return columns.flatten(-2).flatten(-4, -2)


@defines(aten.resize_as.default)
def resize_as(
    x: Tensor, template: Tensor, *, memory_format: torch.memory_format | None = None
) -> Tensor:
    """`x` with another shape; a tensor that has the shape already keeps its layout, unlike in
    PrimTorch."""
    if x.shape == template.shape and memory_format is None:
        return x.clone()
    chosen = memory_format or torch.contiguous_format
    if chosen is torch.preserve_format:
        chosen = suggest_memory_format(template)
    resized: Tensor = torch.ops.aten.resize.default(x, template.shape, memory_format=chosen)
    return resized


@defines(aten.native_dropout.default)
def native_dropout(x: Tensor, p: float, train: bool | None) -> Any:
    """torch's definition, except that dropping all makes infinities NaN on a CPU."""
    if train and p == 1 and x.is_cpu and x.is_floating_point():
        return x * 0.0, torch.zeros_like(x, dtype=torch.bool)
    return known_decompositions()[aten.native_dropout.default](x, p, train)


@defines(aten.huber_loss.default)
def huber_loss(x: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    """Half the square up to delta, linear above; in the dtype of `x`."""
    distance = (x - target).abs()
    loss = torch.where(distance < delta, 0.5 * distance**2, delta * (distance - 0.5 * delta))
    reduced = (loss, loss.mean(), loss.sum())[reduction] if reduction else loss
    return reduced.to(x.dtype)


@defines(aten.smooth_l1_loss_backward.default)
def smooth_l1_loss_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    """NaN if the distance is NaN, as in eager mode; torch's definition gives 0."""
    dtype = torch.promote_types(x.dtype, target.dtype)
    wide = torch.float32 if dtype.itemsize == 2 else dtype
    distance = x.to(wide) - target.to(wide)
    scaled = grad.to(wide) * (1 / x.numel() if reduction == 1 else 1.0)
    outside = torch.where(distance <= -beta, -scaled, scaled)
    inside = (distance < beta) & (distance > -beta) | distance.isnan()
    return torch.where(inside, scaled * distance / beta, outside).to(dtype)


KEPT_DTYPES = {
    aten.binary_cross_entropy_with_logits.default: 1,
    aten.soft_margin_loss.default: 0,
    aten.normal.Tensor_Tensor: 0,
}
"""Overload → the argument that determines the dtype of the result; torch's definitions promote."""


def _keeping(operator: Any, position: int) -> Callable[..., Tensor]:
    """torch's definition, converted to the dtype of the argument that determines it in eager
    mode."""

    def definition(*given: Any, **more: Any) -> Tensor:
        result: Tensor = known_decompositions()[operator](*given, **more)
        return result.to(given[position].dtype)

    return definition


DEFINITIONS.update({op: _keeping(op, position) for op, position in KEPT_DTYPES.items()})


@defines(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(x: Tensor) -> tuple[Tensor, Tensor]:
    """torch's definition; on a CPU the result is always contiguous, as in eager mode."""
    whole = x.contiguous() if x.device.type == "cpu" else x
    results: tuple[Tensor, Tensor] = known_decompositions()[aten.log_sigmoid_forward.default](whole)
    return results


@defines(aten.round.decimals)
def round_decimals(x: Tensor, *, decimals: int) -> Tensor:
    """round(x * t) / t with t = 10^decimals, where t may be infinite; 16-bit results are rounded
    once."""
    if not x.is_floating_point():
        known: Tensor = known_decompositions()[aten.round.decimals](x, decimals=decimals)
        return known
    places = abs(decimals)
    fixed = isinstance(places, int)
    power: Any = float(f"1e{places}") if fixed else 10.0**places
    if fixed and power > FLOAT32_MAX and x.dtype != torch.float64:
        power = math.inf
    wide = x.float() if x.dtype.itemsize == 2 else x
    scale = wide.new_full((), power)
    scaled = wide / scale if decimals < 0 else wide * scale
    whole = scaled.round()
    return (whole * scale if decimals < 0 else whole / scale).to(x.dtype)


@defines(aten.masked_fill.Scalar)
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Any:
    """torch's definition, for a number that fits in the dtype."""
    if isinstance(value, int | float) and not fits(value, x.dtype):
        return NotImplemented
    return known_decompositions()[aten.masked_fill.Scalar](x, mask, value)


def _of_reals(operator: Any) -> None:
    """The definition for real numbers.  For complex ones it is wrong at infinities and zeros, or
    raises: ATen computes them."""
    known = DEFINITIONS.get(operator) or known_decompositions()[operator]

    @defines(operator)
    def of_reals(x: Tensor, *given: Any, **more: Any) -> Any:
        return NotImplemented if x.is_complex() else known(x, *given, **more)


for _operator in (aten.sgn.default, aten.logaddexp.default, aten.nan_to_num.default):
    _of_reals(_operator)


# ---- values that eager kernels check -------------------------------------------------------------


def _need(test: Tensor, said: str) -> None:
    """Raise RuntimeError at run time unless the test is true for all elements."""
    aten._assert_async.msg(test.all(), said)


@defines(aten.binary_cross_entropy.default)
def binary_cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """torch's definition, with eager's check that all values are probabilities; NaN is rejected."""
    _need((x >= 0) & (x <= 1), "all elements of input should be between 0 and 1")
    _need((target >= 0) & (target <= 1), "all elements of target should be between 0 and 1")
    known = known_decompositions()[aten.binary_cross_entropy.default]
    result: Tensor = known(x, target, weight, reduction)
    return result


@defines(aten.bernoulli.default)
def bernoulli(x: Tensor, *, generator: torch.Generator | None = None) -> Any:
    """torch's definition, with eager's check that all values are probabilities."""
    if generator is not None:
        return NotImplemented
    _need((x >= 0) & (x <= 1), "bernoulli expects all elements of p to be in [0, 1]")
    return known_decompositions()[aten.bernoulli.default](x)


def _of_a_deviation(operator: Any, position: int) -> None:
    """torch's definition, or ours, with eager's check that standard deviations are not negative."""
    known = DEFINITIONS.get(operator) or known_decompositions()[operator]

    @defines(operator)
    def normal(*given: Any, **more: Any) -> Any:
        _need(given[position] >= 0, "normal expects all elements of std >= 0.0")
        return known(*given, **more)


_of_a_deviation(aten.normal.float_Tensor, 1)
_of_a_deviation(aten.normal.Tensor_Tensor, 1)


# ---- neighbours ------------------------------------------------------------------------------


@defines(
    aten.replication_pad1d_backward.default,
    aten.replication_pad2d_backward.default,
    aten.replication_pad3d_backward.default,
)
def replication_pad_backward(grad: Tensor, x: Tensor, padding: Sequence[Any]) -> Tensor:
    """The edges of each dimension get the gradients of their copies; removed elements get zero."""
    for n in range(len(padding) // 2):
        dim, (before, after) = x.ndim - 1 - n, padding[2 * n : 2 * n + 2]
        size = x.shape[dim]
        if before < 0 or after < 0:
            grad = aten.constant_pad_nd(grad, [0] * (2 * n) + [max(-before, 0), max(-after, 0)], 0)
            before, after = max(before, 0), max(after, 0)
        if size == 1:
            grad = grad.sum(dim, keepdim=True)
        elif before or after:
            first = grad.narrow(dim, 0, before + 1).sum(dim, keepdim=True)
            last = grad.narrow(dim, before + size - 1, after + 1).sum(dim, keepdim=True)
            grad = torch.cat([first, grad.narrow(dim, before + 1, size - 2), last], dim)
    return grad
