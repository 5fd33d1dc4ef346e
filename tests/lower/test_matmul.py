"""A row times quantized weights is a loop nest; other products stay library calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.ir.program import ExternCall
from tests.schedule.programs import traced

K, N = 96, 160
Given = tuple[torch.Tensor, ...]


def given(rows: int = 1, dtype: torch.dtype = torch.float32) -> Given:
    torch.manual_seed(0)
    w = torch.randint(-127, 128, (N, K), dtype=torch.int8)
    return torch.randn(rows, K).to(dtype), w, torch.rand(N).to(dtype), torch.randn(N).to(dtype)


def scaled(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    return torch.nn.functional.linear(x, w.to(x.dtype) * scale[:, None], bias)


def scaled_after(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    return torch.nn.functional.linear(x, w.to(x.dtype)) * scale + bias


def shifted(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    return x @ ((w.to(x.dtype) - 3) * scale[:, None]).t()


def halves(w: torch.Tensor) -> torch.Tensor:
    """Two 4-bit weights in each byte."""
    low, high = (w & 15) - 8, (w >> 4) & 15
    return torch.stack((low, high), -1).reshape(N, 2 * K)


def pairs(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    return torch.nn.functional.linear(torch.cat((x, x), 1), halves(w).to(x.dtype), bias)


def groups(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    """Each group of 24 weights has its own scale."""
    weight = w.reshape(N, -1, 24).to(x.dtype) * (scale[:, None] * bias[:4])[..., None]
    return x @ weight.reshape(N, K).t()


def groups_of_pairs(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    weight = halves(w).reshape(N, -1, 32).to(x.dtype) * scale[:, None, None]
    return torch.nn.functional.linear(torch.cat((x, x), 1), weight.reshape(N, 2 * K)) + bias


def quarters(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    """Four 2-bit weights in each byte."""
    parts = torch.stack([(w >> shift) & 3 for shift in (0, 2, 4, 6)], -1).reshape(N, 4 * K)
    return torch.nn.functional.linear(torch.cat((x, x, x, x), 1), parts.to(x.dtype) - 1.5)


FUSED = [scaled, scaled_after, shifted, pairs, groups, groups_of_pairs]


def calls_of(function: Callable[..., torch.Tensor], tensors: Given) -> list[str]:
    part = lab.inspect(function, *tensors).graphs[0].forward
    return [step.op for step in part.schedule.steps if isinstance(step, ExternCall)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function", FUSED)
def test_a_row_times_quantized_weights(function: Callable[..., torch.Tensor], dtype: torch.dtype):
    tensors = given(dtype=dtype)
    c = lab.inspect(function, *tensors)
    part = c.graphs[0].forward
    (group,) = part.schedule.groups
    assert len(part.schedule.steps) == 1
    assert not any(part.schedule.program.buffers[b].layout.size == (N, K) for b in group.stored)
    exact = function(*(t.double() if t.is_floating_point() else t for t in tensors))
    bound = 1e-6 if dtype is torch.float32 else 1e-2
    assert (c.result.double() - exact).abs().max() / exact.abs().max() < bound
    for stage in (part.loops, part.schedule):
        (found,) = stage.run(*c.graphs[0].inputs)
        torch.testing.assert_close(found, c.result, rtol=1e-5 if bound < 1e-5 else 1e-2, atol=1e-3)


def test_two_bit_weights() -> None:
    tensors = given()
    assert calls_of(quarters, tensors) == []
    exact = quarters(*(t.double() if t.is_floating_point() else t for t in tensors))
    torch.testing.assert_close(
        lab.inspect(quarters, *tensors).result.double(), exact, rtol=1e-5, atol=1e-4
    )


def across(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    return x @ (w.t().contiguous().to(x.dtype) * scale)


def side_by_side(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    """The low halves come first, so adjacent weights are not in one byte."""
    weight = torch.cat((w & 15, w >> 4), 1)
    return torch.nn.functional.linear(torch.cat((x, x), 1), weight.to(x.dtype))


def eighths(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor):
    bits = torch.stack([(w >> shift) & 1 for shift in range(8)], -1).reshape(N, 8 * K)
    return torch.nn.functional.linear(x.repeat(1, 8), bits.to(x.dtype))


def test_other_products_of_a_row_are_library_calls() -> None:
    assert calls_of(scaled, given(rows=2)) == ["aten.addmm.default"]
    assert calls_of(across, given()) == ["aten.mm.default"]
    assert calls_of(side_by_side, given()) == ["aten.mm.default"]
    assert calls_of(eighths, given()) == ["aten.mm.default"]
    assert calls_of(scaled, given(dtype=torch.float16)) == ["aten.addmm.default"]
    x, w, _, bias = given()
    wide = w.to(torch.float32)
    times_two: Callable[..., torch.Tensor] = lambda x, w: x @ (w * 2).t()  # noqa: E731
    assert calls_of(times_two, (x, wide)) == ["aten.mm.default"]
    twice: Callable[..., torch.Tensor] = lambda b, x, w: torch.addmm(  # noqa: E731
        b, x, w.float().t(), alpha=2
    )
    assert calls_of(twice, (bias, x, w)) == ["aten.addmm.default"]


def test_symbolic_sizes_stay_with_the_library() -> None:
    function = lab.compile(scaled, dynamic=True)
    tensors = given()
    torch.testing.assert_close(function(*tensors), scaled(*tensors), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [(4, 4, 4), (3, 3, 1), (2, 5, 9), (7, 7, 8)])
def test_products_of_tiny_matrices_are_loops(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    rows, inner, columns = sizes
    torch.manual_seed(0)
    a, b = torch.randn(150, rows, inner, dtype=dtype), torch.randn(150, columns, inner, dtype=dtype)

    def program(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.einsum("nij,nkj->nik", a, b).relu() + 1

    found = lab.inspect(program, a, b)
    assert not any(isinstance(s, ExternCall) for s in found.graphs[0].forward.loops.steps)
    torch.testing.assert_close(found.result, program(a, b))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_tiny_matrices_of_one_column(language: str) -> None:
    """The sum has one term: Triton has no loop for it."""
    torch.manual_seed(0)
    a, b = torch.randn(5, 6, 1), torch.randn(5, 1, 4)
    found = lab.inspect(lambda a, b: torch.bmm(a, b) + 1, a, b, options={"language": language})
    torch.testing.assert_close(found.result, a @ b + 1)
    assert not any(isinstance(s, ExternCall) for s in found.graphs[0].forward.loops.steps)


@pytest.mark.parametrize("sizes", [(8, 8, 8), (0, 4, 4), (4, 0, 4)])
def test_other_products_are_library_calls(sizes: tuple[int, ...]) -> None:
    rows, inner, columns = sizes
    a, b = torch.randn(5, rows, inner), torch.randn(5, inner, columns)
    found = lab.inspect(torch.bmm, a, b)
    torch.testing.assert_close(found.result, a @ b)
    calls = [s.op for s in found.graphs[0].forward.loops.steps if isinstance(s, ExternCall)]
    assert calls == (["aten.bmm.default"] if rows else [])


def rows_of_a_batch(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.bmm(a, b).view(24, 5) + 1


def test_a_batch_of_products_as_loops_is_right_before_a_view() -> None:
    a, b = torch.randn(4, 6, 7), torch.randn(4, 7, 5)
    program = traced(rows_of_a_batch, a, b, products=True)
    assert not [step for step in program.steps if isinstance(step, ExternCall)]
    (found,) = program.run(a, b)
    torch.testing.assert_close(found, rows_of_a_batch(a, b))
