"""Optimizer steps: few kernels, no copies, and the same parameters as in eager mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch.optim import SGD, Adagrad, Adam, AdamW, RMSprop

import inductor_lab as lab

SHAPES = [(40, 50), (7,), (300,), (50, 40), (), (300,)]

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": SGD,
    "momentum": lambda p, **more: SGD(p, momentum=0.9, nesterov=True, **more),
    "adam": Adam,
    "amsgrad": lambda p, **more: Adam(p, amsgrad=True, **more),
    "adamw": AdamW,
    "adagrad": Adagrad,
    "rmsprop": lambda p, **more: RMSprop(p, momentum=0.5, centered=True, **more),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    counters.clear()
    yield


def made(name: str, foreach: bool, rate: Any) -> tuple[list[torch.Tensor], Any]:
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    return parameters, OPTIMIZERS[name](parameters, lr=rate, foreach=foreach)


def gradients(parameters: list[torch.Tensor], step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def trained(
    name: str, foreach: bool, rate: Any, backend: Any, steps: int = 4
) -> tuple[list[torch.Tensor], int]:
    """Return the parameters after some steps, and the number of compiled graphs."""
    parameters, optimizer = made(name, foreach, rate)
    torch.compiler.reset()
    counters.clear()

    def one_step() -> None:
        optimizer.step()

    run = one_step if backend is None else torch.compile(one_step, backend=backend)
    for step in range(steps):
        gradients(parameters, step)
        run()
    return parameters, counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("rate", ["number", "tensor"])
@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps(name: str, foreach: bool, rate: str) -> None:
    if rate == "tensor" and foreach and name.startswith(("adam", "amsgrad")):
        pytest.skip("torch refuses a learning rate in a tensor here")
    given = (lambda: torch.tensor(0.01)) if rate == "tensor" else (lambda: 0.01)
    expected, _ = trained(name, foreach, given(), None)
    found, graphs = trained(name, foreach, given(), "inductor_lab")
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    _, theirs = trained(name, foreach, given(), "eager")
    assert graphs <= theirs, "compiled more often than torch requires"


WAYS = [(name, True, "cpp") for name in OPTIMIZERS]
WAYS += [("adamw", False, "cpp"), ("rmsprop", False, "cpp")]
WAYS += [("adamw", True, "triton"), ("momentum", False, "triton")]


@pytest.mark.parametrize(("name", "foreach", "language"), WAYS)
def test_kernels(name: str, foreach: bool, language: str) -> None:
    """Tests a step after the first one, which creates the state."""
    parameters, optimizer = made(name, foreach, 0.01)
    others, reference = made(name, foreach, 0.01)
    for step in range(2):
        gradients(parameters, step)
        gradients(others, step)
        reference.step()
        if step == 0:
            optimizer.step()

    def one_step() -> None:
        optimizer.step()

    compilation = lab.inspect(one_step, options={"language": language})
    torch.testing.assert_close(parameters, others, rtol=1e-5, atol=1e-6)
    part = compilation.graphs[-1].forward
    assert len(part.kernels) <= 3 and part.schedule.after.kernels == len(part.kernels)
    assert compilation.coverage.calls == 0, compilation.coverage
    assert ".copy_(" not in str(part.host) and "empty_strided_" not in _body(part.host)


def _body(host: Any) -> str:
    return str(host).partition("def call")[2]


def test_a_changed_rate_in_a_tensor_does_not_recompile() -> None:
    parameters, optimizer = made("adamw", False, torch.tensor(0.01))
    step = torch.compile(optimizer.step, backend="inductor_lab")
    for count in range(4):
        gradients(parameters, count)
        step()
        optimizer.param_groups[0]["lr"].mul_(0.5)
    after = counters["stats"]["unique_graphs"]
    gradients(parameters, 9)
    step()
    assert counters["stats"]["unique_graphs"] == after


def test_what_if_without_combos() -> None:
    parameters, optimizer = made("momentum", True, 0.01)
    gradients(parameters, 0)
    optimizer.step()

    def one_step() -> None:
        optimizer.step()

    together = lab.inspect(one_step)
    apart = lab.inspect(one_step, options={"fusion": {"combos": False}})
    assert (together.after.kernels, apart.after.kernels) == (1, len(SHAPES))
    assert together.after.bytes == apart.after.bytes
