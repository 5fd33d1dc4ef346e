"""float16 in C++: blocks are widened before a loop and narrowed after it; compared with eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import inductor_lab as lab
from tests.codegen.cpp_backend import Compiled

EVERY = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.float16)
BRAINS = EVERY.view(torch.bfloat16)
MATRIX = torch.randn(70, 300, generator=torch.Generator().manual_seed(0)).half()

CASES: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "every half": (lambda x: x + 1, (EVERY,)),
    "two operations": (lambda x: x * 2 + 1, (EVERY,)),
    "two operations on bfloat16": (lambda x: x * 3 + 1, (BRAINS,)),
    "the rounded value is a result": (lambda x: ((y := x * 3), y + 1, -y), (EVERY,)),
    "and chosen": (lambda x: ((y := x * 3), torch.where(y > 1, y, x), y.long()), (EVERY[:900],)),
    "an odd number": (lambda x: x * 3, (EVERY[:65535],)),
    "not aligned": (lambda x: x * 3, (EVERY[3:],)),
    "read twice, at two places": (lambda x: x[1:] - x[:-1], (EVERY[:4000],)),
    "rows": (lambda x: x.exp() / 2, (MATRIX,)),
    "a broadcast row and a column": (lambda x: x + x[0] * x[:, :1], (MATRIX,)),
    "short rows": (lambda x: x[:, :40] + 1, (MATRIX,)),
    "to float and back": (lambda x: (x.float() + 1, x.float().half() * 2), (MATRIX,)),
    "bits": (lambda x: (x.view(torch.int16) + 1, x + 1), (MATRIX,)),
    "a choice between halves": (lambda x: torch.where(x > 0, x, -x), (MATRIX,)),
    "a choice between rounded numbers": (lambda x: torch.where(x > 1, x * 3, x + 1) * 2, (EVERY,)),
    "choices of choices": (
        lambda x: torch.where(x > 1, torch.where(x > 9, x * 3, x), x + 1) * 2 - x, (EVERY,)
    ),
    "of bfloat16": (lambda x: torch.where(x > 1, x * 3, 0.1) * 2, (BRAINS,)),
    "also a result": (lambda x: ((y := torch.where(x > 1, x * 3, x + 1)), y * 2), (EVERY,)),
    "padded": (lambda x: torch.nn.functional.pad(x + 1, (1, 2)), (MATRIX,)),
    "joined": (lambda x: torch.cat([x + 1, x * 2]), (MATRIX,)),
    "copied": (lambda x: x.t().contiguous() + 1, (MATRIX,)),
    "softmax": (lambda x: x.float().softmax(-1).half(), (MATRIX,)),
    "sums of rows": (lambda x: x - x.sum(-1, keepdim=True), (MATRIX,)),
    "rounded to bfloat16": (lambda x: (x + 1).bfloat16(), (MATRIX,)),
}


@pytest.mark.parametrize("case", CASES)
def test_results_agree_with_eager_mode(case: str) -> None:
    function, inputs = CASES[case]
    got, expected = Compiled()(function)(*inputs), function(*inputs)
    loose = case in ("rows", "softmax", "sums of rows")  # exp and sum are computed differently
    exact = {"rtol": 2e-3, "atol": 1e-3} if loose else {"rtol": 0, "atol": 0}
    torch.testing.assert_close(got, expected, equal_nan=True, **exact)


def test_a_written_input() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2).add_(1)

    given, expected = MATRIX.clone(), MATRIX.clone()
    assert torch.equal(Compiled()(function)(given), function(expected))
    assert torch.equal(given, expected)


def test_values_used_as_halves_stay_halves() -> None:
    compiler = Compiled()
    compiler(lambda x: (x + 1, torch.where(x > 0, x, -x)))(MATRIX)
    text = "\n".join(str(kernel.code) for kernel in compiler.kernels)
    assert "lab_widen" not in text
    compiler = Compiled()
    compiler(lambda x: x + 1)(MATRIX)
    assert "lab_widen(block_t0, in0 + i0_block" in str(compiler.kernels[0].code)
    assert "lab_narrow(out0 + i0_block" in str(compiler.kernels[0].code)


def test_a_value_rounded_between_two_operations_stays_float32() -> None:
    compiler = Compiled()
    compiler(lambda x: ((y := x * 2), y + 1))(MATRIX)
    text = str(compiler.kernels[0].code)
    assert "float t1 = lab_rounded<lab_half>(" in text
    assert "lab_convert<lab_half>" not in text
    assert text.count("lab_narrow(") == 2


def test_a_where_of_rounded_values_stays_float32() -> None:
    compiler = Compiled()
    compiler(lambda x, y: torch.where(x > 0, x * y, x + y) * y)(MATRIX, MATRIX + 1)
    text = str(compiler.kernels[0].code)
    assert text.count("lab_rounded<lab_half>(") == 2
    assert "lab_convert<lab_half>" not in text and "lab_half t" not in text


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_an_exact_half_is_not_rounded_again(dtype: torch.dtype) -> None:
    """A rotation of halves: one of four roundings, that of a negated value, is removed.

    It stays for the other 16-bit dtype.
    """

    def rotated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        return x * y + torch.cat([-second, first.abs()], -1) * y

    values, weights = torch.randn(40, 64).to(dtype), torch.randn(40, 64).to(dtype)
    values[3, 5:9] = torch.tensor([torch.nan, torch.inf, -torch.inf, -0.0], dtype=dtype)
    c = lab.inspect(rotated, values, weights)
    torch.testing.assert_close(c.result, rotated(values, weights), rtol=0, atol=0, equal_nan=True)
    (kernel,) = c.graphs[0].forward.kernels
    assert str(kernel).count("lab_rounded<") == 4, str(kernel)
    other = torch.float16 if dtype is torch.bfloat16 else torch.bfloat16
    mixed = lab.inspect(lambda x: (-(x * x)).to(other) * 3, values)
    expected = (-(values * values)).to(other) * 3
    torch.testing.assert_close(mixed.result, expected, rtol=0, atol=0, equal_nan=True)
