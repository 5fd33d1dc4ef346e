"""The interface of lowerings: it makes expressions, nests, extern calls and buffers.

One `Builder` serves one graph.  All objects that it makes are frozen; all state that changes during
lowering (the list of steps, the buffers, the current node) is in the builder.

Inductor: `GraphLowering` in `graph.py` with the globals of `virtualized.V`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy
import torch

from inductor_lab.compiler.base.errors import LabError, LeftToATen
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.span import innermost
from inductor_lab.compiler.ir.effects import LIBRARY, OF_NOTHING, Reason
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
from inductor_lab.compiler.lower.chains import Chains, ChangedCopy
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
    """Shape, strides, dtype and device of a node's result, from its fake tensor."""

    shape: tuple[Size, ...]
    stride: tuple[Size, ...]
    dtype: torch.dtype
    device: str
    sparse: bool = False

    @staticmethod
    def of(fake: torch.Tensor) -> TensorMeta:
        shape, stride = tuple(fake.shape), fake.stride()
        if not all(type(s) is int for s in (*shape, *stride)):
            # a size that a guard specializes to 1 broadcasts like a literal 1
            shape = tuple(1 if torch_api.surely_one(s) else size_of(s) for s in shape)
            stride = tuple(stride_of(s, shape) for s in stride)
        sparse = fake.layout is not torch.strided
        return TensorMeta(shape, stride, fake.dtype, str(fake.device), sparse)

    @property
    def layout(self) -> Layout:
        """Its strides if they cover memory without gaps or overlap, otherwise row-major."""
        layout = Layout(self.shape, self.stride)
        empty = any(is_int(size, 0) for size in self.shape)
        return layout if empty or is_dense(layout) else Layout.contiguous(self.shape)

    @property
    def exact_layout(self) -> Layout:
        """Its strides, including gaps, unless elements share memory."""
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

    torch writes `Max(1, s0)` for the length s0 of a row, so that a stride is not 0 if s0 is 0.  The
    tensor is then empty, so it becomes s0 here, as in products of sizes.  A user's maximum stays.
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
    """The user's line that a node came from, with its location; "" if it is unknown."""
    span = innermost(node.meta.get("stack_trace") or "")
    return f"{span.code}        {span}" if span else ""


def wrapped(value: int, dtype: torch.dtype) -> int:
    """An int wrapped to the range of an integer dtype: -1 is 255 in uint8."""
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
    """Collects the steps and buffers of one graph; see the module."""

    def __init__(self, name: str, options: Options) -> None:
        self.name, self.options = name, options
        self.buffers: dict[str, Buffer] = {}
        self.constants: dict[str, torch.Tensor] = {}
        self.steps: list[Step] = []
        self.groups = Groups(self.steps, options)
        self.values: dict[torch.fx.Node, Any] = {}  # the value of each node
        self.node: torch.fx.Node  # the current node, set by `begin`
        self.origins: Origins = NO_ORIGINS
        self.symbols: set[sympy.Symbol] = set()
        self.unbacked: set[sympy.Symbol] = set()
        """Symbols that a step of the program binds."""
        self.numbers: dict[sympy.Symbol, TensorValue] = {}
        """Symbol → the tensor that its value is read from."""
        self.chains = Chains(frozenset(), {})
        self.parts: dict[str, ChangedCopy] = {}
        """Buffers that are a changed copy of another buffer."""
        self.partial_writes: list[PartialWrite] = []
        self.randoms: dict[str, tuple[TensorValue, Size]] = {}
        """Device → its seed, and the number of random numbers drawn with it so far."""
        self._computed = 0
        self._result: TensorMeta | None = None

    def begin(self, node: torch.fx.Node) -> None:
        """Sets `node` as the origin of everything that is made from now on."""
        self.node, self.origins = node, frozenset((node.name,))
        self._result = None

    # ---- the current node ----

    @property
    def result(self) -> TensorMeta:
        """The meta data of the node's (only) tensor result."""
        if self._result is None:
            self._result = TensorMeta.of(self.node.meta["val"])
        return self._result

    @property
    def results(self) -> tuple[TensorMeta | Any, ...]:
        """The meta data of each result of a node that returns several; numbers are expressions."""
        found = self.node.meta.get("val")
        found = found if isinstance(found, tuple | list) else (found,)
        return tuple(
            TensorMeta.of(f) if isinstance(f, torch.Tensor) else torch_api.expression_of(f)
            for f in found
        )

    @property
    def tensors(self) -> tuple[TensorMeta, ...]:
        """The meta data of the node's tensor results."""
        return tuple(meta for meta in self.results if isinstance(meta, TensorMeta))

    @property
    def device(self) -> str:
        """The device of the node's first result."""
        return self.tensors[0].device

    # ---- expressions ----

    def op(self, name: str, *args: Expr) -> Expr:
        """One operation on operands that already have their common dtype."""
        dtype = torch.bool if name in PREDICATES else args[-1].dtype
        return Op(name, args, dtype, self.origins)

    def convert(self, expr: Expr, dtype: torch.dtype) -> Expr:
        """`expr` in another dtype; unchanged if it has that dtype.  A literal stays a literal."""
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
        """A number that a tensor holds, as a load.  Python computes other numbers as in eager mode,
        and the host program stores them in a tensor."""
        value, device = self.numbers.get(wanted), self.device
        dtype = torch.bool if isinstance(wanted, Test) else torch.float64
        if value is None or value.device != device:
            kind = {"dtype": dtype, "device": torch.device(device)}
            meta = TensorMeta((), (), dtype, device)
            (value,) = self.extern(SCALAR, (wanted,), kind, [meta], "number")
            assert value is not None
        return self.convert(self.load(value, ()), dtype)

    def gather(self, value: TensorValue, at: Sequence[Index]) -> Expr:
        """`load` at loaded positions."""
        return self._in_range(value, at, self.load(value, at))

    def _in_range(self, value: TensorValue, at: Sequence[Index], body: Expr) -> Expr:
        """`body`, the element of `value` at `at`.  A loaded position in a broadcast dimension may
        be out of range, so it is evaluated separately."""
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
        """Leaves the operator to ATen, which may raise, unless all sizes are surely positive."""
        results = self.node.meta["val"]
        fake = results[0] if isinstance(results, tuple | list) else results
        if not all(torch_api.surely_positive(size, fake) for size in sizes):
            raise LeftToATen(OF_NOTHING)

    # ---- nests ----

    def pointwise(
        self, body: Expr, meta: TensorMeta | None = None, exact: bool = False
    ) -> TensorValue:
        """A nest that fills a new buffer with `body` over the axes of its shape; `exact` keeps the
        gaps in memory of `meta`."""
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
        """An intermediate with the shape of `meta`, converted to the dtype of `meta`."""
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
        """`base`, a buffer that was computed only for this write, with `body` stored at `index` for
        all points of `shape`; `distinct` says that no two points store to one place."""
        if any(is_int(size, 0) for size in shape):
            return base
        old = self.buffers[base.buffer]
        meta = TensorMeta(old.layout.size, old.layout.stride, old.dtype, old.device)
        buffer = self._new(meta, BufferKind.COMPUTED, exact=True)
        axes, body = axes_of(shape), self._in_range(base, index, self.convert(body, old.dtype))
        at = load(base, index).index
        step = Scatter(buffer.name, old.name, axes, at, kind, body, self.origins, distinct)
        alone = all(is_int(axis.size, 1) or axis in step.disjoint_axes for axis in axes)
        self.steps.append(replace(step, distinct=distinct or alone))
        if (part := self.parts.get(old.name)) is not None:
            self.parts[buffer.name] = ChangedCopy(old.name, {*part.views})
        return replace(base, buffer=buffer.name)

    def _over(self, axes: tuple[Axis, ...], body: Expr) -> Expr:
        """The body over `axes`; a constant if these are empty, so that no load is hoisted out of
        loops that never run."""
        nothing = any(is_int(axis.size, 0) for axis in axes)
        return self.const(0, body.dtype) if nothing else body

    def copy(
        self, value: TensorValue, meta: TensorMeta | None = None, exact: bool = False
    ) -> TensorValue:
        """The elements of a view in a new buffer (row-major without `meta`), as in `pointwise`."""
        if meta is None:
            stride = Layout.contiguous(value.shape).stride
            meta = TensorMeta(value.shape, stride, value.dtype, value.device)
        if value.dtype not in ELEMENTS:
            return self._copied_by_library(value, meta)
        return self.pointwise(self.load(value, identity(meta.shape)), meta, exact)

    def copy_buffer(self, value: TensorValue) -> TensorValue:
        """The same view of a copy of its buffer; a write may overwrite the copy."""
        whole = TensorValue.of(self.buffers[value.buffer])
        layout = self.buffers[value.buffer].layout
        meta = TensorMeta(layout.size, layout.stride, whole.dtype, whole.device)
        made = self.copy(whole, meta, exact=True)
        self.parts[made.buffer] = ChangedCopy(value.buffer, {value.index}, copy=True)
        return replace(value, buffer=made.buffer)

    def _copied_by_library(self, value: TensorValue, meta: TensorMeta) -> TensorValue:
        """A copy of a tensor that loop nests do not support."""
        layout = layout_of(value, self.buffers[value.buffer])
        assert layout is not None, "views of such tensors always have strides"
        view, how = BufferView(value.buffer, layout), {"memory_format": torch.contiguous_format}
        (made,) = self.extern("aten.clone.default", (view,), how, [meta])
        assert made is not None
        return made

    # ---- extern calls ----

    def extern(
        self, op: str, args: Sequence[ExternArg], kwargs: dict[str, ExternArg] | None = None,
        outputs: Sequence[TensorMeta | Any] | None = None, reason: Reason | str = LIBRARY,
        copies: Sequence[TensorValue] = (),
    ) -> tuple[TensorValue | Any, ...]:  # fmt: skip
        """A library call; its outputs (None if there is none), then the `copies` that it writes to.

        An output that is an unbound symbol is a number that the call returns and binds.
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
        why = Reason.of(reason)
        call = ExternCall(
            names, op, tuple(args), named, why.text, self.origins, numbers, bases, why.effect
        )
        self.steps.append(call)
        found = (TensorValue.of(b) if b else f for b, f in zip(made, results, strict=True))
        continued = (replace(c, buffer=b.name) for c, b in zip(copies, news, strict=True))
        return (*found, *continued)

    def number(
        self, op: str, args: Sequence[ExternArg], symbol: sympy.Symbol | None = None
    ) -> sympy.Symbol:
        """A call that returns a number at run time, as a symbol; equal calls share one."""
        calls = [step for step in self.steps if isinstance(step, ExternCall) and any(step.numbers)]
        known = (step.numbers[0] for step in calls if (step.op, step.args) == (op, tuple(args)))
        if symbol is None and (found := next(known, None)) is not None:
            return found
        symbol = symbol or sympy.Symbol(f"{self.node.name}_at{len(calls) or ''}", integer=True)
        self.extern(op, args, None, [symbol], "number")
        return symbol

    def is_sure(self, number: Size, first: Size, end: Size) -> bool:
        """Is `first <= number < end` for all values of the symbols?"""
        return self._holds(sympy.Ge(number, first)) and self._holds(sympy.Lt(number, end))

    def _holds(self, test: sympy.Basic) -> bool:
        found = self.node.meta["val"]
        return torch_api.is_sure(test, found[0] if isinstance(found, tuple | list) else found)

    def require(self, test: sympy.Basic, otherwise: str) -> None:
        """The host program raises RuntimeError if the test is false; no test if it is surely
        true."""
        if not self._holds(test):
            self.check(test, otherwise)

    def check(self, test: sympy.Basic, otherwise: str) -> None:
        """As `require`, but it also tests what torch assumes to be true."""
        self.extern(ASSERTION, (test, otherwise), None, [None], "assertion")

    def _bind(self, symbols: set[sympy.Symbol]) -> None:
        self.unbacked |= symbols - self.symbols
        self.symbols |= symbols

    def strided(self, value: TensorValue) -> tuple[TensorValue, Layout]:
        """The value and its strides in its buffer; a copy if strides cannot describe it."""
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
