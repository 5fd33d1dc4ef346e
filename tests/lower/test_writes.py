"""Writes to inputs: in their own storage if no step needs the old value later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.schedule.verify import verify_schedule
from tests.semantics.compare import assert_same, sharing, wave


def add_one(x: torch.Tensor) -> None:
    x.add_(1)


def and_return(x: torch.Tensor) -> torch.Tensor:
    return x.mul_(2)


def old_and_new(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    x.copy_(y)
    return y


def swap(x: torch.Tensor, y: torch.Tensor) -> None:
    old = x.clone()
    x.copy_(y)
    y.copy_(old)


def old_value_later(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    total = x.flip(0).sum(1)
    x.add_(y)
    return total


def shifted(x: torch.Tensor) -> None:
    x.copy_(x.roll(1, 0) + 1)


def matmul_of_old(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x.clone()
    x.add_(1)
    return z @ y.t()


def through_a_view(x: torch.Tensor) -> torch.Tensor:
    x[1:].relu_()
    return x[0] + 1


def transposed(x: torch.Tensor) -> None:
    x.t().mul_(2)


def rows_of_themselves(x: torch.Tensor) -> None:
    x.sub_(x.amax(1, keepdim=True))


def new_storage(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.data = y * 2
    return x + 1


def one_into_both(x: torch.Tensor, y: torch.Tensor) -> None:
    new = x + y
    x.copy_(new)
    y.copy_(new)


def masked(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The new value reads the old one under a mask; later steps read all of the new one."""
    old = x.clone()
    x.copy_(torch.nn.functional.pad(x[1:-1], (0, 0, 1, 1)))
    return old * 2, old.sin()


FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    # function, number of inputs, number of inputs whose new value is computed in place
    "add_one": (add_one, 1, 1),
    "and_return": (and_return, 1, 1),
    "old_and_new": (old_and_new, 1, 1),
    "swap": (swap, 2, 1),
    "old_value_later": (old_value_later, 2, 1),
    "shifted": (shifted, 1, 0),
    "matmul_of_old": (matmul_of_old, 2, 1),
    "through_a_view": (through_a_view, 1, 1),
    "transposed": (transposed, 1, 0),
    "rows_of_themselves": (rows_of_themselves, 1, 1),
    "new_storage": (new_storage, 2, 0),
    "masked": (masked, 1, 0),
    "one_into_both": (one_into_both, 2, 2),
}


@pytest.mark.parametrize("language", ["cpp", "triton"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_new_values(name: str, language: str) -> None:
    function, count, in_place = FUNCTIONS[name]
    ours, theirs, kept = ([wave(6, 5) + k for k in range(count)] for _ in range(3))
    expected = function(*theirs)
    compilation = lab.inspect(function, *ours, options={"language": language})
    assert_same(compilation.result, expected)
    assert_same(ours, theirs)
    assert sharing(compilation.result, ours) == sharing(expected, theirs)
    part = compilation.graphs[0].forward
    verify(part.loops)
    verify_schedule(part.schedule)
    inputs = {write.input for write in part.loops.writes}
    made = [old for old in part.schedule.memory.reuse.values() if old in inputs]
    assert len(made) == in_place, str(part.schedule)
    given = [x.clone() for x in kept]
    runs = [stage.run(*given) for stage in (part.loops, part.schedule, part.executable)]
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2])
    assert_same(given, kept, rtol=0, atol=0)


def test_writes_are_part_of_the_text() -> None:
    compilation = lab.inspect(add_one, wave(3))
    assert "write  arg0_1.copy_(buf0)" in str(compilation.graphs[0].forward.loops)
    assert "buf0 = arg0_1  # in place" in str(compilation.graphs[0].forward.host)


def test_a_version_counter_is_incremented() -> None:
    x = wave(4)
    before = x._version
    lab.compile(add_one)(x)
    assert x._version > before


def test_running_moments_are_updated_in_place() -> None:
    ours, theirs = (torch.nn.BatchNorm1d(4) for _ in range(2))
    x = wave(3, 4)
    compilation = lab.inspect(ours, x)
    theirs(x)
    part = compilation.graphs[0].forward
    assert len(part.loops.writes) == len(part.schedule.memory.reuse) == 3
    assert ".copy_(" not in str(part.host)
    assert_same(list(ours.buffers()), list(theirs.buffers()))


def product_with_old(x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    y = x * kept.exp()
    kept.mul_(0.5).add_(1)
    return y


def product_with_both(x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    kept.mul_(0.5)
    y = (x * kept.clone()).sin()
    kept.add_(1)
    return y * kept.cos()


def keeps_what_it_returns(x: torch.Tensor, kept: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * kept.exp()
    kept.add_(y.detach()).clamp_(-1, 1)
    return y, kept.view(2, -1)


def new_value_is_saved(x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    kept.add_(1)
    return x * kept


GRADIENTS = (product_with_old, product_with_both, keeps_what_it_returns, new_value_is_saved)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", GRADIENTS)
def test_the_backward_gets_the_old_value_of_a_written_input(function: Any, dynamic: bool) -> None:
    """The forward overwrites what the backward reads.  Each call is made three times, because later
    calls skip AOTAutograd's wrapper."""
    compiled = lab.compile(function, dynamic=dynamic)
    for _ in range(3):
        seen = []
        for run in (compiled, function):
            x, kept = wave(4).requires_grad_(), wave(4) + 1
            result = run(x, kept)
            versions = kept._version
            (result[0] if isinstance(result, tuple) else result).cos().sum().backward()
            seen.append((result, x.grad, kept, versions > 0))
        assert_same(*seen)


def test_a_saved_input_that_is_written_later_is_copied() -> None:
    compiled = lab.compile(new_value_is_saved)
    for _ in range(3):
        x, kept = wave(4).requires_grad_(), wave(4)
        result = compiled(x, kept)
        right = kept.clone()
        kept.zero_()
        result.sum().backward()
        assert_same(x.grad, right)
