"""What libraries and operators of the user return: other than promised is repaired, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.library import Library, custom_op

import inductor_lab as lab
from inductor_lab.errors import BrokenPromise
from inductor_lab.runtime.memory import laid_out, restrided

Result = Callable[[torch.Tensor], torch.Tensor]
SPACE = "promises"

BROKEN: dict[str, tuple[Result, Result, str]] = {
    "shorter": (lambda x: x[:10].clone(), torch.empty_like, r"float32\[10\].*float32\[100000\]"),
    "longer": (lambda x: torch.cat([x, x]), torch.empty_like, r"\[200000\].*\[100000\]"),
    "narrower": (lambda x: x.to(torch.int8), torch.empty_like, "int8.*float32"),
    "of_more_dimensions": (lambda x: x.view(2, -1).clone(), torch.empty_like, r"\[2, 50000\]"),
    "of_fewer_dimensions": (torch.sum, torch.empty_like, r"float32\[\]"),
    "empty": (lambda x: x[:0].clone(), torch.empty_like, r"float32\[0\]"),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def operator(name: str, computed: Result, promised: Result) -> Callable[..., Any]:
    @custom_op(f"{SPACE}::{name}", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return computed(x)

    op.register_fake(promised)
    return op


OPERATORS = {name: operator(name, made, said) for name, (made, said, _) in BROKEN.items()}


@pytest.mark.parametrize("name", BROKEN)
def test_another_size_or_dtype_than_promised_is_refused(name: str) -> None:
    op, (_, _, told) = OPERATORS[name], BROKEN[name]
    compiled = lab.compile(lambda x: op(x).sin() + x)
    with pytest.raises(BrokenPromise, match=told) as caught:
        compiled(torch.randn(100_000))
    assert f"{SPACE}.{name}" in str(caught.value) and "register_fake" in str(caught.value)


def test_so_are_symbolic_sizes_and_one_of_several_results() -> None:
    longer = OPERATORS["longer"]
    compiled = lab.compile(lambda x: longer(x) + x, dynamic=True)
    with pytest.raises(BrokenPromise, match=r"\[14\].*\[7\]"):
        compiled(torch.randn(7))

    @custom_op(f"{SPACE}::pair", mutates_args=())
    def pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.clone(), x[:1].clone()

    pair.register_fake(lambda x: (torch.empty_like(x), torch.empty_like(x)))
    with pytest.raises(BrokenPromise, match=r"pair.*\[1\].*\[9\]"):
        lab.compile(lambda x: sum(pair(x)))(torch.randn(9))


def test_a_size_that_only_the_result_tells_may_be_any() -> None:
    @custom_op(f"{SPACE}::positive", mutates_args=())
    def positive(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0].clone()

    def promised(x: torch.Tensor) -> torch.Tensor:
        return x.new_empty(torch.library.get_ctx().new_dynamic_size())

    positive.register_fake(promised)
    x = torch.randn(50)
    compiled = lab.compile(lambda x: positive(x) * 2, fullgraph=True)
    for sign in (1, -1):
        torch.testing.assert_close(compiled(sign * x), positive(sign * x) * 2)


def test_other_strides_than_promised_are_repaired() -> None:
    @custom_op(f"{SPACE}::columns", mutates_args=())
    def columns(x: torch.Tensor) -> torch.Tensor:
        return x.t().clone().t()

    columns.register_fake(lambda x: x.new_empty(x.shape))
    x = torch.randn(5, 7)
    torch.testing.assert_close(lab.compile(lambda x: columns(x) + x)(x), x + x)


def test_what_laid_out_does() -> None:
    x, f32 = torch.arange(6.0).view(2, 3), torch.float32
    assert laid_out(x, (2, 3), (3, 1), f32, "op") is x
    assert laid_out(None, (2, 3), (3, 1), f32, "op") is None
    columns = laid_out(x, (2, 3), (1, 2), f32, "op")
    assert columns.stride() == (1, 2) and torch.equal(columns, x)
    row = laid_out(x[:1], (1, 3), (9, 1), f32, "op")
    assert row.stride() == (9, 1) and row.data_ptr() == x.data_ptr()
    with pytest.raises(BrokenPromise, match="op returned float32"):
        laid_out(x, (3, 2), (2, 1), f32, "op")


def test_what_aten_returns_may_be_of_another_size_where_no_kernel_reads_it() -> None:
    """Of an embedding bag nobody needs the places of, and it returns none, as eager does."""

    def bags(weight: torch.Tensor, places: torch.Tensor, starts: torch.Tensor) -> Any:
        return torch.ops.aten._embedding_bag_forward_only(weight, places, starts)

    given = torch.randn(5, 3).bfloat16(), torch.tensor([1, 2, 4, 4, 0]), torch.tensor([0, 3])
    for ours, eager in zip(lab.compile(bags)(*given), bags(*given), strict=True):
        torch.testing.assert_close(ours, eager)


def test_a_library_may_return_none_for_a_tensor() -> None:
    """As some of cuDNN's do, where only a backward that nobody asked for would need it."""
    assert restrided(None, (3, 1)) is None
    library = Library(SPACE, "FRAGMENT")
    library.define("half_of_it(Tensor x) -> (Tensor, Tensor)")
    library.impl("half_of_it", lambda x: (x + 1, None), "CPU")
    torch.library.register_fake(
        f"{SPACE}::half_of_it", lambda x: (torch.empty_like(x), torch.empty_like(x)), lib=library
    )
    op = torch.ops.promises.half_of_it

    def program(x: torch.Tensor) -> torch.Tensor:
        first, second = op(x)
        return first * 2 if second is not None else first

    x = torch.randn(4)
    torch.testing.assert_close(lab.compile(program)(x), (x + 1) * 2)
