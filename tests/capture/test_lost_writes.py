"""Attributes that are written before and after an operator with a function of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import inductor_lab as lab
from inductor_lab.compiler.base.errors import RunsUncompiled
from inductor_lab.compiler.capture.lost_writes import loses_writes
from inductor_lab.compiler.torch_door.torch_names import missing

Tensor = torch.Tensor
Between = Callable[[Tensor], Tensor]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Counting(torch.nn.Module):
    """Writes attributes before and after `between`, and returns what depends on them."""

    def __init__(self, between: Between, before: bool = True) -> None:
        super().__init__()
        self.between, self.before = between, before
        self.calls, self.last = 0, -1
        self.seen: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        if self.before:
            self.calls += 1
            self.seen.append(1)
        y = self.between(x)
        self.calls += 1
        self.seen.append(2)
        self.last = self.calls
        return y + self.calls + self.last + len(self.seen)


def hooked(x: Tensor) -> Tensor:
    y = x.sin()
    y.register_hook(lambda grad: grad * 2)
    return y


def chosen(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))


def repeated(x: Tensor) -> Tensor:
    loop = torch._higher_order_ops.while_loop
    return loop(lambda x: x.sum() < 100, lambda x: (x + 1,), (x.detach(),))[0]


def checkpointed(x: Tensor) -> Tensor:
    return checkpoint(torch.sin, x, use_reentrant=False)


LOST: list[Between] = [hooked, chosen, repeated]
KEPT: list[Between] = [checkpointed, torch.vmap(torch.sin), torch.sin]


def attributes(module: Counting) -> tuple[Any, ...]:
    return module.calls, module.last, tuple(module.seen)


@pytest.mark.parametrize("between", [*LOST, *KEPT], ids=lambda f: f.__name__)
@pytest.mark.parametrize("before", [True, False])
def test_all_writes_are_kept(between: Between, before: bool) -> None:
    ours, eager = Counting(between, before), Counting(between, before)
    fast = lab.compile(ours)
    x = torch.ones(3, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RunsUncompiled)
        for _ in range(3):
            torch.testing.assert_close(fast(x), eager(x))
            assert attributes(ours) == attributes(eager)
    said = [str(one.message) for one in caught if one.category is RunsUncompiled]
    if between in LOST and before and not missing("lost writes"):
        assert "would lose writes to 'calls', 'last'" in said[0]
        assert "test_lost_writes.py" in said[0]
    else:
        assert not said


@dataclass
class Count:
    n: int = 0


def counts(between: Between) -> Callable[[Tensor], Tensor]:
    """A function that makes and drops the object that it writes."""

    def function(x: Tensor) -> Tensor:
        count = Count()
        count.n += 1
        y = between(x)
        count.n += 1
        y = y + count.n
        count.n += 5
        return y + count.n

    return function


def counting(x: Tensor) -> Tensor:
    """An operator whose functions write an object of their own."""

    def function(x: Tensor) -> Tensor:
        count = Count()
        count.n += 2
        return x * count.n

    return torch.cond(x.sum() > 0, function, lambda x: x.cos(), (x,))


def turns(between: Between) -> Callable[[Tensor], Tensor]:
    """The write stands above the operator, but is done after it in the second turn."""

    def function(x: Tensor) -> Tensor:
        count = Count()
        for _ in range(2):
            count.n += 1
            x = between(x) + count.n
        return x

    return function


def one_line(between: Between) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        count = Count(); count.n += 1; y = between(x); count.n += 1  # noqa: E702
        return y + count.n  # fmt: skip

    return function


class Plain:
    n = 0


def first_write(between: Between) -> Callable[[Tensor], Tensor]:
    """The object is known before the operator, and first written after it."""

    def function(x: Tensor) -> Tensor:
        plain = Plain()
        assert "n" not in vars(plain)
        y = between(x)
        plain.n += 1
        return y + plain.n + len(vars(plain))

    return function


@pytest.mark.parametrize("between", LOST, ids=lambda f: f.__name__)
@pytest.mark.parametrize("made", [counts, turns, one_line, first_write], ids=lambda f: f.__name__)
def test_an_object_of_the_function_itself(
    made: Callable[[Between], Callable[[Tensor], Tensor]], between: Between
) -> None:
    x = torch.ones(3, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsUncompiled)
        torch.testing.assert_close(lab.compile(made(between))(x), made(between)(x))


def scaled(x: Tensor, count: Count, between: Between) -> Tensor:
    count.n += 3
    return between(x) * count.n


def earlier(between: Between) -> Callable[[Tensor], Tensor]:
    """Each object is written only before the operator that follows it, or only after it."""

    def function(x: Tensor) -> Tensor:
        count = Count()
        count.n += 1
        for turn in range(2):
            x = scaled(
                x,
                Count(n=turn),
                between,
            )
        late = Count()
        late.n += 2
        return x * count.n + late.n

    return function


@pytest.mark.parametrize("between", [*LOST, *KEPT], ids=lambda f: f.__name__)
def test_objects_whose_writes_are_on_one_side_are_compiled(between: Between) -> None:
    x = torch.ones(3, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RunsUncompiled)
        torch.testing.assert_close(lab.compile(earlier(between))(x), earlier(between)(x))


def test_an_object_of_the_operator_itself() -> None:
    x = torch.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RunsUncompiled)
        torch.testing.assert_close(lab.compile(counting)(x), counting(x))


def test_another_trace_does_not_matter() -> None:
    """The second version of a function, after one that was skipped, loses nothing."""
    module = Counting(chosen)
    fast = lab.compile(module)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RunsUncompiled)
        fast(torch.ones(3))
        module.before = False
        fast(torch.ones(4))
    assert len([one for one in caught if one.category is RunsUncompiled]) <= 1


def test_nothing_is_lost_outside_of_a_trace() -> None:
    module = torch.fx.symbolic_trace(lambda x: x.sin())
    assert loses_writes(module) is None
    module.graph.call_function(torch.ops.higher_order.cond)
    assert loses_writes(module) is None
