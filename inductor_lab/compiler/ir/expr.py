"""The body of a loop nest: a frozen expression tree over loads, constants and operations.

Printing it, counting its operations, rendering it as C++ or Triton, and interpreting it are one
`match` each.  Equality ignores origins (the FX nodes that a value came from), so equal computations
of different nodes are equal.  Inner nodes store their hash (`hashed`): trees share subtrees, and
computing the hash from the leaves each time would take exponential time.

Inductor: the `ops.*` handlers called by `inner_fn` closures (`virtualized.py`, `loop_body.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from inductor_lab.compiler.ir.index import Axis, Gathered, Index, Size
from inductor_lab.compiler.ir.ops import DIVIDING
from inductor_lab.compiler.ir.value import Value
from inductor_lab.compiler.torch_door.torch_types import torch

Origins: TypeAlias = frozenset[str]
"""Names of FX nodes, in the graph that was lowered."""

NO_ORIGINS: Origins = frozenset()


class _Tree(Value):
    """The methods of all expressions; subclasses are frozen dataclasses with a `dtype`."""

    __slots__ = ()

    def children(self) -> tuple[Expr, ...]:
        return ()

    def indices(self) -> tuple[Index, ...]:
        """The indices of this node, without those of its descendants."""
        return ()

    def walk(self) -> Iterator[Expr]:
        """This node and its descendants, including the values inside gathered indices.

        A subtree that several nodes share (the same object) is visited once.
        """
        seen: set[int] = set()
        waiting = [cast("Expr", self)]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            if below := node.children():
                waiting.extend(reversed(below))
            if places := node.indices():
                gathered = [value for index in places for value in values_in(index)]
                waiting.extend(reversed(gathered))

    def loads(self) -> Iterator[Load]:
        return (node for node in self.walk() if isinstance(node, Load))

    def axes(self) -> Iterator[Axis]:
        for node in self.walk():
            for index in node.indices():
                yield from index.axes()

    def substitute(self, axes: Mapping[Axis, Index]) -> Expr:
        """The same value at another place: every axis is replaced by the given index."""
        axes = {axis: at for axis, at in axes.items() if at != Index.of(axis)}
        if not axes:
            return cast("Expr", self)
        done: dict[int, Expr] = {}

        def rebuild(node: Expr) -> Expr:
            if id(node) not in done:
                done[id(node)] = map_expr(node, rebuild, lambda i: i.substitute(axes, rebuild))
            return done[id(node)]

        return rebuild(cast("Expr", self))


@dataclass(frozen=True, slots=True)
class Load(_Tree):
    """`buffer[index]`, one index for each dimension of the buffer."""

    buffer: str
    index: tuple[Index, ...]
    dtype: torch.dtype
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    hashed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hashed", hash((self.buffer, self.index, self.dtype)))

    def __hash__(self) -> int:
        return self.hashed

    def indices(self) -> tuple[Index, ...]:
        return self.index


@dataclass(frozen=True, slots=True)
class Const(_Tree):
    """A literal.  0.0 and -0.0 differ, 1 and True differ, and NaN equals itself."""

    value: int | float | bool
    dtype: torch.dtype
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", repr(self.value))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return False
        return (self.key, self.dtype) == (other.key, other.dtype)

    def __hash__(self) -> int:
        return hash((self.key, self.dtype))


@dataclass(frozen=True, slots=True)
class SizeValue(_Tree):
    """A size of the program used as a number (such as the N of a mean over N elements)."""

    size: Size
    dtype: torch.dtype


def size_value(size: Size) -> Const | SizeValue:
    """A size as an int64."""
    return Const(size, torch.int64) if isinstance(size, int) else SizeValue(size, torch.int64)


@dataclass(frozen=True, slots=True)
class IndexValue(_Tree):
    """A position used as a number (arange, tril, the bounds check of a pad)."""

    index: Index
    dtype: torch.dtype

    def indices(self) -> tuple[Index, ...]:
        return (self.index,)


@dataclass(frozen=True, slots=True)
class Op(_Tree):
    """One scalar operation; `ir/ops.py` lists the names and their meanings.

    Operands already have the dtype that the operation computes in.  Promotion is an explicit
    `convert` (an `Op` with one argument and the target as its dtype).
    """

    name: str
    args: tuple[Expr, ...]
    dtype: torch.dtype
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    hashed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hashed", hash((self.name, self.args, self.dtype)))

    def __hash__(self) -> int:
        return self.hashed

    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Masked(_Tree):
    """`body` where `mask` is true, otherwise `other`.  `body` loads from memory only where `mask`
    is true, so its indices may be out of range elsewhere."""

    mask: Expr
    body: Expr
    other: Expr
    origins: Origins = field(default=NO_ORIGINS, compare=False)
    hashed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hashed", hash((self.mask, self.body, self.other)))

    def __hash__(self) -> int:
        return self.hashed

    def children(self) -> tuple[Expr, ...]:
        return self.mask, self.body, self.other

    @property
    def dtype(self) -> torch.dtype:
        return self.body.dtype


@dataclass(frozen=True, slots=True)
class Temp(_Tree):
    """A named value that was computed before.  It appears only in loop trees
    (`codegen/tree/loop_tree.py`)."""

    name: str
    dtype: torch.dtype


Expr: TypeAlias = Load | Const | SizeValue | IndexValue | Op | Masked | Temp


def integer_divisors(expr: Expr) -> Iterator[tuple[Expr, Origins]]:
    """The divisors of integer divisions, without nonzero literals, and their origins."""
    for node in expr.walk():
        if isinstance(node, Op) and node.name in DIVIDING:
            by = node.args[1]
            whole = not (by.dtype.is_floating_point or by.dtype is torch.bool)
            if whole and not (isinstance(by, Const) and by.value != 0):
                yield by, node.origins


def map_expr(
    expr: Expr, on_child: Callable[[Expr], Expr], on_index: Callable[[Index], Index]
) -> Expr:
    """Rebuild one node with its children and indices mapped.

    If nothing changes, the node itself is returned, so that shared subtrees stay shared.
    """
    match expr:
        case Load(buffer, index, dtype, origins):
            places = tuple(map(on_index, index))
            return expr if _same(places, index) else Load(buffer, places, dtype, origins)
        case IndexValue(place, dtype):
            moved = on_index(place)
            return expr if moved is place else IndexValue(moved, dtype)
        case Op(name, args, dtype, origins):
            values = tuple(map(on_child, args))
            return expr if _same(values, args) else Op(name, values, dtype, origins)
        case Masked(mask, body, other, origins):
            parts = (on_child(mask), on_child(body), on_child(other))
            return expr if _same(parts, (mask, body, other)) else Masked(*parts, origins)
        case _:
            return expr


def _same(new: tuple[object, ...], old: tuple[object, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def values_in(index: Index) -> Iterator[Expr]:
    """The topmost expressions inside the gathered atoms of an index."""
    for atom, _ in index.terms:
        if isinstance(atom, Gathered):
            yield atom.value
        elif not isinstance(atom, Axis):
            yield from values_in(atom.dividend)
