"""Positions out of range, in tensors with and without elements, and dtypes of libraries."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.exc import TorchRuntimeError

import inductor_lab as lab
from inductor_lab.compiler.base.errors import IndexOutOfRange
from tests.semantics.compare import assert_same, check_call, wave

READS = {
    "index": lambda x, i: x[i],
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i[:, None].expand(-1, 3)),
    "embedding": lambda x, i: F.embedding(i, x),
    "take": lambda x, i: x.take(i * 3),
}
WRITES = {
    "index_put": lambda x, i: x.index_put((i,), torch.ones(len(i), 3)),
    "index_add": lambda x, i: x.index_add(0, i, torch.ones(len(i), 3)),
    "scatter": lambda x, i: x.scatter(0, i[:, None].expand(-1, 3), 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(-1, 3), torch.ones(len(i), 3)),
}
OPERATORS = READS | WRITES


@pytest.mark.parametrize("rows", [0, 4])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_position_out_of_range_raises(name: str, rows: int) -> None:
    x, places = wave(rows, 3), torch.tensor([rows])
    function = OPERATORS[name]
    if name == "index_add" and not rows:
        pytest.skip("eager mode accepts any position for empty tensors")
    with pytest.raises((IndexError, RuntimeError)) as eager:
        function(x, places)
    with pytest.raises((eager.type, TorchRuntimeError)):  # Dynamo may raise it during capture
        lab.compile(function)(x, places)


SAME_EVERYWHERE = {
    "one row": lambda x, i: x[:1][i],
    "one row of a table": lambda x, i: F.embedding(i, x[:1]),
    "one row, computed": lambda x, i: (x[:1] * 2).index_select(0, i),
    "an expanded row": lambda x, i: x[:1].expand(4, 3)[i] + 1,
    "rows of a constant": lambda x, i: torch.full((4, 3), 2.0).gather(0, i[:, None]),
    "rows that are computed alike": lambda x, i: (x[0] * 2 + torch.zeros(4, 1))[i],
    "a sum": lambda x, i: x.sum()[None][i],
}


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("name", SAME_EVERYWHERE)
def test_an_unused_position_out_of_range_raises(name: str, language: str) -> None:
    function, x = SAME_EVERYWHERE[name], wave(4, 3)
    compiled = lab.compile(function, options={"language": language})
    assert_same(compiled(x, torch.tensor([0])), function(x, torch.tensor([0])))
    with pytest.raises((IndexError, RuntimeError)):
        function(x, torch.tensor([9]))
    with pytest.raises(IndexOutOfRange):
        compiled(x, torch.tensor([9]))


USED_UNDER_A_MASK = {
    "padded": lambda x, i: F.pad(x[i], (1, 1)),
    "beside others": lambda x, i: torch.cat([x[i], x.index_select(0, i) + 1], 1),
    "stacked": lambda x, i: torch.stack([x[i], x[i] + 1], 1),
    "in a slice": lambda x, i: torch.zeros(3, 5).slice_scatter(x[i], 1, 1, 4),
    "the largest neighbour": lambda x, i: F.max_pool1d(x[i][None], 2, 1, 1),
    "padded twice": lambda x, i: F.pad(F.pad(x[i], (1, 1)) * 2, (0, 0, 1, 1)),
}
SUMS = {
    "a sum of all": lambda x, i: x.index_select(0, i.sum(0, keepdim=True)),
    "sums of rows": lambda x, i: x.index_select(0, i[:, None].sum(1)) * 2,
    "sums of rows, padded": lambda x, i: F.pad(x.index_select(0, i[:, None].sum(1)), (1, 1)),
    "a maximum": lambda x, i: F.embedding(i[:, None].amax(1), x).sum(1),
    "running sums": lambda x, i: x.index_select(0, i.cumsum(0)),
}


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("function", [*USED_UNDER_A_MASK.values(), *SUMS.values()],
                         ids=[*USED_UNDER_A_MASK, *SUMS])  # fmt: skip
def test_a_computed_position_out_of_range_raises(function: Any, language: str) -> None:
    """It is computed before the mask of its load, or by a reduction."""
    compiled, x = lab.compile(function, options={"language": language}), wave(4, 3)
    for places in ([0, 2, 1], [1, 0, 1]):
        assert_same(compiled(x, torch.tensor(places)), function(x, torch.tensor(places)))
    for places in ([0, 0, 4], [9, 0, 0]):
        with pytest.raises((IndexError, RuntimeError)):
            function(x, torch.tensor(places))
        with pytest.raises(IndexOutOfRange):
            compiled(x, torch.tensor(places))


def test_a_position_is_checked_in_strips_of_columns() -> None:
    """A value that a column keeps in a local array is known only inside loops over the columns."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return x.roll((1, -1), (0, -1)).cumsum(0)

    compiled = lab.compile(function, dynamic=True)
    for rows, columns in ((2, 70), (4, 31)):
        x = torch.arange(rows * columns, dtype=torch.int32).reshape(rows, columns)
        assert_same(compiled(x), function(x))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_a_position_that_only_another_branch_uses_does_not_raise(language: str) -> None:
    """The last one is used as a value, not as a position."""

    def function(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[i[:2]], x[:1], (i[:, None] + 1).expand(3, 3)])

    compiled, x = lab.compile(function, options={"language": language}), wave(4, 3)
    given = torch.tensor([1, 3, 99])
    assert_same(compiled(x, given), function(x, given))


@pytest.mark.parametrize("language", ["cpp", "triton"])
def test_a_position_out_of_range_in_an_expanded_dimension_raises(language: str) -> None:
    def at(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x[i] + 1

    x = wave(1).expand(4)
    compiled = lab.compile(at, options={"language": language})
    assert_same(compiled(x, torch.tensor([3])), at(x, torch.tensor([3])))
    with pytest.raises(IndexOutOfRange):
        compiled(x, torch.tensor([4]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("name", ["index", "index_select", "embedding"])
def test_a_position_in_an_empty_tensor(name: str, shape: tuple[int, int]) -> None:
    x, places = torch.empty(shape), torch.tensor([shape[0] + 2])
    try:
        expected = READS[name](x, places)
    except (IndexError, RuntimeError):
        with pytest.raises((IndexError, RuntimeError, TorchRuntimeError)):
            lab.compile(READS[name])(x, places)
    else:
        assert_same(lab.compile(READS[name])(x, places), expected)


@pytest.mark.parametrize("name", OPERATORS)
def test_no_positions_in_an_empty_tensor(name: str) -> None:
    given = [wave(0, 3), torch.empty(0, dtype=torch.int64)]
    check_call(OPERATORS[name], lambda: given)


@pytest.mark.parametrize("dynamic", [False, True])
def test_no_rows_with_a_step_of_zero(dynamic: bool) -> None:
    """Their first element is the same for each column, and it does not exist."""

    def function(x):
        x[x < 0] = 0
        return x + 1, x.sum(0), x.cumsum(0)

    check_call(function, lambda: [torch.empty_strided((0, 3), (1, 0))], dynamic=dynamic)


def test_a_maximum_of_an_empty_dimension_raises() -> None:
    for function in (torch.max, torch.argmax, lambda x: x.amin(0)):
        with pytest.raises(RuntimeError):
            lab.compile(function)(torch.empty(0))


@pytest.mark.parametrize("dynamic", [False, True])
def test_dtypes_that_only_libraries_compute(dynamic: bool) -> None:
    def function(x):
        wide = x.float()
        moved = x.t().float(), x[1:].contiguous().float(), x.view(3, 8).t().reshape(-1).float()
        return wide * 2, *moved, (wide + 1).to(torch.float8_e5m2).float(), x.view(torch.uint8) + 1

    x = wave(4, 6).to(torch.float8_e4m3fn)
    assert_same(lab.compile(function, dynamic=dynamic)(x), function(x), strides=True)


def test_unsigned_integers() -> None:
    def function(a, b, c):
        return a.int() + 1, b.long() + 1, c.long() * 2, a.view(torch.int16)

    dtypes = (torch.uint16, torch.uint32, torch.uint64)
    check_call(function, lambda: [torch.arange(4).to(dtype) for dtype in dtypes])


def test_tensors_without_data() -> None:
    found = lab.compile(lambda x: (x + 1, x.sum(0), x.t()))(torch.empty(3, 4, device="meta"))
    assert [(t.device.type, t.shape) for t in found] == [
        ("meta", (3, 4)),
        ("meta", (4,)),
        ("meta", (4, 3)),
    ]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_tensor_with_its_negative_bit_set(dynamic: bool) -> None:
    def make():
        return [torch.complex(wave(4), wave(4)).conj().imag]

    check_call(lambda x: (x * 2, x[1:] + 1, x.view(2, 2).sum(0)), make, dynamic=dynamic)
