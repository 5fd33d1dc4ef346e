"""Running sums, products and extrema in every stage, in C++ and in interpreted Triton."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.ir.program import Scan
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.schedule.verify import verify_schedule

NAN, INF = float("nan"), float("inf")


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def special(*shape: int) -> torch.Tensor:
    """Return a tensor with ties, infinities, signed zeros and NaN."""
    values = torch.tensor([1.0, 2.0, -INF, 0.0, -0.0, 2.0, INF, NAN])
    chosen = torch.randint(7, shape, generator=torch.Generator().manual_seed(sum(shape)))
    late = torch.arange(chosen.numel()).reshape(shape) % 97 == 96
    return values[torch.where(late, 7, chosen)]


def ints(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(0, 9, shape, generator=generator).to(dtype)


# name: function, arguments, kernels (None: any number)
Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...], int | None]
CASES: dict[str, Case] = {
    "rows": (lambda x: (x * 2).cumsum(1).sin() + x, (floats(12, 70),), 1),
    "columns": (lambda x: (x * 2).cumsum(0).sin() + x, (floats(70, 40),), 1),
    "middle": (lambda x: (x + 1).cumsum(-2) * 2, (floats(3, 20, 33),), 1),
    "backwards": (lambda x: x.flip(1).cumsum(1).flip(1) * 2, (floats(12, 70),), 1),
    "columns_backwards": (lambda x: x.flip(0).cumprod(0).flip(0), (floats(30, 20) / 2,), 1),
    "of_softmax": (lambda x: x.softmax(-1).cumsum(-1) < 0.7, (floats(6, 50),), 1),
    "of_a_scan": (lambda x: (x.cumsum(1) / 9).exp().cummax(1).values, (floats(6, 50),), 1),
    "beside_a_sum": (lambda x: x.cumsum(1) / x.abs().sum(1, True), (floats(6, 50),), 1),
    "values_and_places": (lambda x: x.cummax(1), (special(9, 200),), 1),
    "places_of_least": (lambda x: x.cummin(0), (special(200, 9),), 1),
    "bool": (lambda x: (*(x > 0).cummin(1), (x > 1).cumsum(1)), (floats(6, 50) + 2,), None),
    "two_uses": (lambda x: (x.cumsum(1), x.cumsum(1).sum(1)), (floats(6, 50),), None),
    "shifted": (lambda x: x.cumsum(1)[:, 3:] - x.cumsum(1)[:, :-3], (floats(6, 50),), None),
    "total": (lambda x: x.cumsum(1) / x.exp().cumsum(1)[:, -1:], (floats(6, 50),), None),
    "both_ways": (lambda x: x.cumsum(1) + x.cumsum(1).flip(1), (floats(6, 50),), None),
    "both_axes": (lambda x: (x.cumsum(0), x.cumsum(1)), (floats(40, 40),), None),
    "outer": (lambda x, y: x.cumsum(0)[:, None] * y, (floats(20), floats(20, 30)), None),
    "in_place": (lambda x: x.mul(2).cumsum_(1).add_(1), (floats(6, 50),), 1),
    "logarithms": (lambda x: x.logcumsumexp(1), (special(9, 200) * 3,), 1),
    "transposed": (lambda x: x.t().cumsum(1), (floats(40, 30),), 1),
    "int": (lambda x: (x.cumsum(0), x.cumprod(0)), (ints(80, 5),), 1),
    "uint8": (lambda x: (x.cumsum(0), x.cumsum(0, dtype=torch.uint8)), (ints(80, 5),), None),
    "half": (lambda x: x.cumsum(1) * 3, (floats(6, 300).half(),), 1),
    "bfloat16": (lambda x: x.cumsum(1).cummin(1).indices, (floats(6, 300).bfloat16(),), 1),
    "as_half": (lambda x: x.cumsum(1, dtype=torch.float16), (floats(6, 300),), 1),
    "scalar": (lambda x: (x.cumsum(0), *x.cummax(0)), (torch.tensor(3.0),), None),
    "one": (lambda x: (x.cumprod(1), *x.cummin(1)), (floats(5, 1),), None),
    "no_rows": (lambda x: x.cumsum(1) + 1, (floats(0, 5),), None),
    "no_columns": (lambda x: (x.cumsum(1), *x.cummax(1)), (floats(5, 0),), None),
    "long": (lambda x: (x * 2).cumsum(0) + 1, (floats(100_003),), 1),
    "long_places": (lambda x: x.cummax(0), (special(70_001),), 1),
    "long_logarithms": (lambda x: x.logcumsumexp(0), (special(70_001),), 1),
    "long_backwards": (lambda x: x.flip(0).cumsum(0).flip(0), (floats(70_001),), 1),
    "few_rows": (lambda x: (x.cumsum(1).sigmoid(), x.cumprod(1)), (floats(3, 20_000) / 9,), 1),
    "few_columns": (lambda x: x.cumsum(0).sigmoid(), (floats(20_000, 3),), 1),
    "in_blocks": (lambda x: (x.exp().cumsum(1) / 300).sin() * x, (floats(9, 700),), 1),
    "in_blocks_backwards": (
        lambda x, y: (x.tanh().flip(1).cumsum(1).flip(1) / 30).sin() + y.exp(),
        (floats(9, 700), floats(9, 700)),
        1,
    ),
    "scan_after_scan_in_blocks": (
        lambda x, y: (x.cumsum(1) / 30).exp().cummax(1).values * y.exp(),
        (floats(9, 700), floats(9, 700)),
        1,
    ),
    "places_in_blocks": (lambda x: (x.exp().cummax(1).indices / 99).sin(), (special(9, 203),), 1),
    "long_in_blocks": (lambda x: (x.sin().cumsum(0) / 99).cos(), (floats(70_001),), 1),
    "long_of_a_scan": (lambda x: x.cumsum(0).cummax(0).values, (floats(70_001),), 1),
}


def same(found: Any, expected: Any, where: str) -> None:
    found = found if isinstance(found, tuple | list) else (found,)
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    for a, b in zip(found, expected, strict=True):
        wide = 1e-2 if b.dtype in (torch.float16, torch.bfloat16) else 1e-5
        assert_close(a, b, rtol=wide, atol=wide, equal_nan=True, msg=lambda m: f"{where}: {m}")


@pytest.mark.parametrize("name", CASES)
def test_every_stage(name: str) -> None:
    function, args, kernels = CASES[name]
    expected = function(*(a.clone() for a in args))
    c = lab.inspect(function, *(a.clone() for a in args))
    part = c.graphs[0].forward
    verify(part.loops)
    verify_schedule(part.schedule)
    assert c.coverage.share == 1.0, str(c.coverage)
    if kernels is not None:
        assert len(part.kernels) == kernels, str(part.schedule)
    same(c.result, expected, "C++")
    same(part.loops.run(*c.graphs[0].inputs), expected, "loops")
    same(part.schedule.run(*c.graphs[0].inputs), expected, "schedule")


@pytest.mark.parametrize("name", CASES)
def test_triton(name: str) -> None:
    function, args, _ = CASES[name]
    expected = function(*(a.clone() for a in args))
    c = lab.inspect(function, *(a.clone() for a in args), options={"language": "triton"})
    same(c.result, expected, "Triton")


@pytest.mark.parametrize("columns", [8, 16, 17, 63, 64, 65, 128, 203])
def test_vectorized_running_sums(columns: int) -> None:
    """Tests vectors, the remainders of rows and blocks, and integers that wrap around."""

    def function(x: torch.Tensor, large: torch.Tensor, wide: torch.Tensor) -> Any:
        return x.cumsum(1), large.cumsum(1), (wide * 2).cumsum(1).exp()

    torch.compiler.reset()
    large = (1 << 60) * ints(9, columns) - 5
    args = (special(9, columns), large, floats(9, columns).double() / 9)
    c = lab.inspect(function, *args)
    same(c.result, function(*args), str(columns))
    assert torch.equal(c.result[1], large.cumsum(1))
    text = "".join(str(kernel.code) for kernel in c.graphs[0].forward.kernels)
    assert text.count("lab_running_sum(") == (3 if columns >= 16 else 0), text


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_dynamic_sizes(language: str) -> None:
    def function(x: torch.Tensor) -> Any:
        return (x * 2).cumsum(1).sin(), x.cummax(0), x.flip(1).cumsum(1).flip(1)

    compiled = lab.compile(function, dynamic=True, options={"language": language})
    sizes = [(2, 3), (7, 64), (64, 1000), (1000, 7), (3, 3000)]
    for size in sizes:
        x = special(*size).nan_to_num(0.5, 1.0, -1.0)
        values, (largest, places), backwards = compiled(x)
        same((values, largest, places, backwards), _flat(function(x)), str(size))


def _flat(results: Any) -> tuple[Any, ...]:
    values, (largest, places), backwards = results
    return values, largest, places, backwards


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
def test_gradients(name: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (getattr(x, name)(1) * x.sin()).sum()

    x = floats(5, 40) / 3 + 1
    grads = []
    for run in (function, lab.compile(function)):
        given = x.clone().requires_grad_()
        run(given).backward()
        grads.append(given.grad)
    assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-4)


def test_the_gradient_of_a_running_sum_is_one_kernel() -> None:
    c = lab.inspect(lambda x: x.cumsum(1), floats(5, 40).requires_grad_())
    backward = c.graphs[0].backward
    assert backward is not None and c.coverage.share == 1.0
    assert len(backward.kernels) == 1, str(backward.schedule)


def test_float32_accumulates_in_float64_on_the_cpu_as_in_eager_mode() -> None:
    x = torch.rand(200_000, generator=torch.Generator().manual_seed(0))
    found = lab.compile(lambda x: x.cumsum(0))(x)
    assert_close(found.double(), x.double().cumsum(0), rtol=1e-7, atol=0)


def test_a_scan_does_not_depend_on_the_number_of_threads() -> None:
    x, before = floats(1_000_003), torch.get_num_threads()
    function = lab.compile(lambda x: x.cumsum(0))
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(function(x))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)


def test_text_and_saving(tmp_path: Any) -> None:
    c = lab.inspect(lambda x: (x + 1).cumsum(1), floats(4, 6))
    part = c.graphs[0].forward
    assert "= sum up to i1 of f64(buf0[i0, i1])" in str(part.loops)
    c.save(tmp_path / "scan.lab.json")
    loaded = lab.load(tmp_path / "scan.lab.json").graphs[0].forward
    assert loaded.loops.nests == part.loops.nests
    assert any(isinstance(nest, Scan) for nest in loaded.loops.nests)
    assert str(loaded.schedule) == str(part.schedule)


def test_ptx_of_every_kind() -> None:
    def function(x: torch.Tensor) -> Any:
        return x.cumsum(1), x.cummax(1), x.logcumsumexp(1), (x > 0).cummin(1).values

    c = lab.inspect(function, floats(4, 10_000), target="cuda:90")
    for kernel in c.graphs[0].forward.kernels:
        assert ".visible .entry" in kernel.ladder("cuda:90")["ptx"]


ROWS = {
    "long": lambda: torch.randn(2, 10_000),
    "spread_out": lambda: torch.randn(8, 500) * 50,
    "rising": lambda: torch.linspace(0, 80, 2000) + torch.randn(3, 2000),
    "falling": lambda: torch.linspace(100, 0, 3000) + torch.randn(2, 3000),
}


@pytest.mark.parametrize("name", ROWS)
def test_logcumsumexp_and_its_gradient_are_as_accurate_as_eager_mode(name: str) -> None:
    """The gradient is exp of differences, which amplifies errors of the logarithm."""

    def with_gradient(function: Any, x: torch.Tensor) -> list[torch.Tensor]:
        x = x.detach().clone().requires_grad_()
        result = function(x)
        result.sum().backward()
        return [result.detach().double(), x.grad.double()]

    def program(x: torch.Tensor) -> torch.Tensor:
        return x.logcumsumexp(1)

    torch.compiler.reset()
    x = ROWS[name]()
    exact = with_gradient(program, x.double())
    eager, ours = with_gradient(program, x), with_gradient(lab.compile(program), x)
    for right, usual, found in zip(exact, eager, ours, strict=True):
        assert (found - right).abs().max() <= 1.5 * (usual - right).abs().max() + 1e-6
