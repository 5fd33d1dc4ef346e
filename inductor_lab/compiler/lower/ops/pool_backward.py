"""Gradients of pooling: each input element gathers from the windows that read it.

    max_pool2d_with_indices_backward(grad[4, 4], x[8, 8], 2, indices[4, 4])
        →  grad[i0 // 2, i1 // 2] where indices[i0 // 2, i1 // 2] == 8*i0 + i1, otherwise 0

The window of a result determines which elements it may have read (`lower/window.py`).  So there is
no scatter, and no two threads add to one element.

Inductor: `lowering.py`, `max_pool2d_with_indices_backward`, `avg_pool2d_backward`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import Index
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.ops.pool import adaptive, divisor, sliding
from inductor_lab.compiler.lower.ops.reduce import accumulator
from inductor_lab.compiler.lower.places import inside, masked
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import TensorValue, flatten, identity
from inductor_lab.compiler.lower.window import Window, fold

aten = torch.ops.aten

Share = Callable[[Sequence[Index], Sequence[Index]], Expr]
"""`share(o, at)`: the contribution of result o to the gradient of the input at position `at`."""


def sum_over_readers(
    build: Builder, windows: Sequence[Window], tests: Any, share: Share
) -> TensorValue:
    """The gradient of the input: for each position the sum of the contributions of its readers.

    `tests(window, o, place)` are the tests that result o reads this position of one dimension.
    """
    meta = build.result
    wide = accumulator(meta.dtype)
    own = identity(meta.shape)
    at = own[-len(windows) :]

    def element(t: Sequence[Index]) -> Expr:
        o = [w.reader(i, n) for w, i, n in zip(windows, at, t, strict=True)]
        held = [test for w, one, i in zip(windows, o, at, strict=True) for test in tests(w, one, i)]
        given = build.convert(share((*own[: -len(windows)], *o), at), wide)
        return masked(build, held, given, build.const(0, wide))

    total = fold(build, "sum", [w.readers for w in windows], element, meta.having(wide))
    return build.rounded(total, meta)


def max_pool_backward(
    build: Builder, grad: TensorValue, indices: TensorValue, windows: Sequence[Window]
) -> TensorValue:
    """Each result adds its gradient to the position in `indices`."""

    def share(o: Sequence[Index], at: Sequence[Index]) -> Expr:
        here = build.position(flatten(at, [w.size for w in windows]))
        value = build.load(grad, o)
        chosen = build.op("eq", build.load(indices, o), here)
        return build.op("where", chosen, value, build.const(0, value.dtype))

    def tests(window: Window, o: Index, place: Index) -> list[Expr]:
        return inside(build, o, window.results)

    return sum_over_readers(build, windows, tests, share)


def _max_pool_backward(
    dims: int,
    build: Builder,
    grad: TensorValue,
    x: TensorValue,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: TensorValue,
) -> TensorValue:
    sizes, results = x.shape[-dims:], grad.shape[-dims:]
    windows = sliding(sizes, results, kernel, stride, padding, dilation)
    return max_pool_backward(build, grad, indices, windows)


lowers(aten.max_pool2d_with_indices_backward.default)(partial(_max_pool_backward, 2))
lowers(aten.max_pool3d_with_indices_backward.default)(partial(_max_pool_backward, 3))


def _adaptive_max_pool_backward(
    dims: int, build: Builder, grad: TensorValue, x: TensorValue, indices: TensorValue
) -> TensorValue:
    windows = adaptive(x.shape[-dims:], grad.shape[-dims:])
    return max_pool_backward(build, grad, indices, windows)


lowers(aten.adaptive_max_pool2d_backward.default)(partial(_adaptive_max_pool_backward, 2))
lowers(aten.adaptive_max_pool3d_backward.default)(partial(_adaptive_max_pool_backward, 3))


def mean_pool_backward(
    build: Builder, grad: TensorValue, windows: Sequence[Window], **counting: Any
) -> TensorValue:
    """Each result distributes its gradient equally over the elements that it read."""

    def share(o: Sequence[Index], at: Sequence[Index]) -> Expr:
        value = build.convert(build.load(grad, o), accumulator(grad.dtype))
        count = divisor(build, windows, o[-len(windows) :], value.dtype, **counting)
        return build.op("truediv", value, count)

    def tests(window: Window, o: Index, place: Index) -> list[Expr]:
        return window.reads(build, o, place)

    return sum_over_readers(build, windows, tests, share)


def _avg_pool_backward(
    dims: int,
    build: Builder,
    grad: TensorValue,
    x: TensorValue,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> TensorValue:
    windows = sliding(x.shape[-dims:], grad.shape[-dims:], kernel, stride, padding)
    counting = {"padded": count_include_pad, "given": divisor_override}
    return mean_pool_backward(build, grad, windows, **counting)


lowers(aten.avg_pool2d_backward.default)(partial(_avg_pool_backward, 2))
lowers(aten.avg_pool3d_backward.default)(partial(_avg_pool_backward, 3))


def _adaptive_avg_pool_backward(
    dims: int, build: Builder, grad: TensorValue, x: TensorValue
) -> TensorValue:
    return mean_pool_backward(build, grad, adaptive(x.shape[-dims:], grad.shape[-dims:]))


lowers(aten._adaptive_avg_pool2d_backward.default)(partial(_adaptive_avg_pool_backward, 2))
lowers(aten._adaptive_avg_pool3d_backward.default)(partial(_adaptive_avg_pool_backward, 3))
