"""C++ kernels compared with eager mode: all kinds of loops, dtypes and indices."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from inductor_lab.compiler.base.errors import IndexOutOfRange
from inductor_lab.compiler.codegen.cpp.cpp_ops import CPP_OPS
from inductor_lab.compiler.codegen.cpp.printer import cpp_kernel, translation_unit
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain

sys.path.insert(0, str(Path(__file__).parent))
cases = importlib.import_module("cpp_cases")
Compiled = importlib.import_module("cpp_backend").Compiled

ALL = {f"{kind.lower()}.{name}": case for kind in ("POINTWISE", "REDUCTIONS")
       for name, case in getattr(cases, kind).items()}  # fmt: skip
SIZES_STAY = {"pointwise.scalar", "pointwise.empty", "reductions.empty"}


def compare(function: Callable[..., Any], args: tuple[Any, ...], *, dynamic: bool) -> Any:
    compiled = Compiled()
    got, expected = compiled(function, dynamic)(*args), function(*args)
    assert compiled.kernels, "nothing was compiled"
    torch.testing.assert_close(got, expected, equal_nan=True)
    return compiled


@pytest.mark.parametrize("name", ALL)
def test_agrees_with_eager(name: str) -> None:
    compare(*ALL[name], dynamic=False)


@pytest.mark.parametrize("name", [n for n in ALL if n not in SIZES_STAY])
def test_agrees_with_eager_for_symbolic_sizes(name: str) -> None:
    compare(*ALL[name], dynamic=True)


def test_a_symbolic_kernel_runs_at_other_sizes() -> None:
    compiled = Compiled()
    function = compiled(lambda x: (x.softmax(-1), x.t().contiguous(), x.sum(0)), True)
    for rows, columns in ((40, 30), (700, 90), (3, 20000), (70000, 3)):
        x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows))
        got, columns_summed = function(x), x.double().sum(0).float()
        # Running sums of 70,000 numbers reach 300, so their rounding error is about 3e-5 per step.
        torch.testing.assert_close(got[2], columns_summed, atol=4e-4, rtol=1e-5)
        torch.testing.assert_close(got[:2], (x.softmax(-1), x.t()), atol=1e-6, rtol=1e-5)
    assert len(compiled.kernels) <= 6, "it was recompiled for each size"


def test_merged_heads_of_symbolic_sizes_need_no_division() -> None:
    def heads(x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2).flatten(2) + 1

    for shape in ((2, 3, 5, 4), (3, 4, 2, 7)):
        (kernel,) = compare(heads, (torch.randn(shape),), dynamic=True).kernels
        assert " / " not in str(kernel)
        assert " % " not in str(kernel)


def test_a_sum_does_not_depend_on_the_number_of_threads() -> None:
    x = torch.randn(1_000_003)
    function = Compiled()(lambda x: (x.sum(), (x * x).mean()))
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(function(x))
    finally:
        torch.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_long_sums_stay_accurate() -> None:
    x = torch.rand(3_000_000)
    total = Compiled()(lambda x: x.sum())(x)
    columns = Compiled()(lambda x: x.sum(0))(x.view(-1, 3))
    exact = x.double()
    assert abs(total.double() - exact.sum()) / exact.sum() < 1e-6
    assert ((columns.double() - exact.view(-1, 3).sum(0)) / columns).abs().max() < 1e-6


def test_an_index_out_of_range_is_an_error() -> None:
    function = Compiled()(lambda w, i: torch.nn.functional.embedding(i, w) + 1)
    weights = torch.randn(10, 4)
    function(weights, torch.tensor([0, 9]))
    for bad in (10, -1, 2**40):
        with pytest.raises(IndexOutOfRange):
            function(weights, torch.tensor([1, bad]))


def test_every_kernel_compiles_without_warnings(tmp_path: Path) -> None:
    kernels = []
    for name in ("pointwise.math", "pointwise.special", "pointwise.int8", "pointwise.convert",
                 "pointwise.embedding", "reductions.softmax", "reductions.threaded_columns",
                 "reductions.positions", "reductions.threaded_positions"):  # fmt: skip
        for k, kernel in enumerate(compare(*ALL[name], dynamic=False).kernels):
            label = f"k_{name.replace('.', '_')}_{k}"
            kernels.append(cpp_kernel(kernel.group, kernel.buffers, label))
    source = tmp_path / "unit.cpp"
    source.write_text(str(translation_unit(kernels)))
    command = find_toolchain().command_for(source, tmp_path / "unit.so")
    done = subprocess.run([*command, "-Wall", "-Wextra"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_lines_have_origins() -> None:
    (kernel,) = compare(*ALL["pointwise.sin_cos"], dynamic=False).kernels
    computing = [line for line in kernel.code.lines if line.statement]
    assert computing and all(line.origins for line in computing)
    (sine,) = (line for line in computing if "lab_sin" in line.text)
    assert sine.origins == {"sin"}


def test_the_op_table_can_be_patched() -> None:
    (kernel,) = compare(*ALL["pointwise.uint8_cat"], dynamic=False).kernels
    wrong = cpp_kernel(kernel.group, kernel.buffers, "wrong", {**CPP_OPS, "neg": "2 * {0}"})
    assert "2 * t" in str(wrong) and "2 * t" not in str(kernel)


def test_a_long_chain_does_not_exceed_the_recursion_limit() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for step in range(600):
            x = x + step if step % 2 else x * 0.99
        return x

    compare(chain, (torch.randn(50),), dynamic=False)


def test_a_mask_is_vectorized_as_a_select() -> None:
    """A branch per bool takes ten times as long."""
    args = torch.randn(256, 512), torch.arange(512) > 5
    compiled = compare(
        lambda x, m: x.masked_fill(m, float("-inf")).softmax(-1), args, dynamic=False
    )
    (kernel,) = compiled.kernels
    text = str(kernel.code)
    assert text.count("#pragma omp simd") == 3 and "if (" not in text


def test_argmax_is_vectorized() -> None:
    compiled = compare(*ALL["reductions.positions_of_rows"], dynamic=False)
    text = "".join(str(kernel.code) for kernel in compiled.kernels)
    assert text.count("#pragma omp simd reduction(min : first_") == 5
    expensive = compare(lambda x: x.exp().argmax(1), (torch.randn(5, 300),), dynamic=False)
    assert "lab_argmax_beats<" in str(expensive.kernels[0].code), "computed twice"


def test_bools_are_read_as_bytes() -> None:
    compiled = compare(lambda x, m: torch.where(m, x, -x), (torch.randn(99), torch.randn(99) > 0),
                       dynamic=False)  # fmt: skip
    text = str(compiled.kernels[0])
    assert "const uint8_t* in" in text and "] != 0;" in text


@pytest.mark.parametrize("count", [5, 1000])
def test_clamp_keeps_zeros_and_nan_as_eager_does(count: int) -> None:
    """A number that equals its bound is unchanged, including -0.0."""
    x = torch.tensor([-0.0, 0.0, float("nan"), 3.0, -3.0]).repeat(count)

    def bounds(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.clamp(min=0.0), x.clamp(max=-0.0), x.clamp(-0.0, 0.0), x.clamp(-2, 2)

    for got, expected in zip(Compiled()(bounds)(x), bounds(x), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)
        number = ~expected.isnan()
        assert torch.equal(got.signbit()[number], expected.signbit()[number])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("exponent", [4, 7.0, 32, -3, -5, -32])
def test_integer_powers_are_exact_products(exponent: float, dtype: torch.dtype) -> None:
    special = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40, 3e38, -1.5, 1e20, 1e-13]
    x = torch.cat([torch.tensor(special), torch.linspace(-3, 3, 20001)]).to(dtype)
    function = Compiled()
    got = function(lambda x: x**exponent)(x)
    text = "".join(str(kernel) for kernel in function.kernels)
    assert "lab_pow" not in text
    exact = (x.double() ** exponent).float().to(dtype)
    torch.testing.assert_close(got, exact, rtol=0, atol=0, equal_nan=True)
    number = ~exact.isnan()
    assert torch.equal(got.signbit()[number], exact.signbit()[number])


def test_a_weighted_sum_of_columns_is_reduced_row_by_row() -> None:
    """Memory is contiguous along a row, so the columns are reduced together, row by row."""
    x, weight = torch.randn(300, 2700), torch.randn(300)
    function = Compiled()
    got = function(lambda x, weight: (x * weight[:, None]).sum(0))(x, weight)
    torch.testing.assert_close(got, (x.double() * weight.double()[:, None]).sum(0).float())
    lines = str(function.kernels[0]).splitlines()
    (read,) = (k for k, line in enumerate(lines) if "in0[i0 + 2700 * j0]" in line)
    assert "for (int64_t i0 = strip" in lines[read - 1] and "#pragma omp simd" in lines[read - 2]


def test_flags_are_ints_that_hold_0_or_1() -> None:
    """In vector registers, they do not need to be packed to bytes."""
    x = torch.randn(40, 2000)
    x[3:6, 1999] = float("nan")
    x[4] = 0

    def flags(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        some, each = (x > 3).any(-1), x.isfinite().all(-1)
        return some, each, ~each, some.int() + each, x.bool().any(), (x == x).all()

    function = Compiled()
    for got, expected in zip(function(flags)(x), flags(x), strict=True):
        assert torch.equal(got, expected)
    text = "".join(str(kernel) for kernel in function.kernels)
    assert "int acc0 = false;" in text and "bool acc" not in text


def test_long_sums_use_several_registers_even_if_terms_are_expensive() -> None:
    x, y = torch.randn(300, 1500), torch.rand(300, 1500)
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    function = Compiled()
    got = function(lambda x, y: loss(x, y))(x, y)
    torch.testing.assert_close(got, loss(x.double(), y.double()).float(), rtol=1e-6, atol=0)
    assert "lanes_" in "".join(str(kernel) for kernel in function.kernels)
