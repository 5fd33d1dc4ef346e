"""Operators that write a tensor to a region of another: a slice, one position, a diagonal, a view.

    c.select_scatter(x * 2, 0, 3)     with c[8, 4] and x[4]

    buf0[i0] = mul(x[i0], 2.0)                                  one nest, which can be fused, but
    buf1[i0, i1] = where(eq(i0, 3), buf0[i1], c[i0, i1])        visits all elements

    buf1[i0, i1] = c[i0, i1]                                    or a scatter, which visits only
    buf2[3, i0] : i0<4  = buf1 with store of buf0[i0]           the region if there is no copy

The second form is chosen if the write is in place (`lower/passes/in_place.py`).

Inductor: `lowering.py`, `select_scatter`, `slice_scatter`; `fx_passes/reinplace.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy
import torch

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.base.errors import LeftToATen
from inductor_lab.compiler.capture.operands import operand as fx_operand
from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.ir.expr import Expr, Load
from inductor_lab.compiler.ir.index import gathered_in, hint, mul_sizes, product
from inductor_lab.compiler.ir.program import (
    Answer,
    BufferKind,
    ExternCall,
    Layout,
    PartialWrite,
    Pointwise,
    written_by,
)
from inductor_lab.compiler.ir.rules import rule_of
from inductor_lab.compiler.lower import tensor
from inductor_lab.compiler.lower.builder import Builder, size_of
from inductor_lab.compiler.lower.chains import PLACES, REGIONS, SAME_ELEMENTS, ChangedCopy
from inductor_lab.compiler.lower.fits import begin_of_slice, length_of_slice, need_shape, place_of
from inductor_lab.compiler.lower.places import compare, inside, masked
from inductor_lab.compiler.lower.registry import lowers
from inductor_lab.compiler.lower.tensor import (
    TensorValue,
    identity,
    is_within_storage,
    overlaps,
    unflatten,
)

aten = torch.ops.aten

SMALL = {"cpu": 16 << 10, "cuda": 1 << 20}
"""Bytes of a tensor below which a separate kernel is slower than visiting all elements in a fused
kernel (chosen, not measured)."""

MANY = 8
"""From this number of consecutive writes, each is a scatter, because each `where` repeats the ones
before it."""

# ---- the choice ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RegionWrite:
    """A write to `region`, which is a view of x."""

    build: Builder
    x: TensorValue
    region: TensorValue

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer of x."""
        whole = self.build.buffers[self.x.buffer].layout.size
        return hint(product(whole)) * self.x.dtype.itemsize

    @property
    def is_unshared_buffer(self) -> bool:
        """Is x a complete buffer in memory that only this operator reads?"""
        buffer = self.build.buffers[self.x.buffer]
        if self.x.index != identity(buffer.layout.size) or buffer.kind is BufferKind.INPUT:
            return False
        maker = next((s for s in self.build.steps[::-1] if buffer.name in written_by(s)), None)
        in_memory = maker is not None and not isinstance(maker, Pointwise)
        library = not isinstance(maker, ExternCall) or maker.effect is Effect.FRESH
        return in_memory and library and len(fx_operand(self.build.node).users) == 1


Rule = Callable[[RegionWrite], "str | None"]
RULES: dict[str, Rule] = {}
rule = rule_of(RULES)


@rule
def stays_in_memory(write: RegionWrite) -> str | None:
    """The target is an input that gets the new value, or a result that is in memory."""
    build = write.build
    if build.node in build.chains.home or write.is_unshared_buffer or _is_long(write):
        return None
    return "all elements of the new value are computed in this kernel"


@rule
def large_enough(write: RegionWrite) -> str | None:
    """The tensor is not small: a small one is visited faster than a kernel is called."""
    limit = SMALL.get(write.x.device.split(":")[0], SMALL["cuda"])
    if write.build.options.target is not None:
        limit = SMALL["cuda"]
    if write.nbytes >= limit or _is_long(write):
        return None
    return f"the tensor has {bytes_text(write.nbytes)}, less than {bytes_text(limit)}"


@rule
def part_of_what_is_read(write: RegionWrite) -> str | None:
    """The region is not a large part of a tensor that is read later: one kernel then visits all
    elements."""
    covered = hint(product(write.region.shape)) * 2 >= hint(product(write.x.shape))
    if covered and _is_read(write.build.node) and not _is_long(write):
        return "it covers at least half of a tensor that is read afterwards"
    return None


def _is_long(write: RegionWrite) -> bool:
    return write.build.chains.length.get(write.build.node, 0) >= MANY


def _is_read(node: torch.fx.Node) -> bool:
    """Does any node read the result, other than writes to it and the outputs of the graph?"""
    for user in node.users:
        if user.target in SAME_ELEMENTS:
            if _is_read(user):
                return True
        elif user.op != "output" and not _continues_the_write(user, node):
            return True
    return False


def _continues_the_write(user: torch.fx.Node, node: torch.fx.Node) -> bool:
    """Does `user` only write to the node, or take the view that is written next?"""
    if user.target in REGIONS or user.target in PLACES:
        return user.args[0] is node or user.target in REGIONS
    return user.target in REGIONS.values() and not _is_read(user)


def put(
    build: Builder, x: TensorValue, region: TensorValue, source: TensorValue,
    everywhere: Callable[[], Expr] | None,
) -> TensorValue:  # fmt: skip
    """x with `source` in `region`, a view of x; `everywhere` gives the value of each element.

    If the region was taken from x, written, and is now written back, nothing is done.
    """
    if (written := _put_back(build, x, region, _origin(build, source))) is not None:
        return written
    write = RegionWrite(build, x, region)
    answers = tuple(Answer(name, "profit", ask(write)) for name, ask in RULES.items())
    if everywhere is not None and any(answer.reason for answer in answers):
        made = build.pointwise(everywhere())
        build.partial_writes.append(PartialWrite(made.buffer, x.buffer, answers))
        return made
    return scatter_region(build, x, region, source)


def scatter_region(
    build: Builder, x: TensorValue, region: TensorValue, source: TensorValue
) -> TensorValue:
    """x with `source` in `region`, as a write to a copy of its buffer."""
    base, value = build.copy_buffer(x), build.load(source, identity(region.shape))
    whole = TensorValue.of(build.buffers[base.buffer])
    made = build.scatter(whole, region.shape, region.index, "store", value, distinct=True)
    build.parts[made.buffer].views.add(region.index)
    return tensor.replaced(base, made.buffer)


def _origin(build: Builder, value: TensorValue) -> TensorValue:
    """The tensor that a value is a copy of; the value itself if it is not a copy."""
    for step in reversed(build.steps):
        if not isinstance(step, Pointwise) or step.buffer != value.buffer:
            continue
        body = step.body
        if isinstance(body, Load) and not any(map(list, map(gathered_in, body.index))):
            at = (index.substitute(dict(zip(step.axes, value.index, strict=True)))
                  for index in body.index)  # fmt: skip
            value = replace(value, buffer=body.buffer, index=tuple(at))
    return value


def _put_back(
    build: Builder, x: TensorValue, region: TensorValue, source: TensorValue
) -> TensorValue | None:
    """The buffer with the region already written, as a value like x; None if there is none.

    The region must have been taken from x and then written.
    """
    if (source.index, source.shape, source.dtype) != (region.index, region.shape, x.dtype):
        return None
    between: list[ChangedCopy] = []
    name = source.buffer
    while name != x.buffer:
        part = build.parts.get(name)
        if part is None or not part.has(region.index):
            return None
        between.append(part)
        name = part.base
    for part in between:
        part.views.add(x.index)
    return tensor.replaced(x, source.buffer)


# ---- the operators -------------------------------------------------------------------------------


@lowers(aten.slice_scatter.default)
def slice_scatter(
    build: Builder,
    x: TensorValue,
    source: TensorValue,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> TensorValue:
    """`source` at the positions of a slice, x elsewhere."""
    dim %= x.ndim
    first = begin_of_slice(build, x.shape[dim], start)
    length = length_of_slice(build, x.shape[dim], start, end, step)
    need_shape(build, source, (*x.shape[:dim], length, *x.shape[dim + 1 :]))

    def everywhere() -> Expr:
        at = identity(build.result.shape)
        moved = at[dim] - first
        tests = inside(build, moved, mul_sizes(source.shape[dim], step))
        if step != 1:
            tests.append(compare(build, "eq", moved % step, 0))
        value = build.load(source, (*at[:dim], moved // step, *at[dim + 1 :]))
        return masked(build, tests, value, build.load(x, at))

    region = tensor.slice_dim(x, dim, first, step, source.shape[dim])
    return put(build, x, region, source, everywhere)


@lowers(aten.select_scatter.default)
def select_scatter(
    build: Builder, x: TensorValue, source: TensorValue, dim: int, index: Any
) -> TensorValue:
    """`source` at one position of a dimension, x elsewhere."""
    dim %= x.ndim
    place = place_of(build, x.shape[dim], index)
    need_shape(build, source, (*x.shape[:dim], *x.shape[dim + 1 :]))

    def everywhere() -> Expr:
        at = identity(build.result.shape)
        value = build.load(source, (*at[:dim], *at[dim + 1 :]))
        test = compare(build, "eq", at[dim], place)
        return build.op("where", test, value, build.load(x, at))

    return put(build, x, tensor.select(x, dim, place), source, everywhere)


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(
    build: Builder,
    x: TensorValue,
    source: TensorValue,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
) -> TensorValue:
    """`source` on a diagonal of two dimensions, x elsewhere."""
    dim1, dim2 = dim1 % x.ndim, dim2 % x.ndim
    ends = x.shape[dim1] + min(offset, 0), x.shape[dim2] - max(offset, 0)
    others = [d for d in range(x.ndim) if d not in (dim1, dim2)]
    length = sympy.Max(0, sympy.Min(*ends))
    need_shape(build, source, (*(x.shape[d] for d in others), length))

    def everywhere() -> Expr:
        at = identity(build.result.shape)
        test = compare(build, "eq", at[dim2] - at[dim1], offset)
        rest = [at[d] for d in others]
        along = at[dim1] - max(-offset, 0)
        value = build.load(source, (*rest, along))
        return masked(build, [test], value, build.load(x, at))

    region = tensor.diagonal(x, offset, dim1, dim2, source.shape[-1])
    return put(build, x, region, source, everywhere)


@lowers(aten.as_strided_scatter.default)
def as_strided_scatter(
    build: Builder,
    x: TensorValue,
    source: TensorValue,
    size: Sequence[Any],
    stride: Sequence[Any],
    offset: Any = None,
) -> TensorValue:
    """`source` at the places of a strided view of x, which is contiguous."""
    fake = fx_operand(build.node).meta["val"]
    if not fake.is_contiguous() or fake.storage_offset():
        raise LeftToATen
    layout = Layout(tuple(map(size_of, size)), tuple(map(size_of, stride)), size_of(offset or 0))
    if layout.size != source.shape or not is_within_storage(layout, Layout.contiguous(x.shape)):
        raise LeftToATen("may exceed the storage")
    flat = layout.element(identity(source.shape))
    region = tensor.viewed(x, source.shape, tuple(unflatten(flat, x.shape)))
    if overlaps(layout):
        base, value = build.copy_buffer(x), build.load(source, identity(source.shape))
        whole = TensorValue.of(build.buffers[base.buffer])
        made = build.scatter(whole, region.shape, region.index, "store", value)
        return tensor.replaced(base, made.buffer)
    return put(build, x, region, source, None)


CHECKED = frozenset({aten.as_strided_scatter.default})
"""Operators that raise for a region outside an empty tensor."""
