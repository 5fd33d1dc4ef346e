"""Consumers of group statistics get an axis of groups.

    mean[n, g] = sum over k, r of x[n, 10*g + k, r] / 40960        g < 32, k < 10
    norm[n, c, r] = x[n, c, r] - mean[n, c // 10]                  c < 320

    norm[n, g, k, r] = x[n, 10*g + k, r] - mean[n, g]              the graph continues with its
                                                                   view [n, 320, r]

Now both nests visit the points [n, g] and can be fused.  (Only on GPUs, where it was measured.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.expr import Expr
from inductor_lab.compiler.ir.index import (
    Axis,
    Index,
    Quotient,
    Size,
    exact_quotient,
    is_int,
    mul_sizes,
)
from inductor_lab.compiler.ir.program import Pointwise, Reduction, Step
from inductor_lab.compiler.lower.passes.gpu_rows import on_gpu
from inductor_lab.compiler.lower.tensor import TensorValue, axes_of, identity, reshape

Sizes: TypeAlias = tuple[Size, ...]


class Groups:
    """Tracks which dimensions of the buffers of `steps` depend on a reduction."""

    def __init__(self, steps: Sequence[Step], options: Options) -> None:
        self.steps, self.options, self.seen = steps, options, 0
        self.waits: dict[str, frozenset[int]] = {}

    def split(
        self, body: Expr, shape: Sizes, stride: Sizes, device: str
    ) -> tuple[Expr, Sizes, Sizes] | None:
        """The result with separate axes for groups, and its shape and strides; None if it reads no
        groups."""
        lengths = self._lengths(body, shape) if on_gpu(device, self.options) else ()
        if max(lengths, default=1) == 1:
            return None
        sizes: list[Size] = []
        steps: list[Size] = []
        for size, step, length in zip(shape, stride, lengths, strict=True):
            sizes += (exact_quotient(size, length), length) if length > 1 else (size,)
            steps += (mul_sizes(step, length), step) if length > 1 else (step,)
        own = iter(identity(sizes))
        at = [next(own) * n + next(own) if n > 1 else next(own) for n in lengths]
        moved = body.substitute(dict(zip(axes_of(shape), at, strict=True)))
        return moved, tuple(sizes), tuple(steps)

    def whole(self, made: TensorValue, shape: Sizes) -> TensorValue:
        """The view in the original shape, with which the graph continues."""
        return reshape(made, shape)

    def _lengths(self, body: Expr, shape: Sequence[Size]) -> list[int]:
        """For each dimension of a result of `shape` the length of its groups; 1 if it has none."""
        for step in self.steps[self.seen :]:
            if isinstance(step, Reduction):
                self.waits[step.buffer] = frozenset(range(len(step.axes)))
            elif isinstance(step, Pointwise):
                at = {index.as_axis() for index in self._statistics_indices(step.body)}
                self.waits[step.buffer] = frozenset(d for d, a in enumerate(step.axes) if a in at)
        self.seen = len(self.steps)
        found = dict(map(_group, self._statistics_indices(body)))
        return [found.get(axis, 1) for axis in axes_of(shape)]

    def _statistics_indices(self, body: Expr) -> list[Index]:
        """The indices of the body in dimensions that depend on a reduction."""
        return [load.index[d] for load in body.loads() for d in self.waits.get(load.buffer, ())]


def _group(index: Index) -> tuple[Axis | None, int]:
    """The axis and the length of its groups, if the index is a group number."""
    atom, step = index.terms[0] if len(index.terms) == 1 else (None, 0)
    if is_int(step, 1) and index.constant == 0 and isinstance(atom, Quotient):
        axis, length = atom.dividend.as_axis(), atom.divisor
        if axis and isinstance(axis.size, int) and isinstance(length, int):
            return axis, length if axis.size % length == 0 else 1
    return None, 1
