"""What a lowering works with: it makes expressions, nests, extern calls and buffers.

One `Builder` serves one graph.  Everything that it makes is frozen; what changes while a graph is
lowered (the list of steps, the buffers, the node at hand) is here and nowhere else.

Inductor: `GraphLowering` in `graph.py` with the globals of `virtualized.V`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy
import torch

from inductor_lab.compiler.base.errors import LabError, LeftToATen
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.span import innermost
from inductor_lab.compiler.ir.expr import (
    NO_ORIGINS,
    Const,
    Expr,
    IndexValue,
    Op,
    Origins,
    SizeValue,
)
from inductor_lab.compiler.ir.index import (
    Axis,
    Gathered,
    Index,
    Size,
    gathered_in,
    is_int,
    simplify_size,
)
from inductor_lab.compiler.ir.ops import ELEMENTS, PREDICATES
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternArg,
    ExternCall,
    Layout,
    PartialWrite,
    Pointwise,
    Reduction,
    Scan,
    Scatter,
    Step,
)
from inductor_lab.compiler.lower.chains import Chains, Part
from inductor_lab.compiler.lower.number import Test, number
from inductor_lab.compiler.lower.passes.group_axis import Groups
from inductor_lab.compiler.lower.tensor import (
    TensorValue,
    axes_of,
    identity,
    is_dense,
    layout_of,
    load,
)
from inductor_lab.compiler.torch_door import torch_api

SCALAR = "aten.scalar_tensor.default"
ASSERTION = "aten._assert_scalar.default"


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """Shape, strides, dtype and device of a node's result, as its fake tensor has them."""

    shape: tuple[Size, ...]
    stride: tuple[Size, ...]
    dtype: torch.dtype
    device: str
    sparse: bool = False

    @staticmethod
    def of(fake: torch.Tensor) -> TensorMeta:
        shape, stride = tuple(fake.shape), fake.stride()
        if not all(type(s) is int for s in (*shape, *stride)):
            # what is 1 only by a guard broadcasts as a literal 1 does
            shape = tuple(1 if torch_api.surely_one(s) else size_of(s) for s in shape)
            stride = tuple(stride_of(s, shape) for s in stride)
        sparse = fake.layout is not torch.strided
        return TensorMeta(shape, stride, fake.dtype, str(fake.device), sparse)

    @property
    def layout(self) -> Layout:
        """The strides it asks for if they cover memory once, otherwise row-major."""
        layout = Layout(self.shape, self.stride)
        empty = any(is_int(size, 0) for size in self.shape)
        return layout if empty or is_dense(layout) else Layout.contiguous(self.shape)

    @property
    def exact_layout(self) -> Layout:
        """The strides it asks for, gaps included, unless elements share memory."""
        pairs = zip(self.shape, self.stride, strict=True)
        shared = any(is_int(stride, 0) and not is_int(size, 1) for size, stride in pairs)
        return self.layout if shared and not self.sparse else Layout(self.shape, self.stride)

    def having(self, dtype: torch.dtype) -> TensorMeta:
        return TensorMeta(self.shape, self.stride, dtype, self.device)


def size_of(size: Any) -> Size:
    """An int or a torch.SymInt as a Size."""
    if isinstance(size, int):
        return size
    return simplify_size(sympy.sympify(torch_api.expression_of(size)))


def stride_of(stride: Any, shape: Sequence[Size]) -> Size:
    """A stride of a tensor of that shape as a Size.

    torch writes `Max(1, s0)` for the length s0 of a row, so that a stride is not 0 where s0 is.
    The tensor is empty then, so it is s0 here, as in products of sizes.  A user's maximum stays.
    """
    found = size_of(stride)
    if isinstance(found, int):
        return found

    def is_of_row(size: sympy.Expr) -> bool:
        of_one = type(size).__name__ == "Max" and len(size.args) == 2 and size.args[0] == 1
        return of_one and all(n in shape or n.is_number for n in sympy.Mul.make_args(size.args[1]))

    return simplify_size(found.replace(is_of_row, lambda e: e.args[1]))


def symbols_in(sizes: Sequence[Size]) -> set[sympy.Symbol]:
    """The symbols of some sizes."""
    return {symbol for size in sizes if not isinstance(size, int) for symbol in size.free_symbols}


def source_line(node: torch.fx.Node) -> str:
    """The user's own line that a node came from, with its place; "" if it is not known."""
    span = innermost(node.meta.get("stack_trace") or "")
    return f"{span.code}        {span}" if span else ""


def wrapped(value: int, dtype: torch.dtype) -> int:
    """An int as its bits in an integer dtype mean it: -1 is 255 in uint8."""
    limits = torch.iinfo(dtype)
    return (value - limits.min) % (limits.max - limits.min + 1) + limits.min


def _rounded(const: Const) -> float:
    """The value of a literal in its own dtype."""
    if not const.dtype.is_floating_point or const.dtype is torch.float64:
        return const.value
    return torch.tensor(const.value, dtype=torch.float64).to(const.dtype).item()


def _holds(dtype: torch.dtype, value: float) -> bool:
    """Is a literal in the range of `dtype`?  Otherwise the kernel converts it."""
    if not math.isfinite(value) or not isinstance(value, float) or dtype.is_floating_point:
        return math.isfinite(value)
    return dtype is torch.bool or torch.iinfo(dtype).min <= value < torch.iinfo(dtype).max + 1


class Builder:
    """Collects the program of one graph; see the module."""

    def __init__(self, name: str, options: Options, own_products: Collection[str] = ()) -> None:
        self.name, self.options, self.own_products = name, options, own_products
        self.buffers: dict[str, Buffer] = {}
        self.constants: dict[str, torch.Tensor] = {}
        self.steps: list[Step] = []
        self.groups = Groups(self.steps, options)
        self.values: dict[torch.fx.Node, Any] = {}  # what each node stands for
        self.node: torch.fx.Node  # the node at hand, from the first `begin` on
        self.origins: Origins = NO_ORIGINS
        self.symbols: set[sympy.Symbol] = set()
        self.unbacked: set[sympy.Symbol] = set()
        """Those that no input binds, but a step of the program."""
        self.numbers: dict[sympy.Symbol, TensorValue] = {}
        """Numbers that are read from tensors, and the tensor of each."""
        self.chains = Chains(frozenset(), {})
        self.parts: dict[str, Part] = {}
        """Buffers that began as a copy of another one."""
        self.partial_writes: list[PartialWrite] = []
        self.randoms: dict[str, tuple[TensorValue, Size]] = {}
        """Device → its seed, and how many numbers were drawn with it so far."""
        self._computed = 0
        self._result: TensorMeta | None = None

    def begin(self, node: torch.fx.Node) -> None:
        """From here on everything that is made originates from `node`."""
        self.node, self.origins = node, frozenset((node.name,))
        self._result = None

    # ---- the node at hand ----

    @property
    def result(self) -> TensorMeta:
        """What the node's (only) tensor result is like."""
        if self._result is None:
            self._result = TensorMeta.of(self.node.meta["val"])
        return self._result

    @property
    def results(self) -> tuple[TensorMeta | Any, ...]:
        """The same for each result of a node that returns several; numbers are as expressions."""
        found = self.node.meta.get("val")
        found = found if isinstance(found, tuple | list) else (found,)
        return tuple(
            TensorMeta.of(f) if isinstance(f, torch.Tensor) else torch_api.expression_of(f)
            for f in found
        )

    @property
    def tensors(self) -> tuple[TensorMeta, ...]:
        """The same for those results of the node that are tensors."""
        return tuple(meta for meta in self.results if isinstance(meta, TensorMeta))

    @property
    def device(self) -> str:
        """Where the node's first result is."""
        return self.tensors[0].device

    # ---- expressions ----

    def op(self, name: str, *args: Expr) -> Expr:
        """One operation on operands that already have their common dtype."""
        dtype = torch.bool if name in PREDICATES else args[-1].dtype
        return Op(name, args, dtype, self.origins)

    def convert(self, expr: Expr, dtype: torch.dtype) -> Expr:
        """`expr` in another dtype; nothing if it has it, and a literal stays a literal."""
        if expr.dtype == dtype:
            return expr
        if isinstance(expr, Const) and _holds(dtype, value := _rounded(expr)):
            return self.const(value, dtype)
        if isinstance(expr, SizeValue) and dtype is not torch.bool:
            return SizeValue(expr.size, dtype)
        return Op("convert", (expr,), dtype, self.origins)

    def const(self, value: Any, dtype: torch.dtype) -> Expr:
        """A Python number, or a symbolic one, in `dtype`."""
        value = torch_api.expression_of(value)
        if isinstance(value, sympy.Basic):
            return self.convert(number(value, self.op, self.read), dtype)
        if dtype is torch.bool:
            return Const(bool(value), dtype)
        if dtype.is_floating_point:
            return Const(float(value), dtype)
        return Const(wrapped(int(value), dtype), dtype)

    def load(self, value: TensorValue, at: Sequence[Index]) -> Expr:
        """The element of `value` at `at`, broadcasting as PyTorch does."""
        return load(value, at, self.origins)

    def read(self, wanted: sympy.Basic) -> Expr:
        """A number that is in a tensor, as a load; any other Python computes, as for eager code
        (`round(x, 2)`), and the host program puts it into a tensor."""
        value, device = self.numbers.get(wanted), self.device
        dtype = torch.bool if isinstance(wanted, Test) else torch.float64
        if value is None or value.device != device:
            kind = {"dtype": dtype, "device": torch.device(device)}
            meta = TensorMeta((), (), dtype, device)
            (value,) = self.extern(SCALAR, (wanted,), kind, [meta], "number")
            assert value is not None
        return self.convert(self.load(value, ()), dtype)

    def picked(self, value: TensorValue, at: Sequence[Index]) -> Expr:
        """`load` at loaded positions."""
        return self._in_range(value, at, self.load(value, at))

    def _in_range(self, value: TensorValue, at: Sequence[Index], body: Expr) -> Expr:
        """`body`, which belongs to the element of `value` at `at`.  A loaded position in a
        broadcast dimension is evaluated by itself: it may be out of range."""
        axes = {axis for place in value.index for axis in place.axes()}
        for axis, place in zip(axes_of(value.shape), at, strict=True):
            if axis not in axes and any(gathered_in(place)):
                inside = self.op("ge", self.position(place), self.const(0, torch.int64))
                body = self.op("where", inside, body, self.const(0, body.dtype))
        return body

    def position(self, index: Index, dtype: torch.dtype = torch.int64) -> Expr:
        """An index as a number."""
        if not index.terms:
            return self.const(index.constant, dtype)
        return IndexValue(index, dtype)

    def gathered(self, value: Expr, size: Size) -> Index:
        """A loaded number as an index of a dimension of length `size`, which must not be empty."""
        self.need_elements((size,))
        return Index.of(Gathered(self.convert(value, torch.int64), size))

    def need_elements(self, sizes: Iterable[Size]) -> None:
        """ATen raises where there are none: so leave it to ATen, unless all sizes are positive."""
        results = self.node.meta["val"]
        fake = results[0] if isinstance(results, tuple | list) else results
        if not all(torch_api.surely_positive(size, fake) for size in sizes):
            raise LeftToATen("of nothing")

    # ---- nests ----

    def pointwise(
        self, body: Expr, meta: TensorMeta | None = None, exact: bool = False
    ) -> TensorValue:
        """A nest that fills a new buffer with `body` over the axes of its shape; `exact` leaves
        gaps in memory where `meta` has them."""
        meta = meta or self.result
        if not exact and (split := self.groups.split(body, meta.shape, meta.stride, meta.device)):
            body, shape, stride = split
            made = self.pointwise(body, replace(meta, shape=shape, stride=stride))
            return self.groups.whole(made, meta.shape)
        axes = axes_of(meta.shape)
        body = self._over(axes, self.convert(body, meta.dtype))
        buffer = self._new(meta, BufferKind.COMPUTED, exact)
        self.steps.append(Pointwise(buffer.name, axes, body, self.origins))
        return TensorValue.of(buffer)

    def rounded(self, value: TensorValue, meta: TensorMeta) -> TensorValue:
        """An intermediate of the shape of `meta` in its dtype; itself if it has that."""
        if value.dtype == meta.dtype:
            return value
        return self.pointwise(self.load(value, identity(meta.shape)), meta)

    def reduction(
        self, kind: str, body: Expr, reduce_axes: tuple[Axis, ...], meta: TensorMeta
    ) -> TensorValue:
        """A nest that reduces `body` over `reduce_axes` for each element of `meta.shape`."""
        buffer = self._new(meta, BufferKind.COMPUTED)
        axes = axes_of(meta.shape)
        body = self._over((*axes, *reduce_axes), body)
        self.steps.append(Reduction(buffer.name, axes, reduce_axes, kind, body, self.origins))
        return TensorValue.of(buffer)

    def scan(self, kind: str, body: Expr, dim: int, meta: TensorMeta) -> TensorValue:
        """A nest that fills a new buffer with `body` accumulated along one dimension."""
        buffer = self._new(meta, BufferKind.COMPUTED)
        axes = axes_of(meta.shape)
        body = self._over(axes, body)
        self.steps.append(Scan(buffer.name, axes, axes[dim], kind, body, self.origins))
        return TensorValue.of(buffer)

    def scatter(
        self, base: TensorValue, shape: tuple[Size, ...], index: tuple[Index, ...], kind: str,
        body: Expr, distinct: bool = False,
    ) -> TensorValue:  # fmt: skip
        """`base` with `body` put at `index` for all points of `shape`, which have places of their
        own if they are `distinct`.

        `base` must be a view of a buffer that was computed for this alone, and is continued.
        """
        if any(is_int(size, 0) for size in shape):
            return base
        old = self.buffers[base.buffer]
        meta = TensorMeta(old.layout.size, old.layout.stride, old.dtype, old.device)
        buffer = self._new(meta, BufferKind.COMPUTED, exact=True)
        axes, body = axes_of(shape), self._in_range(base, index, self.convert(body, old.dtype))
        at = load(base, index).index
        step = Scatter(buffer.name, old.name, axes, at, kind, body, self.origins, distinct)
        alone = all(is_int(axis.size, 1) or axis in step.apart for axis in axes)
        self.steps.append(replace(step, distinct=distinct or alone))
        if (part := self.parts.get(old.name)) is not None:
            self.parts[buffer.name] = Part(old.name, {*part.views})
        return replace(base, buffer=buffer.name)

    def _over(self, axes: tuple[Axis, ...], body: Expr) -> Expr:
        """The body over `axes`; a constant where these are empty, for a load might be hoisted out
        of the loops that never run, and read memory that does not exist."""
        nothing = any(is_int(axis.size, 0) for axis in axes)
        return self.const(0, body.dtype) if nothing else body

    def copy(
        self, value: TensorValue, meta: TensorMeta | None = None, exact: bool = False
    ) -> TensorValue:
        """The elements of a view in a buffer of their own (row-major without `meta`), as
        `pointwise`."""
        if meta is None:
            stride = Layout.contiguous(value.shape).stride
            meta = TensorMeta(value.shape, stride, value.dtype, value.device)
        if value.dtype not in ELEMENTS:
            return self._copied_by_library(value, meta)
        return self.pointwise(self.load(value, identity(meta.shape)), meta, exact)

    def whole_copy(self, value: TensorValue) -> TensorValue:
        """The same view of a copy of its buffer, which a write may continue."""
        whole = TensorValue.of(self.buffers[value.buffer])
        layout = self.buffers[value.buffer].layout
        meta = TensorMeta(layout.size, layout.stride, whole.dtype, whole.device)
        made = self.copy(whole, meta, exact=True)
        self.parts[made.buffer] = Part(value.buffer, {value.index}, copy=True)
        return replace(value, buffer=made.buffer)

    def _copied_by_library(self, value: TensorValue, meta: TensorMeta) -> TensorValue:
        """A copy of what nests cannot hold."""
        layout = layout_of(value, self.buffers[value.buffer])
        assert layout is not None, "such a tensor is viewed only where strides describe the view"
        view, how = BufferView(value.buffer, layout), {"memory_format": torch.contiguous_format}
        (made,) = self.extern("aten.clone.default", (view,), how, [meta])
        assert made is not None
        return made

    # ---- extern calls ----

    def extern(
        self, op: str, args: Sequence[ExternArg], kwargs: dict[str, ExternArg] | None = None,
        outputs: Sequence[TensorMeta | Any] | None = None, reason: str = "library",
        copies: Sequence[TensorValue] = (),
    ) -> tuple[TensorValue | Any, ...]:  # fmt: skip
        """A call of a library; one value for each output (None where the op returns none), and one
        for each of the `copies` that it writes to.

        An output that is an unbound symbol is a number that the call returns, and is bound by it.
        """
        results = self.results if outputs is None else outputs
        kind = BufferKind.EXTERN
        made = [self._new(f, kind, True) if isinstance(f, TensorMeta) else None for f in results]
        unbound = {f for f in results if isinstance(f, sympy.Symbol)} - self.symbols
        numbers = tuple(f if f in unbound else None for f in results) if unbound else ()
        self._bind(unbound)
        olds = [self.buffers[copy.buffer] for copy in copies]
        news = [self._new(TensorMeta(o.layout.size, o.layout.stride, o.dtype, o.device), kind, True)
                for o in olds]  # fmt: skip
        bases = tuple((new.name, old.name) for new, old in zip(news, olds, strict=True))
        names = tuple(b.name if b else None for b in (*made, *news))
        named = tuple((kwargs or {}).items())
        call = ExternCall(names, op, tuple(args), named, reason, self.origins, numbers, bases)
        self.steps.append(call)
        found = (TensorValue.of(b) if b else f for b, f in zip(made, results, strict=True))
        continued = (replace(c, buffer=b.name) for c, b in zip(copies, news, strict=True))
        return (*found, *continued)

    def number(
        self, op: str, args: Sequence[ExternArg], symbol: sympy.Symbol | None = None
    ) -> sympy.Symbol:
        """A call that tells a number when the program runs; its symbol, if none is given that of
        an equal call, or a new one."""
        calls = [step for step in self.steps if isinstance(step, ExternCall) and any(step.numbers)]
        known = (step.numbers[0] for step in calls if (step.op, step.args) == (op, tuple(args)))
        if symbol is None and (found := next(known, None)) is not None:
            return found
        symbol = symbol or sympy.Symbol(f"{self.node.name}_at{len(calls) or ''}", integer=True)
        self.extern(op, args, None, [symbol], "number")
        return symbol

    def is_sure(self, number: Size, first: Size, end: Size) -> bool:
        """Is `first <= number < end` for all values that the symbols may have?"""
        return self._holds(sympy.Ge(number, first)) and self._holds(sympy.Lt(number, end))

    def _holds(self, test: sympy.Basic) -> bool:
        found = self.node.meta["val"]
        return torch_api.is_sure(test, found[0] if isinstance(found, tuple | list) else found)

    def require(self, test: sympy.Basic, otherwise: str) -> None:
        """Unless it is sure, let the host program test it, and raise RuntimeError."""
        if not self._holds(test):
            self.check(test, otherwise)

    def check(self, test: sympy.Basic, otherwise: str) -> None:
        """As `require`, also where torch takes it to be sure."""
        self.extern(ASSERTION, (test, otherwise), None, [None], "assertion")

    def _bind(self, symbols: set[sympy.Symbol]) -> None:
        self.unbacked |= symbols - self.symbols
        self.symbols |= symbols

    def strided(self, value: TensorValue) -> tuple[TensorValue, Layout]:
        """The value and its strides in its buffer; a copy is made where no strides describe it."""
        layout = layout_of(value, self.buffers[value.buffer])
        if layout is None:
            value = self.copy(value, exact=True)
            layout = self.buffers[value.buffer].layout
        return value, layout

    # ---- buffers ----

    def _new(self, meta: TensorMeta, kind: BufferKind, exact: bool = False) -> Buffer:
        if kind is BufferKind.EXTERN:
            self._bind({size for size in meta.shape if isinstance(size, sympy.Symbol)})
        unknown = symbols_in(meta.shape) - self.symbols
        if unknown:
            raise LabError(
                "cannot compile a tensor whose size depends on the values of another",
                source_line(self.node),
                "keep it out of the compiled function, for instance with torch.compiler.disable",
            )
        name = f"buf{self._computed}"
        self._computed += 1
        layout = meta.exact_layout if exact else meta.layout
        buffer = Buffer(name, kind, meta.dtype, meta.device, layout, self.origins)
        self.buffers[name] = buffer
        return buffer

    def given(self, name: str, kind: BufferKind, fake: torch.Tensor) -> TensorValue:
        """The buffer of an input or a constant."""
        meta = TensorMeta.of(fake)
        layout = Layout(meta.shape, meta.stride)
        self.symbols |= symbols_in((*meta.shape, *meta.stride))
        buffer = Buffer(name, kind, meta.dtype, meta.device, layout, self.origins)
        self.buffers[name] = buffer
        return TensorValue.of(buffer)
