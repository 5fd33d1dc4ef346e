"""Regression tests: small programs that operator checks or random programs found to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import inductor_lab as lab

Case = tuple[Callable[..., Any], Callable[[], tuple[torch.Tensor, ...]]]


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.linspace(-2, 2, torch.Size(shape).numel()).to(dtype).reshape(shape)


def computed_and_read(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x / (x.abs() + 1)
    low = y.bfloat16()
    placed = (y + low).index_copy(0, i, x)
    return torch.cat([low, low]), (placed - y) * low


def summed_in_three_parts(x: torch.Tensor) -> torch.Tensor:
    y = x.roll((1, -1), (0, -1))
    return torch.stack([y, y + 1, x]).sum(0)


def losses_of_two_dtypes(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    functions = (
        torch.nn.functional.huber_loss,
        torch.nn.functional.binary_cross_entropy_with_logits,
        torch.nn.functional.soft_margin_loss,
    )
    return [loss(x, y, reduction=kind) for loss in functions for kind in ("none", "mean", "sum")]


CASES: dict[str, Case] = {
    "the middle one of three parts is not read before it begins": (
        summed_in_three_parts,
        lambda: (floats(5, 5),),
    ),
    "a loss has the dtype of one of its inputs": (
        losses_of_two_dtypes,
        lambda: (floats(5, 5), floats(5, 5, dtype=torch.float64).exp()),
    ),
    "a NaN as a double constant": (
        lambda x: torch.special.xlog1py(x, x),
        lambda: (floats(5, dtype=torch.float64),),
    ),
    "an expanded complex tensor": (
        lambda x: x.expand(5, 5, 5) * 1j,
        lambda: (floats(5, 1, 1, dtype=torch.complex64),),
    ),
    "an expanded complex result": (
        lambda x: (x + 1).expand(3, 5),
        lambda: (floats(5, dtype=torch.complex64),),
    ),
    "views of a complex tensor": (
        lambda x: ((x.mT.conj()[1:] * 2).mT.unbind(), x.diagonal().real),
        lambda: (floats(3, 3, dtype=torch.complex64),),
    ),
    "a library result laid out as an expanded input": (
        lambda x, y: x.as_strided_scatter(y, (2, 2), (1, 2), 1) + 1,
        lambda: (floats(3).expand(3, 3), floats(2, 2)),
    ),
    "no index at all into a scalar": (
        lambda x, i: (x.index_fill(0, i, 3.0), x.scatter(0, i, 4.0), x.put(i, x[None][:0])),
        lambda: (torch.tensor(2.0), torch.zeros(0, dtype=torch.int64)),
    ),
    "an index without dimensions": (
        lambda x, i: (x.gather(0, i), x.index_select(0, i), x.scatter(0, i, 4.0)),
        lambda: (floats(5), torch.tensor(3)),
    ),
    "every third place written to": (
        lambda x, y: (x.slice_scatter(y, 1, 1, 9, 3), x.slice_scatter(y, 1, 0, 7, 3)),
        lambda: (floats(4, 10), floats(4, 3) * 9),
    ),
    "one index into a scalar": (
        lambda x, i: (x.index_fill(0, i, 3.0), x.index_add(0, i, x), x.index_copy(0, i, x * 2)),
        lambda: (torch.tensor(2.0), torch.zeros(1, dtype=torch.int64)),
    ),
    "a NaN as a complex constant": (
        lambda x: torch.where(x.real > 0, x, complex(float("nan"), float("-inf"))),
        lambda: (floats(5, dtype=torch.complex64),),
    ),
    "an empty complex tensor": (
        lambda x: torch.stack([x, x * 2]),
        lambda: (floats(0, 3, dtype=torch.complex64),),
    ),
    "a part of a combo computes what another one reads": (
        computed_and_read,
        lambda: (floats(5), torch.arange(5)),
    ),
    "a norm along a dimension of size 1": (
        lambda x: (x.norm(dim=-1), torch.linalg.vector_norm(x, 3.0, (-1, 0))),
        lambda: (floats(4, 3, 1),),
    ),
    "a scalar that is flipped": (
        lambda x: x.sum().flip(0) + x.median(-1).values.flip(-1),
        lambda: (torch.arange(9),),
    ),
    "a truth value as an index": (
        lambda x, i: (x[(i > 0).long()], x.bfloat16()[torch.where(i > 4, 1, 0) % 700]),
        lambda: (floats(700), torch.arange(700) % 9),
    ),
    "two pieces of a transposed matrix": (
        lambda x: (torch.cat([x.mT[1:], x.mT.double()]) * 2, torch.cat([x.mT, x.mT[:-3]], -2)),
        lambda: (floats(33, 20),),
    ),
    "storage that an empty view lies in": (
        lambda x: x[:0].mT.as_strided((2, 2), (1, 1)) + 1,
        lambda: (floats(5, 6),),
    ),
    "the absolute value of a byte's negative": (
        lambda x: (-x).abs().to(torch.float64),
        lambda: (torch.arange(0, 250, 7, dtype=torch.uint8),),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_regression(name: str) -> None:
    function, make = CASES[name]
    assert_close(lab.compile(function)(*make()), function(*make()), equal_nan=True)


def test_a_returned_view_of_a_written_view_with_dynamic_size() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.reshape(-1).unflatten(0, (-1, 1))
        x[:, 0], x[:, -1] = x[:, -1].clone(), x[:, 0].clone()
        return y

    compiled = lab.compile(function, dynamic=True)
    for rows, first in ((4, 1), (7, 1), (5, 0), (6, 2)):
        given, copy = (floats(rows, 1, 6)[first:] for _ in range(2))
        found, expected = compiled(given), function(copy)
        assert_close((found, given), (expected, copy))
        assert found.data_ptr() == given.data_ptr()
        assert found.storage_offset() == expected.storage_offset()


def test_a_returned_view_of_an_overlapping_written_view() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x[1:].mul_(2)
        return x[..., None].expand(*x.shape, 3)

    compiled = lab.compile(function, dynamic=True)
    for size in (5, 8):
        given, copy = floats(size + 1)[1:], floats(size + 1)[1:]
        assert_close((compiled(given), given), (function(copy), copy))


@pytest.mark.parametrize("shape", [(2, 2, 3, 4), (3, 5, 700, 7), (1100, 2, 1100)])
def test_sums_over_two_nonadjacent_axes(shape: tuple[int, ...]) -> None:
    x = (torch.arange(torch.Size(shape).numel()) % 7).float().reshape(shape)

    def function(y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return y.sum((0, -1)), y.logsumexp((0, -1))

    for y in (x, x.mT):
        for dynamic in (False, True):
            assert_close(lab.compile(function, dynamic=dynamic)(y), function(y))


def test_a_size_that_a_guard_specializes_to_one_broadcasts() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.tensor_split(3, 0)[1]
        return x[:, 0] + torch.einsum("ij,kj->ik", y, y).exp()

    x = floats(3, 1)
    assert_close(lab.compile(function, dynamic=True)(x), function(x))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_equal_scans_in_one_kernel_run_once(language: str) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.cumsum(1), x.cumsum(1).sum(1)

    x = torch.randn(6, 50)
    options = {"rewrites_off": ("common_subexpressions",), "language": language}
    assert_close(lab.inspect(function, x, options=options).result, function(x))


@pytest.mark.parametrize("function", [
    lambda x: (x * 2, x.detach(), x.as_strided((2, 2), (1, 1))),
    lambda x: (x.sin(), x.detach(), x.view(6), x.detach()),
])  # fmt: skip
def test_a_detached_result_does_not_detach_its_alias(
    function: Callable[[torch.Tensor], tuple[torch.Tensor, ...]],
) -> None:
    def through(f: Callable[..., Any]) -> tuple[list[torch.Tensor], torch.Tensor]:
        x = floats(6).requires_grad_()
        found = list(f(x))
        known = [y for y in found if y.requires_grad]
        return found, torch.autograd.grad(known, x, [torch.ones_like(y) for y in known])[0]

    def copied(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return function(x.clone())

    assert_close(through(lab.compile(copied)), through(copied))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_operations_on_constants_are_folded(language: str) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.sin().fill_(3)
        return y.to(torch.float16), y.exp() + x, (y > 2) | (x > 0), -y.to(torch.int8)

    x = floats(17)
    found = lab.inspect(function, x, options={"language": language})
    assert_close(found.result, function(x))
    assert "exp(" not in str(found.graphs[0].forward.kernels[0])


def test_uint8_and_bfloat16_constants_in_the_interpreter() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return ~x, x - 1, (x % 3) ** (x % 5), -x, torch.where(y > 0, y, 1.5), y.max()

    given = torch.arange(20, dtype=torch.uint8), floats(20, dtype=torch.bfloat16)
    found = lab.inspect(function, *given, options={"language": "triton"}).result
    assert_close(found, function(*given))


HALVES = {
    "terms": lambda x: (x + 0.3, x - 0.3, 0.3 - x, torch.add(x, x, alpha=0.3)),
    "factors": lambda x: (x * 0.3, x / 0.3, x // 0.3, x * 2.1 + 0.7),
    "comparisons": lambda x: (x == 0.3, x != 0.3, x >= 1.1, x <= 0.3, x < 1.1, x > 0.3),
    "remainders and powers": lambda x: (x % 0.3, torch.fmod(x, 0.3), x.abs() ** 0.3),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", HALVES)
def test_scalars_among_halves_are_rounded_as_in_eager_mode(name: str, dtype: torch.dtype) -> None:
    x = torch.linspace(-3, 3, 4001).to(dtype)
    function = HALVES[name]
    assert_close(lab.compile(function)(x), function(x), rtol=0, atol=0, equal_nan=True)


def test_the_inputs_of_a_graph_keep_their_shapes() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        x.t_()
        return y

    graph = lab.inspect(function, floats(2, 3)).graphs[0]
    assert [tuple(given.shape) for given in graph.inputs] == [(2, 3)]


def test_stages_run_on_a_copy_of_an_expanded_input() -> None:
    given = floats(5)[::2].expand(2, 3)
    graph = lab.inspect(lambda x: x.sin(), given).graphs[0].forward
    for stage in (graph.loops, graph.schedule):
        assert_close(stage.run(given.clone())[0], given.sin())


@pytest.mark.parametrize("make", [lambda x: x[:, ::2], lambda x: x.t()[1:]])
def test_an_executable_runs_on_a_copy_laid_out_like_the_written_input(
    make: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.relu_() * 2

    part = lab.inspect(function, make(floats(3, 4))).graphs[0].forward
    given, expected = make(floats(3, 4)), make(floats(3, 4))
    result = function(expected)
    for stage in (part.loops, part.schedule, part.executable):
        assert_close(stage.run(given), (result, expected))
    assert_close(given, make(floats(3, 4)))


def test_log_sigmoid_is_contiguous_on_a_cpu() -> None:
    """This holds for all layouts of the argument; `as_strided` shows it."""

    def function(x):
        return torch.nn.functional.logsigmoid(x).as_strided((2, 2), (1, 1))

    x = torch.linspace(-3, 3, 24).reshape(4, 6).mT
    assert_close(lab.compile(function)(x), function(x))


def test_a_loop_variable_is_an_index_in_triton() -> None:
    """All lanes of a block use the same element, so its index has no dimension of the block."""

    def function(x):
        columns, rows = torch.stack([x, x], -1).unfold(-1, 2, 1), x.long() % 16
        places = rows.reshape(-1, 1, 1).expand(-1, 1, 2)
        return torch.zeros_like(columns).scatter_reduce(0, places, columns[rows], "sum")

    x = torch.arange(17, dtype=torch.uint8)[1:]
    fast = lab.compile(function, options={"language": "triton"})
    assert_close(fast(x), function(x))


@pytest.mark.parametrize("make", [lambda: floats(5, 8)[:, ::2], lambda: floats(5, 8)[2:, 3:]])
@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.diagonal().add_(1),
        lambda x: x[1].mul_(2),
        lambda x: x[:2].fill_(7),
        lambda x: x.copy_(x + 1),
        lambda x: x.as_strided((3,), (2,)).add_(5),
    ],
)
def test_as_strided_reads_the_gaps_of_a_written_input(make, write) -> None:
    def function(x):
        write(x)
        return x.as_strided((2, 2), (1, 1)) + 1, x.sum()

    given, expected = make(), make()
    assert_close((lab.compile(function)(given), given), (function(expected), expected))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical_operators_use_the_common_dtype(name: str) -> None:
    """A 0-d tensor is converted to the dtype of the uint8 operand, so 256 is false."""
    x, one = torch.tensor([0, 1, 2], dtype=torch.uint8), torch.tensor(256)
    function = getattr(torch, name)
    assert_close(lab.compile(function)(one, x), function(one, x))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_a_product_with_one_term_is_not_a_sum(language: str) -> None:
    def function(x):
        weight = x.to(torch.float32).sigmoid()
        return weight @ weight.mT

    x = torch.tensor([[3]], dtype=torch.int8)
    assert_close(lab.compile(function, options={"language": language})(x), function(x))


def test_expanded_results_with_shared_memory_stay_expanded() -> None:
    """AOTAutograd recreates them from the input and their strides."""

    def function(x):
        twice = (x * 2)[:, None].expand(3, 4)
        return x.squeeze(0), x.expand(x.shape), twice, twice.detach(), twice.expand(3, 4)

    x = torch.arange(17.0)[:1].expand(3)
    results, expected = lab.compile(function, dynamic=True)(x), function(x)
    assert_close(results, expected)
    assert [r.stride() for r in results] == [r.stride() for r in expected]


def test_views_of_one_result_are_inputs_of_a_graph_that_writes() -> None:
    """Autograd requires that they have the same base, or none."""

    def function(x):
        turned = x.rot90()
        same = turned.expand_as(turned)
        found = turned.unique()
        turned.tril_()
        return found, same >= x, turned

    x = torch.arange(4).reshape(2, 2)
    assert_close(lab.compile(function)(x), function(x))


@pytest.mark.parametrize("view", [
    lambda v: v.split(2)[-1], lambda v: v[1:], torch.Tensor.mT.__get__, lambda v: v.reshape(-1),
    lambda v: v[:1].expand(5, 3, 4),
])  # fmt: skip
@pytest.mark.parametrize("last", [lambda v: v.tensor_split(3, 2)[1], lambda v: v[1:]])
def test_results_with_shared_memory_are_views_as_in_eager_mode(view, last) -> None:
    """If they were not views, AOTAutograd could not create views of them in the next graph."""

    def function(x):
        signs = x.sign()
        other = view(signs)
        torch._dynamo.graph_break()
        signs[:, 0] = 7
        return last(signs), other + 1, other

    x = torch.arange(24).reshape(2, 3, 4)
    found = lab.compile(function)(x)
    assert_close(found, function(x))
    assert found[2]._version > 0, "a write to the alias is noticed"


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_wide_sum_of_twice_rounded_values(dtype: torch.dtype) -> None:
    """GCC 13 miscompiles a chain of ternaries that select bits by comparisons of floats."""

    def function(x):
        top = x.amax(0)
        return top.sum(0, dtype=dtype), top.amax(0)

    x = torch.linspace(-9, 9, 140).to(torch.bfloat16).reshape(2, 70)
    assert_close(lab.compile(function)(x), function(x))


def test_a_count_with_functions_that_keep_the_sign_of_zero() -> None:
    """The same bug: the count was wrong if an argument of expm1 or log1p was zero."""

    def function(x):
        smooth = torch.nn.functional.selu(x)
        kept = x / (smooth.abs() + 1)
        return smooth.erfc(), kept @ kept[0], kept.nanmean(0)

    x = ((torch.arange(660).reshape(20, 33) % 23 - 11) / 4).movedim(0, -1)
    assert_close(lab.compile(function)(x), function(x))
    signs = torch.tensor([0.0, -0.0, 1e-40, -1e-40, 3.0, -0.5]).repeat(9)
    found = lab.compile(lambda x: (x.expm1(), x.log1p()))(signs)
    for values in found:
        assert torch.equal(values.signbit(), signs.signbit())


def test_a_nested_indirect_index_is_checked_only_where_it_is_used() -> None:
    """The last part of a split sum has elements beyond the end, whose indices are out of range."""

    def function(x):
        rows, columns = (torch.arange(2)[:, None] + torch.arange(n - 1) for n in x.shape[1:])
        windows = x[None, :, rows[:, :, None, None], columns].permute(0, 1, 2, 4, 3, 5)
        columns = windows.reshape(1, 12, -1)
        return torch.nn.functional.pad(columns, (1, 1), mode="reflect").mean((0, -1), True)

    x = torch.arange(36.0).reshape(3, 2, 6).sin()
    torch._dynamo.mark_dynamic(x, 2)
    compiled = lab.compile(function, options={"language": "triton"})
    assert_close(compiled(x), function(x))


@pytest.mark.parametrize("function", [lambda x, n: x[n:].max(-1), lambda x, n: x[n:].min(0)[1] + 1])
def test_an_extreme_of_an_empty_tensor_is_refused(function: Callable[..., Any]) -> None:
    fast = lab.compile(function)
    for n in (2, 3, 0, 4):
        assert_close(fast(floats(5), n), function(floats(5), n))
    for run in (function, fast):
        with pytest.raises(IndexError, match="non-zero size"):
            run(floats(5), 7)
