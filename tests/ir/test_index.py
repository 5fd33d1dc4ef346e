"""Index arithmetic: every simplification is checked against plain integers."""

from itertools import product as points

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._sympy.functions import FloorDiv, IntTrueDiv, Mod

from inductor_lab.compiler.ir.index import (
    ZERO,
    Axis,
    Index,
    Quotient,
    Remainder,
    exact_ratio,
    hint,
    is_integer_size,
    linear,
    never_equal,
    product,
    within,
)
from inductor_lab.compiler.ir.text import index_text

n = sympy.Symbol("n", integer=True, positive=True)
AXES = (Axis("i", 4), Axis("j", 6), Axis("k", 5))


def number(size, at):
    if isinstance(size, int):
        return size
    return int(size.subs({symbol: at[symbol] for symbol in size.free_symbols}))


def value(index, at):
    """The integer value of an index, with axes and symbols at the given numbers."""
    total = number(index.constant, at)
    for atom, factor in index.terms:
        match atom:
            case Axis():
                part = at[atom]
            case Quotient(dividend, divisor):
                part = value(dividend, at) // number(divisor, at)
            case Remainder(dividend, divisor):
                part = value(dividend, at) % number(divisor, at)
        total += part * number(factor, at)
    return total


def everywhere(axes, **symbols):
    """All points of the axes, with the given symbols."""
    names = {sympy.Symbol(s, integer=True, positive=True): v for s, v in symbols.items()}
    for point in points(*(range(number(axis.size, names)) for axis in axes)):
        yield {**names, **dict(zip(axes, point, strict=True))}


def leaves(axes):
    return st.one_of(
        st.sampled_from(axes).map(lambda axis: (Index.of(axis), lambda at: at[axis])),
        st.integers(-9, 9).map(lambda c: (Index.constant_of(c), lambda at: c)),
    )


DIVISORS = (1, 2, 3, 4, 6, 8, 12)
FACTORS = (-3, -1, 0, 1, 2, 3, 4, 6, 8, 12, 24)


def grown(inner, divisors=DIVISORS, factors=FACTORS):
    """Larger terms from smaller ones: an index, and a function that computes its expected value."""
    divisor, factor = st.sampled_from(divisors), st.sampled_from(factors)
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: (p[0][0] + p[1][0], lambda at: p[0][1](at) + p[1][1](at))),
        pair.map(lambda p: (p[0][0] - p[1][0], lambda at: p[0][1](at) - p[1][1](at))),
        st.tuples(inner, factor).map(
            lambda p: (p[0][0] * p[1], lambda at: p[0][1](at) * number(p[1], at))
        ),
        st.tuples(inner, divisor).map(
            lambda p: (p[0][0] // p[1], lambda at: p[0][1](at) // number(p[1], at))
        ),
        st.tuples(inner, divisor).map(
            lambda p: (p[0][0] % p[1], lambda at: p[0][1](at) % number(p[1], at))
        ),
    )


terms = st.recursive(leaves(AXES), grown, max_leaves=8)


@settings(max_examples=150, deadline=None)
@given(terms)
def test_arithmetic_equals_integer_arithmetic(term):
    index, expected = term
    span = index.bounds()
    for at in everywhere(AXES):
        found = value(index, at)
        assert found == expected(at)
        assert span is None or span[0] <= found <= span[1]


size = sympy.Symbol("size", integer=True, positive=True)
OF_SYMBOLS = (Axis("i", n), Axis("j", size), Axis("f", n * size))
terms_of_symbols = st.recursive(
    leaves(OF_SYMBOLS),
    lambda inner: grown(inner, (2, 3, n, size, n * size, 2 * n), (-1, 2, 6, n, size, n * size)),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(terms_of_symbols)
def test_symbolic_arithmetic_equals_integer_arithmetic(term):
    index, expected = term
    span = index.bounds()
    for first, second in ((1, 1), (2, 3), (3, 2), (4, 1), (1, 5)):
        for at in everywhere(OF_SYMBOLS, n=first, size=second):
            found = value(index, at)
            assert found == expected(at)
            assert span is None or number(span[0], at) <= found <= number(span[1], at)


def test_symbolic_dimensions_split_by_a_reshape() -> None:
    flat = Index.of(OF_SYMBOLS[2])
    assert (flat // n) % size == flat // n
    assert flat % n + ((flat // n) % size) * n == flat


@settings(max_examples=40, deadline=None)
@given(terms, terms)
def test_substitution(outer, inner):
    i, j, k = AXES
    moved = outer[0].substitute({i: inner[0], k: Index.of(j) + 1})
    for at in everywhere(AXES):
        assert value(moved, at) == value(outer[0], {**at, i: value(inner[0], at), k: at[j] + 1})


i, j, k = AXES
I, J, K = map(Index.of, AXES)
w = Axis("w", 24)
W = Index.of(w)
big = Index.of(Axis("b", 128)) * 32 + Index.of(Axis("c", 32))


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ((I * 6 + J) // 6, "i"),
        ((I * 6 + J) % 6, "j"),
        ((W // 6) * 6 + W % 6, "w"),
        ((W // 6) // 2, "w//12"),
        ((W % 12) // 3, "(w//3)%4"),
        ((W % 12) % 4, "w%4"),
        ((W // 3) % 4 * 3 + W % 3 + (W // 12) * 12, "w"),
        (big // 64, "b//2"),
        (big % 64, "c + 32*(b%2)"),
        ((big // 64) * 64 + big % 64, "32*b + c"),
        ((W + 24) // 24, "1"),
        ((W + 24) % 24, "w"),
        (I - I, "0"),
        (I * 0, "0"),
        (Index.of(Axis("one", 1)), "0"),
        ((W * 7) // 7, "w"),
        ((W - 1) // 24, "(w + 23)//24 - 1"),
    ],
)
def test_simplified(index, text):
    assert index_text(index) == text


m = Axis("m", n)
M = Index.of(m)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ((I * n + M) // n, "i"),
        ((I * n + M) % n, "m"),
        ((M * 6 + J) // 6, "m"),
        ((I * (6 * n) + M * 6 + J) // (6 * n), "i"),
        ((W // n) * n + W % n, "w"),
        (W * n + W, "(n + 1)*w"),
        ((M + n) // n, "1"),
        (M // 2, "m//2"),
    ],
)
def test_symbolic_sizes(index, text):
    assert index_text(index) == text


@pytest.mark.parametrize("size", [1, 2, 5, 7])
@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ((W // n) * n + W % n, lambda at: at[w]),
        ((I * n + M) // 3, lambda at: (at[i] * at[n] + at[m]) // 3),
        ((I * n + M) % (2 * n), lambda at: (at[i] * at[n] + at[m]) % (2 * at[n])),
        ((W + n * 3 + 1) // n, lambda at: (at[w] + at[n] * 3 + 1) // at[n]),
        ((M * (n - 3)) // n, lambda at: at[m] * (at[n] - 3) // at[n]),
    ],
)
def test_symbolic_sizes_evaluate_correctly(index, expected, size):
    for at in everywhere((i, w, m), n=size):
        assert value(index, at) == expected(at)


def test_bounds():
    assert (I * 6 - J + 2).bounds() == (-3, 20)
    assert (W // 5).bounds() == (0, 4)
    assert M.bounds() == (0, n - 1)
    assert (M * (n - 3)).bounds() is None
    assert within(I * 6 + J, 24)
    assert not within(I * 6 + J, 23)
    assert not within(I - 1, 24)
    assert within(M, n)
    assert not within(M, n - 1)


def test_predicates():
    assert (I * 6 + J).is_affine
    assert not (W // 5).is_affine
    assert (I * 6 + J).coefficient(i) == 6
    assert J.coefficient(i) == 0
    assert I.as_axis() == i
    assert (I + 1).as_axis() is None
    assert list((W // 5 + I).axes()) == [i, w]
    assert linear([(i, 2), (j, 1), (i, -2)], 0) == J
    assert hash(I + J) == hash(J + I)
    assert I + J == J + I
    assert I * 0 == ZERO


def test_sizes():
    assert product([2, n, 3]) == 6 * n
    assert product([]) == 1
    assert exact_ratio(12, 4) == 3
    assert exact_ratio(12, 5) is None
    assert exact_ratio(6 * n, 3) == 2 * n
    assert exact_ratio(6 * n, 4) is None
    assert exact_ratio(n * n + n, n) == n + 1
    assert exact_ratio(0, n) == 0
    assert exact_ratio(3, 0) is None
    assert hint(n * 2) == 128
    assert hint(sympy.Mod(n, 4)) == hint(n) == 64
    assert hint(n // 100, 1024) == hint(n - 1, 1024) == hint(n, 1024) == 1024
    assert hint(n * 2, 1024) == 2048



def test_zero_as_a_float_is_not_an_integer() -> None:
    assert sympy.Float(0.0).is_integer
    assert not is_integer_size(sympy.Float(0.0))
    assert is_integer_size(sympy.Integer(0))


def test_only_functions_with_integer_results_are_integers() -> None:
    assert is_integer_size(FloorDiv(n, 3)) and is_integer_size(Mod(n, 3) + 1)
    assert not is_integer_size(IntTrueDiv(n, 2)) and not is_integer_size(n + IntTrueDiv(n, 2))


def test_ranges_that_touch_are_never_equal() -> None:
    i = Index.of(AXES[0])
    assert never_equal([i], [i + 4]) and never_equal([i + 4], [i])
    assert not never_equal([i], [i + 3]) and not never_equal([i + 3], [i])
    assert never_equal([i, i], [i, i + 4]) and not never_equal([], [])
