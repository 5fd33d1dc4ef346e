"""Stateful functions: each run starts from the same state, and blame reports no error."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.debug.compare.state import Kept

running = torch.zeros(4)
calls: list[int] = []


def adds_to_a_global(x: torch.Tensor) -> torch.Tensor:
    running.add_(1)
    return x * running


def lengthens_a_list(x: torch.Tensor) -> torch.Tensor:
    calls.append(len(calls))
    return x * len(calls)


def closure() -> Callable[..., Any]:
    count, state = 0, torch.zeros(4)

    def counted(x: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        state.add_(count)
        return x * state

    return counted


class Memory(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.calls = 0
        self.past: dict[int, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.total += x.detach()
        self.past[self.calls] = self.total.clone()
        return x * self.total * self.calls


def normalized_twice() -> Callable[..., Any]:
    layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4, momentum=0.5))
    return lambda x: layers(x.expand(3, 4) * torch.arange(3.0)[:, None]) + layers[1].running_mean


def training_step() -> Callable[..., Any]:
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(x: torch.Tensor) -> Any:
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach(), model.weight.detach().clone()

    return step


def draws_from_python(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x * random.random()


@pytest.mark.parametrize("make", [
    lambda: adds_to_a_global, lambda: lengthens_a_list, closure, Memory, normalized_twice,
    training_step, lambda: draws_from_python,
])  # fmt: skip
def test_stateful_functions_are_reported_as_right(make) -> None:
    torch.manual_seed(0)
    found = lab.blame(make(), torch.randn(4))
    assert found.fault is None and found.stages[0].verdict == "right", str(found)


def test_blame_restores_state() -> None:
    module = Memory()
    lab.blame(module, torch.ones(4))
    assert module.calls == 0 and module.past == {} and module.total.eq(0).all()
    lab.blame(adds_to_a_global, torch.ones(4))
    assert running.eq(0).all()
    module(torch.ones(4))
    assert module.calls == 1 and module.total.eq(1).all()


def test_state_changes_of_a_stage_are_compared() -> None:
    """The captured graph writes to the buffer as in eager mode; the compiled graph does not."""
    with lab.faults.dropped_write():
        found = lab.blame(Memory(), torch.ones(4))
    assert found.fault is not None and "total" in str(found)


def test_state_that_cannot_be_restored_is_reported() -> None:
    numbers = iter(range(1, 100))
    found = lab.blame(lambda x: x * next(numbers), torch.ones(4))
    assert found.fault is None and found.stages[0].verdict == "unknown"
    assert any("keeps state that cannot be put back" in note for note in found.notes)


def test_a_captured_graph_that_is_wrong_is_still_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    from inductor_lab.debug.blame.watch_call import Site

    right = Site.first_call
    monkeypatch.setattr(
        Site, "first_call", lambda site, *given: [r + 1 for r in right(site, *given)]
    )
    found = lab.blame(lambda x: x.sin(), torch.ones(4))
    assert found.fault is not None and found.fault.stage == "captured"


def test_random_results_are_not_compared() -> None:
    found = lab.blame(torch.nn.Dropout(0.5), torch.ones(40))
    assert found.fault is None and "no result to compare" in found.summary
    assert "bits that eager computes" not in found.summary


def test_every_kind_of_state_is_restored() -> None:
    class Bag:
        shared: list[int] = []

        def __init__(self) -> None:
            self.items: dict[str, Any] = {"a": [1, 2], "b": {3}}
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.draws = torch.Generator().manual_seed(0)

    bag = Bag()
    kept = Kept([bag])
    first = torch.rand(2, generator=bag.draws), random.random()
    bag.items["a"].append(3)
    bag.items["b"].clear()
    bag.items["c"] = bag.new = 1
    Bag.shared.append(1)
    bag.weight.sum().backward()
    with torch.no_grad():
        bag.weight.mul_(2)
    assert list(kept.written()) == ["weight"]
    kept.put_back()
    assert bag.items == {"a": [1, 2], "b": {3}} and not hasattr(bag, "new") and Bag.shared == []
    assert bag.weight.eq(1).all() and bag.weight.grad is None and not kept.written()
    again = torch.rand(2, generator=bag.draws), random.random()
    assert torch.equal(first[0], again[0]) and first[1] == again[1]
