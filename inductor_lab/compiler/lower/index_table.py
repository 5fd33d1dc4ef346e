"""Positions from a constant table, as formulas for intervals of the table.

    i              0 1 2 3 4 5 6 7 8 9          position
    table          0 0 0 1 1 2 2 3 3 3     →    0 for i < 3, (i - 1) // 2 for 3 <= i < 9, then 3

Upsampling by an integer factor and padding by reflection or replication read such tables.  With a
formula the loads are contiguous; with a table each load is a gather.

Inductor has no counterpart: it keeps the arithmetic that computes the table, and gathers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inductor_lab.compiler.ir.index import Index, Size, is_int
from inductor_lab.compiler.lower.builder import Builder
from inductor_lab.compiler.lower.tensor import TensorValue
from inductor_lab.compiler.torch_door.torch_api import without_modes

SHORTEST = 16
"""If a table, or a quotient piece, has fewer entries, a gather costs almost nothing (chosen, not
measured)."""
MOST_PIECES = 4
MOST_EQUAL = 4
"""The longest run of equal numbers that becomes a quotient; loops are not unrolled further."""


@dataclass(frozen=True, slots=True)
class Piece:
    """(factor * i + shift) // divisor for begin <= i < end."""

    begin: int
    end: int
    factor: int
    shift: int
    divisor: int = 1

    def place(self, i: Index) -> Index:
        return (i * self.factor + self.shift) // self.divisor


def pieces_of(numbers: np.ndarray) -> tuple[Piece, ...]:
    """The pieces of a table, in order; empty if there are too many."""
    found: list[Piece] = []
    while not found or found[-1].end < len(numbers):
        if len(found) == MOST_PIECES:
            return ()
        found.append(_longest(numbers, found[-1].end if found else 0))
    return tuple(found)


def _longest(numbers: np.ndarray, begin: int) -> Piece:
    """The longest piece that starts at `begin`; a quotient only if it is long."""
    first = int(numbers[begin])
    step = int(numbers[begin + 1]) - first if begin + 1 < len(numbers) else 0
    formulas = [(step, first - step * begin, 1)]
    for divisor in range(2, MOST_EQUAL + 1):
        formulas += [(1, divisor * first - begin + phase, divisor) for phase in range(divisor)]
    pieces = [Piece(begin, _end(numbers, begin, *formula), *formula) for formula in formulas]
    far = [piece for piece in pieces if piece.divisor == 1 or piece.end - begin >= SHORTEST]
    return max(far, key=lambda piece: piece.end)


def _end(numbers: np.ndarray, begin: int, factor: int, shift: int, divisor: int) -> int:
    """The end of the range in which the formula gives the numbers of the table."""
    at = np.arange(begin, len(numbers))
    differs = (factor * at + shift) // divisor != numbers[begin:]
    return begin + int(differs.argmax()) if differs.any() else len(numbers)


def known_numbers(build: Builder, buffer: str) -> np.ndarray | None:
    """The numbers of a buffer if it is a constant on the CPU; otherwise None."""
    constant = build.constants.get(buffer)
    if constant is None:
        return None
    with without_modes():
        return constant.numpy().astype(np.int64) if constant.device.type == "cpu" else None


def affine_place(numbers: np.ndarray, at: Sequence[Index]) -> Index | None:
    """The number at `at` as a linear combination, if all numbers of the table are one.

    This matches `arange` over rows and columns, and the sums of them that hand-written windows and
    convolutions use as indices.
    """
    if not numbers.size:
        return None
    expected = first = numbers[(0,) * numbers.ndim]
    place = Index.constant_of(int(first))
    for d, size in enumerate(numbers.shape):
        step = numbers.take(1, d).flat[0] - first if size > 1 else 0
        expected = expected + step * np.arange(size).reshape(-1, *[1] * (numbers.ndim - d - 1))
        place = place + at[d] * int(step)
    return place if np.array_equal(numbers, expected) else None


def pieces_along_last(
    build: Builder, x: TensorValue, given: Sequence[TensorValue | None], shape: Sequence[Size]
) -> tuple[int, tuple[Piece, ...]] | None:
    """The dimension of x whose positions come from a table along the last axis of `x[given]`, and
    the pieces of the table.

    None unless there is exactly one such dimension.
    """
    used = [d for d, one in enumerate(given) if one is not None]
    if used != list(range(used[0], x.ndim)):
        return None
    tables = {d: known_numbers(build, one.buffer) for d, one in enumerate(given)
              if one is not None and one == TensorValue.of(build.buffers[one.buffer])}  # fmt: skip
    last = {d: t.reshape(-1) for d, t in tables.items() if t is not None and t.ndim
            and t.size == t.shape[-1] >= SHORTEST and is_int(shape[-1], t.size)}  # fmt: skip
    if len(last) != 1:
        return None
    ((dim, numbers),) = last.items()
    size = x.shape[dim]
    fits = isinstance(size, int) and numbers.min() >= 0 and numbers.max() < size
    pieces = pieces_of(numbers) if fits else ()
    return (dim, pieces) if pieces else None
