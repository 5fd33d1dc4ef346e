"""Every elementwise operation of the Triton table on special values, in all dtypes, compared with
eager: zeros of both signs, limits of each dtype, denormal numbers, infinities and NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch

from tests.codegen.triton_programs import InTriton, kernels_of

pytest.importorskip("triton")

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
TOLERANCE = {torch.float16: 1e-3, torch.bfloat16: 1e-2, torch.float32: 4e-6, torch.float64: 1e-12}

OF_FLOATS = """
    abs acos acosh asin asinh atan atanh ceil cos cosh digamma erf erfc erfinv exp exp2 expm1 floor
    frac isfinite isinf isnan lgamma log log10 log1p log2 logical_not neg reciprocal round rsqrt
    sgn sigmoid sign signbit sin sinh sqrt square tan tanh trunc
""".split()
OF_INTEGERS = "abs bitwise_not logical_not neg sign signbit square".split()
COMPARED = "eq ne lt le gt ge logical_and logical_or logical_xor".split()
OF_TWO_FLOATS = "add sub mul div atan2 copysign fmax fmin fmod hypot maximum minimum pow".split()
OF_TWO_FLOATS += ["remainder", *COMPARED]
BITS = "bitwise_and bitwise_or bitwise_xor".split()
SHIFTS = "bitwise_left_shift bitwise_right_shift".split()
DIVISIONS = "floor_divide fmod remainder".split()
ANY_ZERO = {"maximum", "minimum", "fmax", "fmin"}
"""Operations that may return either of two zeros with different signs."""


def special(dtype: torch.dtype) -> torch.Tensor:
    if dtype is torch.bool:
        return torch.tensor([False, True])
    if not dtype.is_floating_point:
        ends = torch.iinfo(dtype)
        numbers = [0, 1, 2, 3, 7, 8, 15, 31, 32, 63, 64, -1, -2, -7, -8, -64]
        numbers += [ends.min, ends.min + 1, ends.max - 1, ends.max]
        return torch.tensor([n for n in numbers if ends.min <= n <= ends.max], dtype=dtype)
    ends = torch.finfo(dtype)
    numbers = [0.0, 0.1, 1.0, 1.5, 2.5, 3.0, 7.0, 10.0, 100.0, ends.max, ends.eps, math.inf]
    numbers += [ends.smallest_normal] + ([] if dtype is torch.bfloat16 else [ends.tiny / 2])
    return torch.tensor([s * n for n in numbers for s in (1, -1)] + [math.nan]).to(dtype)


def pairs_of(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    values = special(dtype)
    return values.repeat_interleave(len(values)), values.repeat(len(values))


def agree(names: Sequence[str], *operands: torch.Tensor) -> None:
    """Run all operations as one kernel."""
    functions = [getattr(torch, name) for name in names]

    def all_of(*operands: torch.Tensor) -> list[torch.Tensor]:
        return [function(*operands) for function in functions]

    found = InTriton()(all_of)(*operands)
    for name, ours, eager in zip(names, found, all_of(*operands), strict=True):
        where = differing(ours, eager, signed=name not in ANY_ZERO)
        shown = [(*(o[i].item() for o in operands), ours[i].item(), eager[i].item()) for i in where]
        assert not shown, f"{name} of {operands[0].dtype}: (operands, ours, eager) {shown[:8]}"


def differing(ours: torch.Tensor, eager: torch.Tensor, signed: bool = True) -> list[int]:
    assert ours.dtype == eager.dtype and ours.shape == eager.shape
    if not eager.is_floating_point():
        return (ours != eager).nonzero().flatten().tolist()
    near = {"rtol": TOLERANCE[eager.dtype], "atol": 2e-7 * (eager.dtype != torch.float64)}
    same = torch.isclose(ours.double(), eager.double(), equal_nan=True, **near)
    if signed:
        zeros = (eager == 0) & (ours == 0)
        same &= ~zeros | (ours.signbit() == eager.signbit())
    return (~same).nonzero().flatten().tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_floats(dtype: torch.dtype) -> None:
    agree(OF_FLOATS, special(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_operations_of_two_floats(dtype: torch.dtype) -> None:
    agree(OF_TWO_FLOATS, *pairs_of(dtype))
    left, right = pairs_of(dtype)
    whole = (left / right).isfinite()  # beyond, the interpreter's fmod gives NaN
    agree(["floor_divide"], left[whole], right[whole])


@pytest.mark.parametrize("dtype", [torch.uint8, *SIGNED])
def test_operations_of_integers(dtype: torch.dtype) -> None:
    agree(OF_INTEGERS, special(dtype))
    left, right = pairs_of(dtype)
    agree(["add", "sub", "mul", "minimum", "maximum", *BITS, *SHIFTS, *COMPARED], left, right)
    agree(["pow"], left, right.clamp(min=0))
    traps = (right == 0) | ((right == -1) & (left == torch.iinfo(dtype).min))
    agree(DIVISIONS, left[~traps], right[~traps])


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_operations_of_wide_unsigned_integers(dtype: torch.dtype) -> None:
    agree([*BITS, "eq", "ne"], *pairs_of(dtype))


def test_operations_of_bools() -> None:
    agree(["logical_not", "bitwise_not", "sign"], special(torch.bool))
    agree(["add", "mul", "minimum", "maximum", *BITS, *COMPARED], *pairs_of(torch.bool))


def conversions() -> Iterator[tuple[torch.dtype, torch.dtype]]:
    known = [*FLOATS, torch.uint8, *SIGNED, *UNSIGNED, torch.bool]
    return ((one, other) for one in known for other in known if one is not other)


@pytest.mark.parametrize("source", [*FLOATS, torch.uint8, *SIGNED, *UNSIGNED, torch.bool])
def test_conversions(source: torch.dtype) -> None:
    values, targets = special(source), [b for a, b in conversions() if a is source]
    if source.is_floating_point:  # what does not fit into an integer, no machine agrees on
        values = values[values.isfinite() & (values.abs() < 120)]

    def converted(x: torch.Tensor) -> list[torch.Tensor]:
        return [x.to(target) for target in targets]

    for ours, eager in zip(InTriton()(converted)(values), converted(values), strict=True):
        where = differing(ours, eager)
        assert not where, f"{source} to {eager.dtype}: {values[where].tolist()}"


def ptx(function: Any, *operands: torch.Tensor) -> str:
    (kernel,) = kernels_of(function, *operands)
    text = kernel.ladder("cuda:90")["ptx"]
    assert isinstance(text, str)
    return text


def test_a_negative_float_wraps_when_converted_to_a_byte_on_the_gpu() -> None:
    """The hardware would clamp it to 0."""
    text = ptx(lambda x: x.to(torch.uint8), torch.randn(512))
    assert "cvt.rzi.s64.f32" in text and "cvt.rzi.u" not in text
