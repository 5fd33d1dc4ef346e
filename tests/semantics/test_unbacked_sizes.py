"""Sizes and numbers that depend on data (`nonzero`, `item()`), captured in the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo.config as dynamo_config

import inductor_lab as lab
from inductor_lab.compiler.ir.slice_ops import OPERATORS
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.schedule.verify import verify_schedule
from tests.semantics.compare import assert_same, check_call, leaves, wave, with_gradients

WHOLE = torch.tensor([1, 0, 2, 0, 3])
REAL = torch.tensor([-1.0, 2.0, 3.0, -4.0, 5.0])
TABLE = torch.arange(20.0).reshape(4, 5).sin().relu()


def ones(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The positions themselves are not needed, but their number is."""
    count = x.nonzero().shape[0]
    return torch.ones(count, 3).sum(1), count * 2


def around(x: torch.Tensor) -> torch.Tensor:
    """A kernel computes the size, and another kernel needs the size and the same input."""
    count = (x.abs() + 1).sum().item()
    return torch.arange(count).flip(0) + (x.abs() + 1)[:1]


def zeros(count: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    size = count.item()
    torch._check(size >= 0)
    return torch.zeros(size) + x.sum()


def first(count: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    size = count.item()
    torch._check(size >= 0)
    torch._check(size <= x.shape[0])
    return x[:size] * 2


def pair(both: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    a, b = both.tolist()
    return x + a * b


def rounded(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
    """A size that is computed from a float."""
    count = int(x.abs().sum().item() * 1.5) + 1
    return torch.zeros(count), x + count, int(x.mean().item())


def yes_or_no(x: torch.Tensor) -> torch.Tensor:
    return x + (x.sum() > 0).item()


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "nonzero": (lambda x: x.nonzero().sum(0), (TABLE,)),
    "indexed": (lambda x: x[x.nonzero().squeeze(1)] * 2 + 1, (WHOLE,)),
    "selected": (lambda x: torch.masked_select(x, x > 0).sin() + 1, (REAL,)),
    "boolean index": (lambda x: x[x > 0].exp().sum(), (REAL,)),
    "number": (lambda x: x * x.max().item() + 1, (WHOLE,)),
    "float": (lambda x: x - x.mean().item(), (REAL,)),
    "returned": (lambda x: x.sum().item() + 1, (REAL,)),
    "unique": (lambda x: torch.unique(x) + 1, (WHOLE,)),
    "repeated": (lambda n, x: torch.repeat_interleave(x, n) * 2, (WHOLE, REAL)),
    "where": (lambda x: torch.where(x > 0)[0] + 1, (TABLE,)),
    "joined": (lambda x: torch.cat([x.nonzero(), x.nonzero() + 1]), (WHOLE,)),
    "viewed": (lambda x: (x.nonzero().reshape(-1) * 2).view(-1, 1).t(), (WHOLE,)),
    "ones": (ones, (WHOLE,)),
    "around": (around, (WHOLE,)),
    "zeros": (zeros, (torch.tensor(3), REAL)),
    "first": (first, (torch.tensor(3), REAL)),
    "rounded": (rounded, (REAL,)),
    "yes or no": (yes_or_no, (REAL,)),
    "rows of unknown many": (lambda x, i: x[x > 0][i] * 2, (REAL, WHOLE[:3])),
    "last of few": (lambda x: (x[x > 2.5][-4:] * 2, x[x > 9][-1:], x[x > 9][1:]), (REAL,)),
    "largest": (lambda x: x[x > 0].max() + x[x < 0].argmin(), (REAL,)),
    "pair": (pair, (torch.tensor([2, 3]), REAL)),
}


@pytest.fixture(autouse=True)
def captured() -> Iterator[None]:
    with dynamo_config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def test_sizes_that_torch_assumes_to_be_equal_are_compared() -> None:
    """Which of the two is 1 and broadcasts is unknown at compile time."""

    def function(n):
        k = n.item()
        return torch.arange(abs(k) % 3) - torch.full((abs(k) % 5,), k)

    compiled = lab.compile(function)
    assert_same(compiled(torch.tensor(-1)), function(torch.tensor(-1)))
    assert_same(compiled(torch.tensor(2)), function(torch.tensor(2)))
    with pytest.raises(RuntimeError, match="is false, but the compiled program requires it"):
        compiled(torch.tensor(-4))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x[-n.item() :].squeeze(-1),
        lambda x, n: x[-n.item() :].squeeze() + 1,
        lambda x, n: x[None, -n.item() :].squeeze((0, 1)),
    ],
)
def test_squeeze_checks_unbacked_sizes(function: Callable[..., torch.Tensor]) -> None:
    """torch assumes that an unbacked size is not 1."""
    compiled = lab.compile(function)
    for length in (3, 2, 6):
        given = torch.arange(6.0), torch.tensor(length)
        assert_same(compiled(*given), function(*given))
    with pytest.raises(RuntimeError, match="is false, but the compiled program requires it"):
        compiled(torch.arange(6.0), torch.tensor(1))


@pytest.mark.parametrize("dynamic", [None, True])
def test_the_backward_gets_the_lengths_in_a_saved_size(dynamic: bool | None) -> None:
    """The saved size is the minimum of an unbacked and a backed length."""

    def function(x, n):
        n, x = n.item(), x * 1
        first = x[: n + 1]
        x.expand(2, *x.shape)[0].add_(1)
        return first[..., : n % 3].sum(-1)

    compiled = lab.compile(function, dynamic=dynamic)
    for n in map(torch.tensor, (2, 3, 1, 0, -1, -2)):
        leaves = [torch.arange(6.0, requires_grad=True) for _ in range(2)]
        results = [call(leaf, n) for call, leaf in zip((function, compiled), leaves, strict=True)]
        assert_same(results[1], results[0])
        assert_same(*(torch.autograd.grad(result, leaf)[0]
                      for result, leaf in zip(results, leaves, strict=True)))  # fmt: skip


def test_a_slice_has_the_length_that_torch_assumes() -> None:
    """The unused sum makes torch assume that both lengths are equal."""

    def function(x, n):
        last = x.tensor_split([n.item() % -2], 0)[1]
        x + last
        return last

    compiled, x = lab.compile(function), torch.arange(2).expand(3, 2)
    for n in map(torch.tensor, (2, 0, -4)):
        assert_same(compiled(x, n), function(x, n))
    with pytest.raises(RuntimeError, match="is false, but the compiled program requires it"):
        compiled(x, torch.tensor(3))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_repeats_computed_by_bitwise_operations(language: str) -> None:
    def function(x, n):
        return x.repeat(abs(n ^ 1) % 4, 1), x > x

    compiled, x = lab.compile(function, options={"language": language}), torch.rand(2, 70)
    for n in (3, 2, 1, 0, -1, -5):
        assert_same(compiled(x, n), function(x, n))


def test_an_empty_slice_binds_its_length() -> None:
    def function(x, n):
        first = x[None][: n.item() >> 1]
        return first * 2, first - first

    given = torch.empty(0, 3), torch.tensor(-1)
    assert_same(lab.compile(function)(*given), function(*given))


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_one_graph(name: str, language: str) -> None:
    function, given = FUNCTIONS[name]
    expected = function(*given)
    compilation = lab.inspect(function, *given, options={"language": language, "fullgraph": True})
    assert_same(compilation.result, expected)
    (graph,) = compilation.graphs
    verify(graph.forward.loops)
    verify_schedule(graph.forward.schedule)
    inputs = [x for x in graph.inputs if isinstance(x, torch.Tensor)]
    runs = (graph.forward.loops, graph.forward.schedule, graph.forward.executable)
    one, two, three = (stage.run(*inputs) for stage in runs)
    assert_same(one, three)
    assert_same(two, three)


def test_other_data_with_other_sizes() -> None:
    compiled = torch.compile(FUNCTIONS["boolean index"][0], backend="inductor_lab", fullgraph=True)
    for x in (REAL, -REAL, REAL.abs(), -REAL.abs()):
        assert_same(compiled(x), x[x > 0].exp().sum())


NONE = {
    "largest": lambda x: x[x > 9].max(),
    "place": lambda x: x[x > 9].argmax(),
    "row": lambda x: x[x > 9][torch.zeros(2, dtype=torch.int64)],
}


@pytest.mark.parametrize("name", NONE)
def test_empty_inputs_are_accepted(name: str) -> None:
    compiled = lab.compile(NONE[name], fullgraph=True)
    assert_same(compiled(REAL + 9), NONE[name](REAL + 9))
    with pytest.raises((RuntimeError, IndexError)):
        compiled(REAL)


def test_gradients() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0].exp() * 2

    expected = with_gradients(function, [REAL])
    assert_same(with_gradients(lab.compile(function, fullgraph=True), [REAL]), expected)


def test_without_capture_the_graph_breaks() -> None:
    with dynamo_config.patch(capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False):
        compilation = lab.inspect(FUNCTIONS["indexed"][0], WHOLE)
    assert compilation.capture.breaks
    assert_same(compilation.result, WHOLE[WHOLE.nonzero().squeeze(1)] * 2 + 1)


def window(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    i = at.item()
    return x[:, i : i + 2]


def ends(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
    i = at.item()
    return x[:, i:], x[:, :i], x[:, i::2]


def computed(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Views of a computed tensor, which are returned with it and used."""
    i, y = at.item(), x * 2
    return y, y[:, i : i + 2], y[i], (x.exp()[:, i : i + 2] + 1).sum(0), (x + 1)[i] * 2


def written(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Writes at such positions."""
    i, y, z = at.item(), x.clone(), x.clone()
    y[i] = 7.0
    z[i:, 1:4:2].mul_(2.0)
    x[:, i : i + 2] += 1
    return y, z


NOT_IN_2_11 = pytest.mark.skipif(
    torch.__version__.startswith("2.11"), reason="AOTAutograd cannot functionalize it in torch 2.11"
)


@pytest.mark.parametrize("at", [0, 1, 3, -1, -2])
@pytest.mark.parametrize(
    "function", [window, ends, computed, pytest.param(written, marks=NOT_IN_2_11)]
)
def test_a_view_at_an_unbacked_offset(function: Callable[..., Any], at: int) -> None:
    def make() -> tuple[torch.Tensor, torch.Tensor]:
        return wave(4, 6), torch.tensor(at)

    check_call(function, make, fullgraph=True)
    one, other = (lambda a, b, f=f: f(a, b) for f in (function, lab.compile(function)))
    for late, early in zip(leaves(one(*make())), leaves(other(*make())), strict=True):
        assert late.storage_offset() == early.storage_offset()


def test_a_position_out_of_range_is_an_index_error() -> None:
    compiled = torch.compile(lambda x, at: x.exp()[at.item()], backend="inductor_lab")
    assert_same(compiled(REAL, torch.tensor(-5)), REAL.exp()[-5])
    with pytest.raises(IndexError, match=r"out of (range|bounds)"):
        compiled(REAL, torch.tensor(5))
    assert OPERATORS.position_in.default(5, -5) == 0
    with pytest.raises(IndexError, match="index 5 is out of bounds for a dimension of size 5"):
        OPERATORS.position_in.default(5, 5)


def counted(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    found = x.nonzero()
    torch._check(found.size(0) == 4)
    return found + 3


def known(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    n = t.sum().item()
    torch._check(n == 4)
    return x * n


@pytest.mark.parametrize("function", [counted, known])
def test_checks_in_the_program_are_tested(function: Callable[..., Any]) -> None:
    """torch replaces sizes according to a check; they are tested before memory is read."""
    compiled = lab.compile(function, fullgraph=True, dynamic=True)
    fine, wrong = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.0, 1.0, 0.0])
    assert_same(compiled(fine, torch.tensor([3, 1])), function(fine, torch.tensor([3, 1])))
    for x, t in ((wrong, torch.tensor([3, 2])), (wrong, torch.tensor([1]))):
        with pytest.raises(RuntimeError):
            function(x, t)
        with pytest.raises(RuntimeError):
            compiled(x, t)


@dynamo_config.patch(capture_scalar_outputs=True)
def test_the_backward_renames_symbols_of_sizes() -> None:
    """torch traces outputs twice, and the gradient's size has the symbol of the first trace."""

    def function(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        n = t.item()
        torch._check(n >= 0)
        return torch.zeros(n % 3 + 2)[:, None] * x.sin() + x[: n % 3].sum()

    compiled = lab.compile(function, fullgraph=True)
    for n in (4, 5, 7, 3):
        gradients = []
        for run in (compiled, function):
            x = torch.arange(5.0, requires_grad=True)
            run(x, torch.tensor(n)).cos().sum().backward()
            gradients.append(x.grad)
        assert_same(*gradients)


@dynamo_config.patch(capture_scalar_outputs=True)
@pytest.mark.parametrize("length", [1, 5])
def test_a_returned_slice_of_an_input_from_a_number(length: int) -> None:
    """For one element, torch has a storage offset that is unbound in the graph."""

    def function(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return x[..., at.item() :]

    torch.compiler.reset()
    compiled = lab.compile(function, fullgraph=True)
    x = torch.arange(float(length))
    for n in (1, 3, -2, 0, 9):
        found, expected = (run(x, torch.tensor(n)) for run in (compiled, function))
        assert_same(found, expected)
        assert found.numel() == 0 or found.data_ptr() == expected.data_ptr()


@dynamo_config.patch(capture_scalar_outputs=True)
def test_sizes_from_an_integer_of_numpy() -> None:
    """It becomes a tensor, and torch computes the second length as 6 minus the first."""
    compiled = lab.compile(lambda x, n: x.split([n, 6 - n]))
    x = torch.arange(24.0).view(6, 4)
    for n in (1, 4, 0, 6):
        found = compiled(x, np.int64(n))
        assert [part.shape[0] for part in found] == [n, 6 - n]
        assert torch.equal(torch.cat(found), x)
    with pytest.raises(RuntimeError):
        compiled(x, np.int64(7))


@pytest.mark.parametrize("check_bounds", [False, True])
def test_expanded_elements_of_an_empty_tensor_are_not_read(check_bounds: bool) -> None:
    """If a size is 0, the positions of all rows are that of the first row, which does not exist."""

    def function(n: int) -> torch.Tensor:
        row = torch.full((abs(n) % 5,), n * 2)
        return torch.stack([row, row + 1, row], 0).sum(0)

    compiled = lab.compile(function, fullgraph=True, options={"check_bounds": check_bounds})
    for n in (7, -3, 0, 5, 12):
        assert_same(compiled(n), function(n))
