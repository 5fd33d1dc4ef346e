"""Results of libraries and user operators that differ from meta functions are copied or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.library import Library, custom_op

import inductor_lab as lab
from inductor_lab.compiler.base.errors import BrokenPromise
from inductor_lab.compiler.runtime.memory import laid_out, restrided

Result = Callable[[torch.Tensor], torch.Tensor]
SPACE = "promises"

BROKEN: dict[str, tuple[Result, Result, str]] = {
    "shorter": (lambda x: x[:10].clone(), torch.empty_like, r"float32\[10\].*float32\[100000\]"),
    "longer": (lambda x: torch.cat([x, x]), torch.empty_like, r"\[200000\].*\[100000\]"),
    "narrower": (lambda x: x.to(torch.int8), torch.empty_like, "int8.*float32"),
    "of_more_dimensions": (lambda x: x.view(2, -1).clone(), torch.empty_like, r"\[2, 50000\]"),
    "of_fewer_dimensions": (torch.sum, torch.empty_like, r"float32\[\]"),
    "empty": (lambda x: x[:0].clone(), torch.empty_like, r"float32\[0\]"),
    "elsewhere": (lambda x: x.to("meta"), torch.empty_like, "on meta.*on cpu"),
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
def test_results_with_an_unexpected_size_or_dtype_are_refused(name: str) -> None:
    op, (_, _, told) = OPERATORS[name], BROKEN[name]
    compiled = lab.compile(lambda x: op(x).sin() + x)
    with pytest.raises(BrokenPromise, match=told) as caught:
        compiled(torch.randn(100_000))
    said = str(caught.value)
    assert f"{SPACE}.{name}" in said and "register_fake" in said
    assert "compiled = lab.compile(lambda x: op(x).sin() + x)" in said


def test_unexpected_symbolic_sizes_and_one_of_several_results_are_refused() -> None:
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


def test_unbacked_sizes_of_results_can_have_any_value() -> None:
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


def test_results_with_unexpected_strides_are_copied() -> None:
    @custom_op(f"{SPACE}::columns", mutates_args=())
    def columns(x: torch.Tensor) -> torch.Tensor:
        return x.t().clone().t()

    columns.register_fake(lambda x: x.new_empty(x.shape))
    x = torch.randn(5, 7)
    torch.testing.assert_close(lab.compile(lambda x: columns(x) + x)(x), x + x)


def test_laid_out() -> None:
    x, f32 = torch.arange(6.0).view(2, 3), torch.float32
    assert laid_out(x, (2, 3), (3, 1), f32, "op") is x
    columns = laid_out(x, (2, 3), (1, 2), f32, "op")
    assert columns.stride() == (1, 2) and torch.equal(columns, x)
    row = laid_out(x[:1], (1, 3), (9, 1), f32, "op")
    assert row.stride() == (9, 1) and row.data_ptr() == x.data_ptr()
    with pytest.raises(BrokenPromise, match="op returned float32"):
        laid_out(x, (3, 2), (2, 1), f32, "op")
    with pytest.raises(BrokenPromise, match=r"on cpu, but .* on meta"):
        laid_out(x, (2, 3), (3, 1), f32, "op", device=torch.device("meta"))


def test_unused_results_of_aten_can_have_another_size() -> None:
    """An embedding bag returns empty offsets if they are unused, as in eager mode."""

    def bags(weight: torch.Tensor, places: torch.Tensor, starts: torch.Tensor) -> Any:
        return torch.ops.aten._embedding_bag_forward_only(weight, places, starts)

    given = torch.randn(5, 3).bfloat16(), torch.tensor([1, 2, 4, 4, 0]), torch.tensor([0, 3])
    for ours, eager in zip(lab.compile(bags)(*given), bags(*given), strict=True):
        torch.testing.assert_close(ours, eager)


@pytest.fixture
def half() -> Iterator[Result]:
    """An operator that returns None instead of its second tensor.

    Some operators of cuDNN do this if only a backward would need the tensor, and there is none.
    """
    library = Library(SPACE, "FRAGMENT")
    library.define("half_of_it(Tensor x) -> (Tensor, Tensor)")
    library.impl("half_of_it", lambda x: (x + 1, None), "CPU")
    torch.library.register_fake(
        f"{SPACE}::half_of_it", lambda x: (torch.empty_like(x), torch.empty_like(x)), lib=library
    )
    yield torch.ops.promises.half_of_it
    library._destroy()


def test_an_unused_result_can_be_none(half: Result) -> None:
    assert restrided(None, (3, 1)) is None
    x = torch.randn(4)
    compilation = lab.inspect(lambda x: half(x)[0] * 2, x)
    part = compilation.graphs[0].forward
    for stage in (part.executable, part.loops, part.schedule):
        torch.testing.assert_close(stage.run(x)[0], (x + 1) * 2)


@pytest.mark.parametrize("used", ["kernel", "library", "caller"])
def test_a_used_result_must_not_be_none(half: Result, used: str) -> None:
    uses = {
        "kernel": lambda first, second: first * second,
        "library": lambda first, second: first @ second,
        "caller": lambda first, second: (first + 1, second),
    }
    use = uses[used]

    def program(x: torch.Tensor) -> Any:
        first, second = half(x)
        return use(first, second)

    with pytest.raises(BrokenPromise, match=r"returned None.*\n.*first, second = half\(x\)"):
        lab.compile(program)(torch.randn(4))
