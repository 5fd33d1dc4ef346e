"""The loop program: buffers, loop nests, calls of ATen.  It prints, and it runs in an interpreter.

In:    nothing; this file defines the types that the other files use.
Out:   `Program`, `Nest`, `Call`, and the expressions of a loop body.

    y = (x + 1).sum(1)   ->   for i0 < 4, i1 < 6: buf0[6*i0 + i1] = add(x[6*i0 + i1], 1.0)
    x is 4 × 6                for i0 < 4: buf1[i0] = sum over i1 < 6 of buf0[6*i0 + i1]

A buffer is flat memory.  All indices are affine: `offset + c0*i0 + c1*i1 + ...`, with numbers that
are known when the program is compiled.  This is possible because all sizes are known, and because a
view of a tensor is nothing but a size, strides and an offset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree


class Affine(NamedTuple):
    """A position in flat memory: `offset + coefs[0]*i0 + coefs[1]*i1 + ...`."""

    offset: int
    coefs: tuple[int, ...]

    def __str__(self) -> str:
        terms = [f"{c}*i{k}" if c != 1 else f"i{k}" for k, c in enumerate(self.coefs) if c]
        return " + ".join([*terms, *([str(self.offset)] if self.offset or not terms else [])])

    def of_axes(self, axes: Iterable[int]) -> Affine:
        return Affine(self.offset, tuple(self.coefs[k] for k in axes))

    def bounds(self, sizes: Sequence[int]) -> tuple[int, int]:
        """The smallest and the largest value for axes of these sizes.

        >>> Affine(5, (-1, 6)).bounds((6, 4))
        (0, 23)
        """
        ends = [c * (n - 1) for c, n in zip(self.coefs, sizes, strict=True)]
        low, high = sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)
        return self.offset + low, self.offset + high


class Load(NamedTuple):
    buffer: str
    at: Affine
    dtype: torch.dtype


class Const(NamedTuple):
    value: float
    dtype: torch.dtype


class Index(NamedTuple):
    """The value of an index, as a number: `arange`."""

    at: Affine
    dtype: torch.dtype = torch.int64


class Op(NamedTuple):
    """`name` is that of a function of torch, or "cast"; `dtype` is that of the result."""

    name: str
    args: tuple[Expr, ...]
    dtype: torch.dtype


Expr = Load | Const | Index | Op


def text(expr: Expr) -> str:
    match expr:
        case Load(buffer, at):
            return f"{buffer}[{at}]"
        case Const(value):
            return str(value)
        case Index(at):
            return f"index({at})"
        case Op(name, args, dtype):
            name = f"to_{str(dtype).removeprefix('torch.')}" if name == "cast" else name
            return f"{name}({', '.join(map(text, args))})"


def rewrite(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """The expression with each load, constant and index replaced by `leaf(it)`."""
    if isinstance(expr, Op):
        return expr._replace(args=tuple(rewrite(arg, leaf) for arg in expr.args))
    return leaf(expr)


def parts(expr: Expr) -> Iterator[Expr]:
    """The expression and all expressions in it."""
    yield expr
    for arg in expr.args if isinstance(expr, Op) else ():
        yield from parts(arg)


@dataclass(frozen=True)
class Nest:
    """One loop nest: the first `kept` axes are those of the result, the others are reduced.

    Without reduced axes `reduce` is "".  Each point of the kept axes writes one element of `out`.
    """

    out: str
    sizes: tuple[int, ...]
    kept: int
    store: Affine
    reduce: str
    body: Expr

    def __str__(self) -> str:
        return self.inside(0)

    def inside(self, shared: int) -> str:
        """The text of the nest inside loops over its first axes."""
        axes = [f"i{k} < {n}" for k, n in enumerate(self.sizes)]
        over = f"{self.reduce} over {', '.join(axes[self.kept:])} of " if self.reduce else ""
        loops = f"for {', '.join(axes[shared:self.kept])}: " if self.kept > shared else ""
        return f"{loops}{self.out}[{self.store}] = {over}{text(self.body)}"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sizes[: self.kept]

    def loads(self) -> list[Load]:
        return [e for e in parts(self.body) if isinstance(e, Load)]

    def with_axes(self, sizes: Sequence[int], kept: int, f: Callable[[Affine], Affine]) -> Nest:
        """The nest with other axes; `f` converts an index to these axes."""
        def leaf(expr: Expr) -> Expr:
            return expr._replace(at=f(expr.at)) if isinstance(expr, Load | Index) else expr

        body = rewrite(self.body, leaf)
        return replace(self, sizes=tuple(sizes), kept=kept, store=f(self.store), body=body)


@dataclass(frozen=True)
class View:
    """A tensor: elements of a buffer.  A buffer itself is described by the view of all of it."""

    buffer: str
    dtype: torch.dtype
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    def __repr__(self) -> str:
        return f"{self.buffer}{list(self.size)}"

    @property
    def bytes(self) -> int:
        last = Affine(0, self.stride).bounds(self.size)[1]
        return 0 if 0 in self.size else (last + 1) * self.dtype.itemsize

    def empty(self) -> torch.Tensor:
        return torch.empty_strided(self.size, self.stride, dtype=self.dtype)

    def adopt(self, x: torch.Tensor, others: Sequence[torch.Tensor]) -> torch.Tensor:
        """The tensor, or a copy if it has other strides, or shares memory with others."""
        if x.layout != torch.strided or 0 in self.size:
            return x
        known = {y.untyped_storage().data_ptr() for y in others if y.layout == torch.strided}
        is_own = x.stride() == self.stride and x.untyped_storage().data_ptr() not in known
        return x if is_own else self.empty().copy_(x)

    def of(self, memory: torch.Tensor) -> torch.Tensor:
        return memory.as_strided(self.size, self.stride, memory.storage_offset() + self.offset)


@dataclass(frozen=True)
class Call:
    """A call of an operator that has no loops here; `outs` are the tensors of its result."""

    outs: tuple[str, ...]
    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        given = [*map(str, self.args), *(f"{name}={x}" for name, x in self.kwargs.items())]
        return f"{', '.join(self.outs)} = {self.target}({', '.join(given)})"

    def views(self) -> list[View]:
        return [x for x in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(x, View)]

    def run(self, tensors: Sequence[Any], buffers: dict[str, View]) -> list[torch.Tensor]:
        """Call the operator with tensors for its views; returns the tensors of the result.

        A result in the memory of an argument is copied, because that memory is reused; and so is
        one with other strides than the operator announced.
        """
        leaves, shape = pytree.tree_flatten((self.args, self.kwargs))
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, View) else x for x in leaves]
        args, kwargs = pytree.tree_unflatten(leaves, shape)
        found = pytree.tree_leaves(self.target(*args, **kwargs))
        outs = zip(self.outs, (x for x in found if isinstance(x, torch.Tensor)), strict=True)
        return [buffers[name].adopt(x, tensors) for name, x in outs]


Step = Nest | Call
Memory = dict[str, torch.Tensor]


def writes(step: Step) -> tuple[str, ...]:
    return (step.out,) if isinstance(step, Nest) else step.outs


def reads(step: Step) -> set[str]:
    return {each.buffer for each in (step.loads() if isinstance(step, Nest) else step.views())}


@dataclass(frozen=True)
class Program:
    """Inputs (each is a buffer, or "" for a number), buffers, constants, steps and outputs."""

    inputs: tuple[str, ...]
    buffers: dict[str, View]
    constants: dict[str, torch.Tensor]
    steps: tuple[Step, ...]
    outputs: tuple[Any, ...]

    def __str__(self) -> str:
        return "\n".join([*map(str, self.steps), f"return {list(self.outputs)}"])

    def returned(self) -> set[str]:
        return {each.buffer for each in self.outputs if isinstance(each, View)}

    def run(self, *args: Any) -> list[Any]:
        return self.interpret(self.steps, {}, args)

    @torch.no_grad()
    def interpret(self, steps: Iterable[Step], memory: Memory, args: Sequence[Any]) -> list[Any]:
        """Run steps of this program; an output that is not yet in `memory` is added to it."""
        memory |= {n: x for n, x in zip(self.inputs, args, strict=True) if n} | self.constants
        for step in steps:
            if isinstance(step, Call):
                given = [view.of(memory[view.buffer]) for view in step.views()]
                memory |= zip(step.outs, step.run(given, self.buffers), strict=True)
                continue
            out = memory.setdefault(step.out, self.buffers[step.out].empty())
            if math.prod(step.shape):
                run_nest(step, out, memory)
        return [o.of(memory[o.buffer]) if isinstance(o, View) else o for o in self.outputs]


def run_nest(nest: Nest, out: torch.Tensor, memory: Memory) -> None:
    """Interpret a nest: compute all points at once, then reduce the last axes.

    `for i0 < 2: b[i0] = sum over i1 < 3 of x[3*i0 + i1]` and x = 0, 1, 2, 3, 4, 5   ->   b = 3, 12
    """
    axes = [torch.arange(n).view(-1, *(1 for _ in nest.sizes[k + 1 :]))
            for k, n in enumerate(nest.sizes)]  # fmt: skip

    def position(at: Affine, count: int = len(axes)) -> torch.Tensor:
        terms = (c * axis for c, axis in zip(at.coefs[:count], axes[:count], strict=True))
        return sum(terms, torch.tensor(at.offset))

    def value(expr: Expr) -> torch.Tensor:
        match expr:
            case Load(buffer, at):
                return flat(memory[buffer])[position(at)]
            case Const(number, dtype):
                return torch.tensor(number, dtype=dtype)
            case Index(at, dtype):
                return position(at).to(dtype)
            case Op(name, args, dtype):
                given = [value(arg) for arg in args]
                return (given[0] if name == "cast" else getattr(torch, name)(*given)).to(dtype)

    found = value(nest.body).expand(nest.sizes)
    if nest.reduce:
        options = {"dtype": out.dtype} if nest.reduce in ("sum", "prod") else {}
        found = getattr(torch, nest.reduce)(found.reshape(*nest.shape, -1), -1, **options)
    flat(out)[position(nest.store, nest.kept).reshape(-1)] = found.reshape(-1).to(out.dtype)


def flat(x: torch.Tensor) -> torch.Tensor:
    """The memory of a tensor, from its first element to its last: a view with one axis.

    >>> flat(torch.arange(6).view(2, 3).t())
    tensor([0, 1, 2, 3, 4, 5])
    """
    extent = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    return x.as_strided((extent if x.numel() else 0,), (1,), x.storage_offset())


# What the full compiler does differently
#
# - compiler/ir/expr.py, index.py: sizes may be symbols, so one program serves all sizes; an index
#   may divide and take remainders; `Masked` and `Gathered` make `cat`, `pad`, `gather` loops too.
# - compiler/ir/program.py: `Scan` (cumsum) and `Scatter` (index_add) are nests of their own.
# - compiler/ir/verify.py: a verifier checks each program between the stages.
# - compiler/ir/interpret.py: the interpreter also checks bounds, and says which step is wrong.
