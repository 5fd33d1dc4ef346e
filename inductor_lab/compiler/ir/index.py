"""Index arithmetic: where in a buffer an element is, as a function of the loop axes.

An `Index` is a linear combination of atoms plus a constant.  Nearly always the atoms are plain
axes (`512*i0 + i1`) and all arithmetic is on Python ints; sympy is used only if a size is a
symbol.  `Quotient` and `Remainder` come from reshapes, `Gathered` from indices that are loaded
from memory (embedding, gather).

Inductor: `torch/utils/_sympy/functions.py` (FloorDiv, ModularIndexing) and `SizeVarAllocator` do
this with sympy throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, TypeAlias

import sympy

from inductor_lab.compiler.ir.value import Value

if TYPE_CHECKING:
    from inductor_lab.compiler.ir.expr import Expr

Size: TypeAlias = "int | sympy.Expr"
"""A length or stride in elements: an int, or a sympy expression over the symbols of the graph."""


@dataclass(frozen=True, slots=True)
class Axis(Value):
    """One loop variable; it runs over 0 <= name < size."""

    name: str
    size: Size


@dataclass(frozen=True, slots=True)
class Quotient(Value):
    """floor(dividend / divisor), divisor > 0."""

    dividend: Index
    divisor: Size


@dataclass(frozen=True, slots=True)
class Remainder(Value):
    """dividend mod divisor, in 0 <= r < divisor."""

    dividend: Index
    divisor: Size


@dataclass(frozen=True, slots=True)
class Gathered(Value):
    """An index that the program computes or loads, such as a token id.

    `size` is the length of the dimension it indexes.  The value is already wrapped: if the operator
    allows negative indices, its lowering has added `size` to them.
    """

    value: Expr
    size: Size


Atom: TypeAlias = "Axis | Quotient | Remainder | Gathered"


@dataclass(frozen=True, slots=True)
class Index(Value):
    """`sum(coefficient * atom) + constant`, with terms in a canonical order.

    Build one with `Index.of`, `Index.constant_of` or arithmetic; the constructor does not
    canonicalize.
    """

    terms: tuple[tuple[Atom, Size], ...]
    constant: Size

    @staticmethod
    def of(atom: Atom) -> Index:
        """The atom itself; an axis of size 1 is always 0, so it never appears in an index."""
        if isinstance(atom, Axis) and is_int(atom.size, 1):
            return ZERO
        return Index(((atom, 1),), 0)

    @staticmethod
    def constant_of(value: Size) -> Index:
        return Index((), value)

    def __add__(self, other: Index | Size) -> Index:
        if not isinstance(other, Index):
            return Index(self.terms, add_sizes(self.constant, other))
        return linear((*self.terms, *other.terms), add_sizes(self.constant, other.constant))

    def __mul__(self, factor: Size) -> Index:
        if is_int(factor, 1):
            return self
        if is_int(factor, 0):
            return ZERO
        terms = tuple((atom, mul_sizes(c, factor)) for atom, c in self.terms)
        return Index(terms, mul_sizes(self.constant, factor))

    def __sub__(self, other: Index | Size) -> Index:
        return self + (other * -1)

    def __floordiv__(self, divisor: Size) -> Index:
        """Exact floor division: multiples of the divisor are divided, and a remainder below it is
        dropped."""
        if is_int(divisor, 1):
            return self
        whole, rest = _split_multiples(self, divisor)
        if within(rest, divisor):
            return whole
        factor, large, _ = _split_small(rest, divisor)
        if factor != 1:
            return whole + large // exact_quotient(divisor, factor)
        match _only_atom(rest):
            case Quotient(dividend, inner):
                return whole + Index.of(Quotient(dividend, mul_sizes(inner, divisor)))
            case Remainder(dividend, inner) if (ratio := exact_ratio(inner, divisor)) is not None:
                return whole + (dividend // divisor) % ratio
            case _:
                return whole + Index.of(Quotient(rest, divisor))

    def __mod__(self, divisor: Size) -> Index:
        """The remainder of floor division, in 0 <= r < divisor."""
        if is_int(divisor, 1):
            return ZERO
        _, rest = _split_multiples(self, divisor)
        if within(rest, divisor):
            return rest
        factor, large, small = _split_small(rest, divisor)
        if factor != 1:
            return (large % exact_quotient(divisor, factor)) * factor + small
        match _only_atom(rest):
            case Remainder(dividend, inner) if exact_ratio(inner, divisor) is not None:
                return dividend % divisor
            case _:
                return Index.of(Remainder(rest, divisor))

    @property
    def is_affine(self) -> bool:
        return all(isinstance(atom, Axis) for atom, _ in self.terms)

    def coefficient(self, axis: Axis) -> Size:
        """The factor of `axis` among the affine terms; 0 if the axis is not in them."""
        return next((c for atom, c in self.terms if atom == axis), 0)

    def as_axis(self) -> Axis | None:
        """The axis, if this index is exactly one axis; otherwise None."""
        atom = _only_atom(self)
        return atom if isinstance(atom, Axis) else None

    def axes(self) -> Iterator[Axis]:
        """Every axis in it, also inside quotients and gathered values (an axis may repeat)."""
        for atom, _ in self.terms:
            if isinstance(atom, Axis):
                yield atom
            elif isinstance(atom, Gathered):
                yield from atom.value.axes()
            else:
                yield from atom.dividend.axes()

    def substitute(
        self, axes: Mapping[Axis, Index], value: Callable[[Expr], Expr | Index] | None = None
    ) -> Index:
        """Replace axes by indices.  `value` rewrites the expressions inside `Gathered` atoms; it
        may return an index in place of an expression.

        Without `value`, the axes in these expressions are replaced too.
        """
        if (axis := self.as_axis()) is not None:
            return axes.get(axis) or self
        total: list[tuple[Atom, Size]] = []
        constant = self.constant
        for atom, c in self.terms:
            part = _substitute_atom(atom, axes, value) * c
            total.extend(part.terms)
            constant = add_sizes(constant, part.constant)
        return linear(total, constant)

    def bounds(self) -> tuple[Size, Size] | None:
        """Smallest and largest value (inclusive) over the ranges of the axes; None if unknown."""
        low: Size = self.constant
        high: Size = self.constant
        for atom, c in self.terms:
            span = _atom_bounds(atom)
            if span is None:
                return None
            first, last = mul_sizes(span[0], c), mul_sizes(span[1], c)
            if is_negative(c):
                first, last = last, first
            elif not is_nonnegative(c):
                return None
            low, high = add_sizes(low, first), add_sizes(high, last)
        return low, high


ZERO = Index((), 0)


def linear(terms: Iterable[tuple[Atom, Size]], constant: Size) -> Index:
    """Collect like terms, join `n*(e//n) + e%n` to `e`, and put the terms in canonical order."""
    collected: dict[Atom, Size] = {}
    for atom, c in terms:
        collected[atom] = add_sizes(collected[atom], c) if atom in collected else c
    collected = {atom: c for atom, c in collected.items() if not is_int(c, 0)}
    for atom, c in collected.items():
        if isinstance(atom, Remainder):
            quotient = _only_atom(atom.dividend // atom.divisor)
            if quotient and collected.get(quotient) == mul_sizes(c, atom.divisor):
                del collected[atom], collected[quotient]
                return linear(collected.items(), constant) + atom.dividend * c
    if len(collected) > 1:
        return Index(tuple(sorted(collected.items(), key=_order)), constant)
    return Index(tuple(collected.items()), constant)


def never_equal(one: Sequence[Index], other: Sequence[Index]) -> bool:
    """Do two index tuples differ for all values of their axes?  False if that cannot be proved."""
    for here, there in zip(one, other, strict=True):
        own, others = here.bounds(), there.bounds()
        if own and others:
            gaps = (add_sizes(low, mul_sizes(high, -1)) for (low, _), (_, high) in
                    ((own, others), (others, own)))  # fmt: skip
            if any(is_nonnegative(add_sizes(gap, -1)) for gap in gaps):
                return True
    return False


def dot(place: Sequence[Index], strides: Sequence[Size], offset: Size) -> Index:
    """`offset + sum(place[d] * strides[d])`."""
    parts = [index * stride for index, stride in zip(place, strides, strict=True)]
    for part in parts:
        offset = add_sizes(offset, part.constant)
    return linear((term for part in parts for term in part.terms), offset)


def _order(term: tuple[Atom, Size]) -> tuple[int, str]:
    atom = term[0]
    return (0, atom.name) if isinstance(atom, Axis) else (1, repr(atom))


def _substitute_atom(
    atom: Atom, axes: Mapping[Axis, Index], value: Callable[[Expr], Expr | Index] | None
) -> Index:
    match atom:
        case Axis():
            return axes.get(atom) or Index.of(atom)
        case Quotient(dividend, divisor):
            return dividend.substitute(axes, value) // divisor
        case Remainder(dividend, divisor):
            return dividend.substitute(axes, value) % divisor
        case Gathered(inner, size):
            new = value(inner) if value else inner.substitute(axes)
            return new if isinstance(new, Index) else Index.of(Gathered(new, size))


def _split_multiples(index: Index, divisor: Size) -> tuple[Index, Index]:
    """(q, r) with index = q*divisor + r, where r holds the terms that do not divide evenly."""
    whole: list[tuple[Atom, Size]] = []
    rest: list[tuple[Atom, Size]] = []
    for atom, c in index.terms:
        ratio = exact_ratio(c, divisor)
        if ratio is None:
            rest.append((atom, c))
        else:
            whole.append((atom, ratio))
    constant, left = index.constant, index.constant
    if isinstance(constant, int) and isinstance(divisor, int):
        quotient, left = divmod(constant, divisor)
        return Index(tuple(whole), quotient), Index(tuple(rest), left)
    ratio = exact_ratio(constant, divisor)
    if ratio is not None:
        return Index(tuple(whole), ratio), Index(tuple(rest), 0)
    return Index(tuple(whole), 0), Index(tuple(rest), left)


def _split_small(index: Index, divisor: Size) -> tuple[int, Index, Index]:
    """(g, a, b) with index = g*a + b, where g divides the divisor and 0 <= b < g; g = 1 if none.

    So `(32*i0 + i1) // 64` is `i0 // 2` and `(32*i0 + i1) % 64` is `32*(i0 % 2) + i1`, for i1 < 32.
    """
    if not isinstance(divisor, int) or not isinstance(index.constant, int):
        return 1, index, ZERO
    known = [c for _, c in index.terms if isinstance(c, int)]
    for g in sorted({gcd(c, divisor) for c in known} - {1}, reverse=True):
        large = tuple((atom, c // g) for atom, c in index.terms if _divides(g, c))
        small = tuple((atom, c) for atom, c in index.terms if not _divides(g, c))
        quotient, left = divmod(index.constant, g)
        if within(Index(small, left), g):
            return g, Index(large, quotient), Index(small, left)
    return 1, index, ZERO


def _divides(g: int, size: Size) -> bool:
    return isinstance(size, int) and size % g == 0


def _only_atom(index: Index) -> Atom | None:
    """The atom, if the index is exactly one atom; otherwise None."""
    if len(index.terms) == 1 and is_int(index.constant, 0) and is_int(index.terms[0][1], 1):
        return index.terms[0][0]
    return None


def within(index: Index, size: Size) -> bool:
    """Do the ranges of the axes prove 0 <= index < size?"""
    span = index.bounds()
    if span is None:
        return False
    low, high = span
    room = add_sizes(size, mul_sizes(high, -1))
    return is_nonnegative(low) and is_nonnegative(add_sizes(room, -1))


def _atom_bounds(atom: Atom) -> tuple[Size, Size] | None:
    match atom:
        case Axis(_, size) | Gathered(_, size) | Remainder(_, size):
            return 0, add_sizes(size, -1)
        case Quotient(dividend, divisor):
            span = dividend.bounds()
            if span is None:
                return None
            first, last = span
            if isinstance(first, int) and isinstance(last, int) and isinstance(divisor, int):
                return first // divisor, last // divisor
            count = exact_ratio(add_sizes(last, 1), divisor)  # complete intervals
            known = count is not None and is_nonnegative(first)
            return (0, add_sizes(count, -1)) if known else None


# ---- sizes: ints stay ints; a symbolic size goes through sympy -------------------------------


def is_int(size: Size, value: int) -> bool:
    return isinstance(size, int) and size == value


def simplify_size(size: sympy.Expr) -> Size:
    """A sympy number becomes an int; the rest is expanded, so that equal sizes compare equal."""
    expanded = sympy.expand(size)
    return int(expanded) if expanded.is_Integer else expanded


def add_sizes(a: Size, b: Size) -> Size:
    return a + b if isinstance(a, int) and isinstance(b, int) else simplify_size(a + b)


def mul_sizes(a: Size, b: Size) -> Size:
    return a * b if isinstance(a, int) and isinstance(b, int) else simplify_size(a * b)


def at_most_one(size: Size) -> Size:
    """1, or 0 where the size is 0."""
    return min(size, 1) if isinstance(size, int) else simplify_size(sympy.Min(size, 1))


_SPELLED = frozenset({"Add", "Mul", "Pow", "Max", "Min"})
"""Functions with the same text in every language; divisions, shifts and roundings are not."""
_OF_WHOLE = _SPELLED | {"Abs", "Mod", "PythonMod", "FloorDiv"}
"""Functions whose result is an integer if all arguments are."""
_ROUNDED = frozenset({"TruncToInt", "FloorToInt", "CeilToInt", "RoundToInt", "floor", "ceiling"})
"""Functions from a float to an integer."""


def is_integer_size(size: sympy.Expr) -> bool:
    """Is it an integer for all values of its symbols?

    sympy alone is wrong here: it does not know that torch's bitwise functions give integers, and it
    reports that 0.0 and torch's remainder of floats are integers.
    """
    name = type(size).__name__
    if not size.args or name in _ROUNDED or name == "Piecewise":
        return bool(size.is_integer) and not size.is_Float
    if isinstance(size, sympy.Pow) and not _is_natural(size.exp):
        return False
    known = bool(size.is_integer) or name in _OF_WHOLE or name.startswith("BitwiseFn")
    return known and all(map(is_integer_size, size.args))


def _is_natural(exponent: sympy.Expr) -> bool:
    return isinstance(exponent, sympy.Integer) and exponent >= 0


def is_computed_in_kernel(size: sympy.Expr) -> bool:
    """Does generated code compute this expression itself, from the values of its operands?"""
    return type(size).__name__ in _SPELLED and is_integer_size(size)


def may_overflow(size: Size) -> bool:
    """Is it computed from the user's own integers, so that it may overflow 64 bits?

    Sums and products of tensor lengths fit in 64 bits, because memory is smaller than that.
    """
    parts = list(sympy.preorder_traversal(sympy.sympify(size)))
    numbers = any(part.is_Symbol and not part.is_nonnegative for part in parts)
    grows = numbers or "PowByNatural" in {type(part).__name__ for part in parts}
    return grows and len(parts) > 1 and is_integer_size(parts[0])


def size_arguments(size: sympy.Expr) -> Iterator[sympy.Expr]:
    """The values that a kernel needs as arguments to compute a size: its symbols, and the parts
    that Python computes as in eager mode (`s0 // 2`, `s0 & 3`, and floats rounded to integers)."""
    if is_computed_in_kernel(size):
        for part in size.args:
            yield from size_arguments(part)
    elif not isinstance(size, sympy.Integer):
        yield size


def product(sizes: Iterable[Size]) -> Size:
    """The product of all sizes; 1 for none."""
    total: Size = 1
    for size in sizes:
        total = mul_sizes(total, size)
    return total


def exact_ratio(a: Size, b: Size) -> Size | None:
    """The quotient a / b if b divides a for every value of the symbols, otherwise None."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if is_int(a, 0):
        return 0
    ratio = sympy.cancel(sympy.sympify(a) / sympy.sympify(b))
    whole = ratio.as_numer_denom()[1] == 1 and ratio.is_integer
    return simplify_size(ratio) if whole else None


def exact_quotient(a: Size, b: Size) -> Size:
    """The quotient a / b, where b is known to divide a."""
    ratio = exact_ratio(a, b)
    assert ratio is not None, f"{b} does not divide {a}"
    return ratio


def is_nonnegative(size: Size) -> bool:
    return size >= 0 if isinstance(size, int) else bool(size.is_nonnegative)


def is_negative(size: Size) -> bool:
    return size < 0 if isinstance(size, int) else bool(size.is_negative)


def sizes_in(index: Index) -> Iterator[Size]:
    """Every size in an index: factors, divisors, lengths."""
    yield index.constant
    for atom, factor in index.terms:
        yield factor
        match atom:
            case Axis():
                pass
            case Gathered(_, size):
                yield size
            case _:
                yield atom.divisor
                yield from sizes_in(atom.dividend)


def gathered_in(index: Index) -> Iterator[Gathered]:
    """Every `Gathered` atom of an index."""
    for atom, _ in index.terms:
        if isinstance(atom, Gathered):
            yield atom
        elif isinstance(atom, Quotient | Remainder):
            yield from gathered_in(atom.dividend)


ASSUMED = 64
"""The value of a symbol in cost models."""


def hint(size: Size, least: int = 0) -> int:
    """A number for cost models: symbols count as ASSUMED.  Never use it for correctness.

    With `least`, symbols count as `least`, and no symbolic size counts as less.  `n // 99` may be
    large, and code that is optimized for short loops is slow for long ones.
    """
    if isinstance(size, int):
        return size
    try:
        found = int(size.subs({symbol: least or ASSUMED for symbol in size.free_symbols}))
    except (ArithmeticError, AssertionError, AttributeError, TypeError, ValueError):
        found = 0  # a division by zero, a remainder of a negative number, an infinite power
    return max(found, least) if found else least or ASSUMED  # `n % 4` is 0 only for some n
