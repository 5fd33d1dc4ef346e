"""Checks of sizes: slices and their lengths, sources and targets, views and storages.

    x[:, n:]                     the host program computes the start, unless n is surely in range
    x.select_scatter(y, 0, i)    y must have the shape of x[i]; otherwise the call raises

Inductor: `ir.DynamicSelectStorageOffset`, `ir.DynamicSliceSize`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.fx.node import map_arg

from inductor_lab.compiler.base.errors import LabError, LeftToATen
from inductor_lab.compiler.capture.operands import by_name, items_of, operand
from inductor_lab.compiler.ir.effects import BEYOND, REFUSED
from inductor_lab.compiler.ir.index import Size, add_sizes, is_int, mul_sizes
from inductor_lab.compiler.ir.program import ExternArg, Layout
from inductor_lab.compiler.ir.slice_ops import OPERATORS
from inductor_lab.compiler.lower.builder import Builder, TensorMeta, size_of, source_line
from inductor_lab.compiler.lower.tensor import TensorValue, same_strides
from inductor_lab.compiler.rewrite.decompose.eager_dtype_checks import fits, is_refused, range_of
from inductor_lab.compiler.torch_door.torch_api import share_elements

aten = torch.ops.aten
NARROW = (
    torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.float16,
)  # fmt: skip
"""Dtypes that cannot hold every 64-bit integer."""


def begin_of_slice(build: Builder, size: Size, start: Any) -> Size:
    """The first position of a slice: None is 0, negative counts from the end, and it is clamped."""
    first = 0 if start is None else size_of(start)
    if isinstance(first, int) and isinstance(size, int):
        return slice(first, None).indices(size)[0]
    return _position_from_start(build, size, first, add_sizes(size, 1), OPERATORS.first_of_slice)


def length_of_slice(build: Builder, size: Size, start: Any, end: Any, step: int) -> Size:
    """The number of elements of a slice."""
    first, last = start or 0, size if end in (None, sys.maxsize) else end
    if all(isinstance(number, int) for number in (size, first, last)):
        return len(range(*slice(first, last, step).indices(size)))
    if build.is_sure(first, 0, last) and build.is_sure(last, 0, add_sizes(size, 1)):
        return (last - first + step - 1) // step
    return build.number(str(OPERATORS.length_of_slice.default), (size, start, end, step))


def place_of(build: Builder, size: Size, index: Any) -> Size:
    """A position counted from the front; a negative one counts from the end."""
    return _position_from_start(build, size, size_of(index), size, OPERATORS.position_in)


def _position_from_start(build: Builder, size: Size, place: Size, end: Size, operator: Any) -> Size:
    """A nonnegative position below `end`; a negative one counts from the end of `size`.

    If the sign is known only at run time, the host program calls `operator` to compute it.
    """
    if build.is_sure(place, 0, end):
        return place
    if build.is_sure(place, mul_sizes(size, -1), 0):
        return add_sizes(place, size)
    return build.number(str(operator.default), (size, place))


def only_expands(number: torch.fx.Node) -> bool:
    """Is a number used only as the size to which `expand` expands a length of 1?  Then -1 means
    1."""

    def keeps(expand: torch.fx.Node) -> bool:
        if expand.target is not aten.expand.default:
            return False
        before, after = operand(expand).meta["val"].shape, items_of(expand)
        pairs = zip(before[::-1], after[::-1], strict=False)
        new = after[: len(after) - len(before)]
        return number not in new and all(is_int(n, 1) for n, m in pairs if m is number)

    return all(map(keeps, number.users))


def need_shape(build: Builder, source: TensorValue, shape: Sequence[Size]) -> None:
    """The source of a write must have the shape of the elements that it replaces."""
    if source.ndim != len(shape):
        raise LeftToATen("different number of dimensions")
    for found, needed in zip(source.shape, shape, strict=True):
        build.require(sympy.Eq(found, needed), f"a source has length {found}, not {needed}")


CONVERTED: Mapping[Any, tuple[str, ...]] = {
    **dict.fromkeys((aten.add.Tensor, aten.add.Scalar, aten.index_add.default), ("alpha",)),
    **dict.fromkeys((aten.scatter.value, aten.constant_pad_nd.default), ("value",)),
    **dict.fromkeys((aten.index_fill.int_Scalar, aten.index_fill.int_Tensor), ("value",)),
    aten.threshold.default: ("threshold", "value"), aten.addcmul.default: ("value",),
    aten.clamp.default: ("min", "max"), aten.pow.Tensor_Scalar: ("exponent",),
}  # fmt: skip
"""Operators → the numbers that eager mode converts to the dtype of the result; it raises if a
number is out of range."""
SUBTRACTING = (aten.sub.Tensor, aten.sub.Scalar, aten.rsub.Tensor, aten.rsub.Scalar)
"""These operators add `-alpha` times the second operand."""


def numbers_must_fit(build: Builder, args: Sequence[Any], more: Mapping[str, Any]) -> None:
    """The numbers of a call that are converted must fit in the dtype of its result."""
    target: Any = build.node.target
    fakes = map_arg((build.node.args, build.node.kwargs), lambda node: node.meta["val"])
    if is_refused(target, *fakes):
        raise LeftToATen(REFUSED)
    if target in SUBTRACTING:
        must_fit(build, [-by_name(target, args, more)["alpha"]], build.result.dtype)
    elif target in CONVERTED:
        given = by_name(target, args, more)
        must_fit(build, [given[name] for name in CONVERTED[target]], build.result.dtype)


def must_fit(build: Builder, given: Sequence[Any], dtype: torch.dtype) -> None:
    """These numbers must fit in `dtype`; a negative one wraps around in an unsigned dtype.

    Known numbers that do not fit are left to ATen, which raises.  Floats may be infinite or NaN.
    """
    if not all(fits(n, dtype) for n in given if isinstance(n, int | float)):
        raise LeftToATen(BEYOND)
    said = f"value cannot be converted to {dtype} without overflow"
    lowest, highest = range_of(dtype) if dtype in NARROW else (0, 0)
    symbolic = [n for n in given if isinstance(n, sympy.Basic) and n.is_integer]
    for n in symbolic if highest else ():
        build.require(sympy.Le(n, highest), said)
        build.require(sympy.Ge(n, lowest), said)


def solve_for(
    build: Builder, symbol: sympy.Symbol, number: sympy.Expr, read: Sequence[ExternArg]
) -> sympy.Expr:
    """Bind the only unbound symbol of a number that is read from a tensor.

    A check in the program has related it to a symbol: if the number is `6 - s57`, then s57 is 6
    minus the number.
    """
    factor, rest = number.coeff(symbol), number.subs(symbol, 0)
    if factor not in (1, -1) or number != factor * symbol + rest:
        raise LabError(f"cannot solve {number} for {symbol}", source_line(build.node))
    known = build.number(str(build.node.target), read)
    build.number("aten.add.int", (size_of(factor * (known - rest)), 0), symbol)
    return number


def check_unbacked(build: Builder, assumed: list[sympy.Basic]) -> None:
    """Check torch's assumptions about unbacked symbols when the steps that bind them have run."""
    for test in [t for t in assumed if t.free_symbols <= build.symbols]:
        assumed.remove(test)
        if not build.unbacked.isdisjoint(test.free_symbols):
            build.check(test, f"{test} is false, but the compiled program requires it")


def layout_within(given: torch.Tensor, layout: Layout, fake: torch.Tensor) -> Layout | None:
    """The strides of `fake` in the storage of `given`, whose layout is `layout`, if `fake` is its
    view.

    A guard may have merged two dimensions or replaced one symbol by another.
    """
    if not share_elements(given, fake):
        return None
    whole, found = TensorMeta.of(given), TensorMeta.of(fake)
    if not same_strides(layout, Layout(whole.shape, whole.stride)):
        return None
    steps = size_of(fake.storage_offset()) - size_of(given.storage_offset())
    return Layout(found.shape, found.stride, layout.offset + steps)
