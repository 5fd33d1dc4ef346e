"""A program of loop nests: the form of a graph before fusion.

A computed buffer is a function from indices to values: the nest that computes `buf` has one axis
for each dimension of `buf` and stores at exactly these axes.  So a consumer's `Load("buf", e)` can
always be replaced by the body of `buf` with its axes set to `e`; this is inlining.  An op lowers to
one nest and a view to none, so before fusion a program has the cost of eager mode.

Inductor: `GraphLowering`, `ir.ComputedBuffer`, `ir.Pointwise`, `ir.Reduction`, `ir.ExternKernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import sympy

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.operations import perform
from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.ir.expr import NO_ORIGINS, Expr, Origins, SizeValue, values_in
from inductor_lab.compiler.ir.index import (
    Axis,
    Index,
    Quotient,
    Remainder,
    Size,
    add_sizes,
    dot,
    mul_sizes,
    never_equal,
    product,
    sizes_in,
)
from inductor_lab.compiler.ir.value import Value
from inductor_lab.compiler.torch_door.torch_types import torch


class BufferKind(Enum):
    """What fills a buffer: the caller, the compiler, a nest or an extern call."""

    INPUT = "input"
    CONSTANT = "constant"
    COMPUTED = "computed"
    EXTERN = "extern"


@dataclass(frozen=True, slots=True)
class Layout(Value):
    """Sizes and strides in elements; element `i` is at `offset + sum(i[d] * stride[d])`."""

    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    offset: Size = 0

    @staticmethod
    def contiguous(size: tuple[Size, ...]) -> Layout:
        strides: list[Size] = []
        step: Size = 1
        for length in reversed(size):
            strides.append(step)
            step = mul_sizes(step, length)
        return Layout(size, tuple(reversed(strides)))

    @property
    def numel(self) -> Size:
        return product(self.size)

    @property
    def storage_size(self) -> Size:
        """Elements from the start of the storage to the last element, inclusive."""
        reach = add_sizes(self.offset, 1)
        for size, stride in zip(self.size, self.stride, strict=True):
            reach = add_sizes(reach, mul_sizes(add_sizes(size, -1), stride))
        return reach

    def element(self, place: Sequence[Index]) -> Index:
        """The offset in the storage of the element at `place`, which has one index for each
        dimension."""
        return dot(place, self.stride, self.offset)


@dataclass(frozen=True, slots=True)
class Buffer(Value):
    """Named storage on one device (`"cpu"`, `"cuda:0"`)."""

    name: str
    kind: BufferKind
    dtype: torch.dtype
    device: str
    layout: Layout
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class BufferView:
    """The strided view `layout` of a buffer's storage, as in `torch.as_strided`.

    `layout.offset` counts from the start of the buffer's own storage area (a buffer that is an
    input tensor with a storage offset starts at the first element of that tensor).
    """

    buffer: str
    layout: Layout


class _WithoutReduction(Value):
    """A nest whose only loops are those over `axes`."""

    __slots__ = ()
    body: Expr

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        return ()

    @property
    def roots(self) -> tuple[Expr, ...]:
        return (self.body,)


@dataclass(frozen=True, slots=True)
class Pointwise(_WithoutReduction):
    """`buffer[axes] = body` for all axes."""

    buffer: str
    axes: tuple[Axis, ...]
    body: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)

    def at(self, place: Sequence[Index]) -> Expr:
        """The value of `buffer[place]`: inlining replaces a load by it."""
        return self.body.substitute(dict(zip(self.axes, place, strict=True)))


@dataclass(frozen=True, slots=True)
class Reduction:
    """`buffer[axes] = kind over reduce_axes of body`; kinds are `ir.ops.REDUCTIONS`.

    It accumulates in `body.dtype`; positions (`ir.ops.POSITIONS`) are int64.
    """

    buffer: str
    axes: tuple[Axis, ...]
    reduce_axes: tuple[Axis, ...]
    kind: str
    body: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)

    @property
    def roots(self) -> tuple[Expr, ...]:
        return (self.body,)


@dataclass(frozen=True, slots=True)
class Scan(_WithoutReduction):
    """`buffer[axes] = kind of body over the places up to here along `axis``, which is in `axes`.

    It accumulates in `body.dtype`; an element is rounded to the buffer's dtype when it is stored or
    read.  Kinds are `ir.ops.SCANS`.
    """

    buffer: str
    axes: tuple[Axis, ...]
    axis: Axis
    kind: str
    body: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)


@dataclass(frozen=True, slots=True)
class Scatter(_WithoutReduction):
    """`buffer = base`, then for all points of `axes` in row-major order `buffer[index] kind= body`.

    `index` has one entry for each dimension of the buffer; computed places are gathered values.
    Kinds are `ir.ops.SCATTERS`; if several points store to one place, the last one wins.  `base` is
    a buffer of the same layout.  The scatter writes to its storage without a copy, so no later step
    reads `base`.  An input may be a base if the graph writes to it.  `distinct` says that no two
    points have the same place.
    """

    buffer: str
    base: str
    axes: tuple[Axis, ...]
    index: tuple[Index, ...]
    kind: str
    body: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    distinct: bool = False

    @property
    def roots(self) -> tuple[Expr, ...]:
        """The body, and the values in the index."""
        return (self.body, *(value for index in self.index for value in values_in(index)))

    @property
    def disjoint_axes(self) -> tuple[Axis, ...]:
        """Axes along which no two points write to the same place.

        These are all axes if the points are distinct.  Otherwise they are the axes that are the
        only term of some dimension's index, or that appear as quotient and remainder in two
        dimensions.
        """
        if self.distinct:
            return self.axes
        alone = {index.terms[0][0] for index in self.index if len(index.terms) == 1}
        whole = {atom.dividend.as_axis() for atom in alone if isinstance(atom, Quotient)
                 and Remainder(atom.dividend, atom.divisor) in alone}  # fmt: skip
        return tuple(axis for axis in self.axes if axis in alone or axis in whole)

    def may_read(self, places: Iterable[Sequence[Index]]) -> bool:
        """May the body read the buffer that it writes to at these places?

        It may read places that are never written, or the place that this point writes, if no other
        point writes it.
        """
        other = (at for at in places if not (self.distinct and tuple(at) == self.index))
        return all(never_equal(at, self.index) for at in other)

    def rewritten(self, value: Callable[[Expr], Expr]) -> Scatter:
        """The scatter with its body and the values in its index mapped by `value`."""
        index = tuple(index.substitute({}, value) for index in self.index)
        return replace(self, body=value(self.body), index=index)


Nest: TypeAlias = Pointwise | Reduction | Scan | Scatter
"""`roots` are the expressions that a nest evaluates."""


@dataclass(frozen=True, slots=True)
class Callee:
    """A function as an argument of an extern call, by its name in `LoopProgram.callees`."""

    name: str

    def __str__(self) -> str:
        return self.name


ExternArg: TypeAlias = Any
"""BufferView, a tuple of arguments, Size, int, float, bool, str, None, torch.dtype,
torch.device, torch.layout, torch.memory_format or Callee."""


@dataclass(frozen=True, slots=True)
class ExternCall:
    """A library call: `outputs = op(*args, **kwargs)`.

    `op` is the overload's qualified name (`"aten.mm.default"`).  `outputs` has one buffer name for
    each tensor that the op returns; None if the op returns None or the result is unused.  `reason`
    says why there is no generated code: `"library"` (matmul, convolution, attention: on purpose),
    `"no lowering"` or another short phrase that `c.coverage` shows.  If results are numbers that
    are unknown before the call, `numbers` has an unbacked symbol for each of them and None for the
    others.

    `bases` has a pair for each argument that the call writes to: the buffer that the call computes,
    and the buffer whose storage it overwrites, as in a scatter.  These buffers come after the
    results in `outputs`.  `effect` is what the call does besides computing.
    """

    outputs: tuple[str | None, ...]
    op: str
    args: tuple[ExternArg, ...]
    kwargs: tuple[tuple[str, ExternArg], ...] = ()
    reason: str = "library"
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    numbers: tuple[sympy.Symbol | None, ...] = ()
    bases: tuple[tuple[str, str], ...] = ()
    effect: Effect = Effect.FRESH

    @property
    def may_alias(self) -> bool:
        """Could a result share storage with an argument?  Matmuls and such never do."""
        return self.effect not in (Effect.FRESH, Effect.COLLECTIVE)

    @property
    def arguments(self) -> tuple[ExternArg, ...]:
        """The values of all arguments, positional and keyword."""
        return (*self.args, *(value for _, value in self.kwargs))

    @property
    def views(self) -> tuple[BufferView, ...]:
        """Every buffer view among the arguments, at any depth."""
        return tuple(view for argument in self.arguments for view in views_in(argument))


Step: TypeAlias = Nest | ExternCall

Input: TypeAlias = str | sympy.Symbol
"""One positional argument of the graph: the name of an INPUT buffer, or a symbol (an int)."""


@dataclass(frozen=True, slots=True)
class Write:
    """A result of the graph that is the new value of an input.

    `method` is the way the input gets it: `copy_`, or `set_`, which gives the input the result's
    storage.  `returned` are the positions of the other results that are this input itself.
    """

    input: str
    method: str
    returned: tuple[int, ...] = ()


Output: TypeAlias = BufferView | Callee | int | float | bool | sympy.Expr | None
"""One result of the graph."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The reason of one rule against a write in place, or None."""

    rule: str
    kind: Literal["legality", "profit"]
    reason: str | None


@dataclass(frozen=True, slots=True)
class PartialWrite(Value):
    """The decision whether a write to a part of `base` is done in its storage; `buffer` is the
    result.

    It is done in place if no rule (`lower/passes/in_place.py`, `lower/ops/regions.py`) has a reason
    against it and the options allow it.
    """

    buffer: str
    base: str
    answers: tuple[Answer, ...]
    choice: Literal["rules", "forbidden"] = "rules"

    @property
    def in_place(self) -> bool:
        """Is the write done in the storage of `base`?"""
        return self.choice == "rules" and all(answer.reason is None for answer in self.answers)


@dataclass(frozen=True, eq=False)
class LoopProgram(Shown):
    """Steps in an order that respects data flow (each buffer is computed before it is loaded).

    `constants` holds the tensors of CONSTANT buffers, `callees` the sub-graphs and operators that
    are arguments of higher-order operators (live: they are not saved).  `writes` describe the last
    outputs, in order: the values of inputs after the graph has run.

    If `related_results` is true, results in the same storage are views of one tensor, as in eager
    mode, so a graph that continues with them may write to one.  Otherwise they are separate
    tensors.

    `partial_writes` are the decisions on writes to parts of tensors.
    """

    name: str
    inputs: tuple[Input, ...]
    buffers: Mapping[str, Buffer]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)
    callees: Mapping[str, Callable[..., Any]] = field(default_factory=dict, metadata={"live": True})
    writes: tuple[Write, ...] = ()
    related_results: bool = False
    partial_writes: tuple[PartialWrite, ...] = ()

    def __repr__(self) -> str:
        nests = counted(len(self.nests), "loop nest")
        calls = counted(len(self.steps) - len(self.nests), "extern call")
        return f"LoopProgram({self.name}: {nests}, {calls})"

    def __str__(self) -> str:
        return str(perform("program_text", self))

    @property
    def returned(self) -> tuple[Output, ...]:
        """The outputs that the function returns, without the new values of inputs."""
        return self.outputs[: len(self.outputs) - len(self.writes)]

    @property
    def written_inputs(self) -> tuple[tuple[Write, Output], ...]:
        """Each write with its value."""
        return tuple(zip(self.writes, self.outputs[len(self.returned) :], strict=True))

    @property
    def output_buffers(self) -> frozenset[str]:
        """The buffers of the outputs."""
        return frozenset(view.buffer for view in views_in(self.outputs))

    @property
    def nests(self) -> tuple[Nest, ...]:
        return tuple(step for step in self.steps if not isinstance(step, ExternCall))

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Interpret the program nest by nest with torch on the device of the tensors.

        Takes one tensor or int for each entry of `inputs`, returns the graph's outputs.  Inputs are
        not changed: their new values are among the outputs.
        """
        return tuple(perform("run_program", self, inputs))


def views_in(argument: ExternArg) -> Iterator[BufferView]:
    """Every buffer view inside an argument of an extern call."""
    if isinstance(argument, BufferView):
        yield argument
    elif isinstance(argument, tuple):
        for item in argument:
            yield from views_in(item)


def read_by(step: Step) -> frozenset[str]:
    """Names of the buffers that a step reads."""
    if isinstance(step, ExternCall):
        return frozenset(view.buffer for view in step.views)
    base = frozenset([step.base] if isinstance(step, Scatter) else ())
    return base.union(*map(_loaded, step.roots))


@lru_cache(maxsize=1 << 13)
def _loaded(expr: Expr) -> frozenset[str]:
    """Names of the buffers that a body loads; cached, because passes ask often."""
    return frozenset([load.buffer for load in expr.loads()])


def storage_bases(step: Step) -> dict[str, str]:
    """Buffers that a step computes in the storage of another buffer → that other buffer."""
    if isinstance(step, ExternCall):
        return dict(step.bases)
    return {step.buffer: step.base} if isinstance(step, Scatter) else {}


def overwritten(steps: Iterable[Step]) -> dict[str, Step]:
    """Buffers whose storage a later step overwrites → that step.  A step that reads such a buffer
    must run before it."""
    return {base: step for step in steps for base in storage_bases(step).values()}


def written_by(step: Step) -> tuple[str, ...]:
    """Names of the buffers that a step computes."""
    if isinstance(step, ExternCall):
        return tuple(name for name in step.outputs if name is not None)
    return (step.buffer,)


def symbols_of(step: Step) -> frozenset[sympy.Symbol]:
    """The symbols in the sizes and numbers of a step."""
    sizes = list(_sizes_of_call(step) if isinstance(step, ExternCall) else _sizes_of_nest(step))
    found = (size.free_symbols for size in sizes if isinstance(size, sympy.Basic))
    return frozenset[sympy.Symbol]().union(*found)


def bound_by(step: Step, buffers: Mapping[str, Buffer]) -> Iterator[sympy.Symbol]:
    """The symbols whose values a step determines: numbers that it reads from tensors, and sizes of
    what a library returns."""
    if isinstance(step, ExternCall):
        yield from filter(None, step.numbers)
        for name in written_by(step):
            yield from (s for s in buffers[name].layout.size if isinstance(s, sympy.Symbol))


def _sizes_of_call(call: ExternCall) -> Iterator[Any]:
    for view in call.views:
        yield from (*view.layout.size, *view.layout.stride, view.layout.offset)
    waiting = list(call.arguments)
    while waiting:
        argument = waiting.pop()
        if isinstance(argument, tuple):
            waiting.extend(argument)
        else:
            yield argument


def _sizes_of_nest(nest: Nest) -> Iterator[Size]:
    yield from (axis.size for axis in (*nest.axes, *nest.reduce_axes))
    yield from sizes_of(nest.body.walk())


def sizes_of(nodes: Iterable[Expr]) -> Iterator[Size]:
    """Every size in the nodes of expressions, including those in their indices."""
    for node in nodes:
        if isinstance(node, SizeValue):
            yield node.size
        for index in node.indices():
            yield from sizes_in(index)
