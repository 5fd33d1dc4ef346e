"""Tensor subclasses as inputs, and parameters that are replaced after a compile."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.utils._pytree import tree_map

import inductor_lab as lab
from tests.semantics.compare import assert_same


class Watched(torch.Tensor):
    """A subclass with its own `__torch_function__`."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Special(nn.Parameter):
    """A subclass of Parameter."""


class Scaled(torch.Tensor):
    """A wrapper of one tensor; operations on it return a plain tensor."""

    @staticmethod
    def __new__(cls, inner, scale):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device
        )

    def __init__(self, inner, scale):
        self.inner, self.scale = inner, scale

    def __tensor_flatten__(self):
        return ["inner"], self.scale

    @staticmethod
    def __tensor_unflatten__(inner, scale, size, stride):
        return Scaled(inner["inner"], scale)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        def plain(given):
            return given.inner * given.scale if isinstance(given, Scaled) else given

        return func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))


MAKE: dict[str, Callable[[], torch.Tensor]] = {
    "with_a_torch_function": lambda: torch.linspace(-2, 2, 50).as_subclass(Watched),
    "parameter": lambda: Special(torch.linspace(-2, 2, 50)),
    "wrapper": lambda: Scaled(torch.linspace(-2, 2, 50), 2.0),
}


@pytest.mark.parametrize("name", MAKE)
def test_a_subclass_has_the_results_of_eager_mode(name: str) -> None:
    def function(x):
        return x.sin() * 2 + x

    torch.compiler.reset()
    compiled, given, plain = lab.compile(function), MAKE[name](), torch.linspace(0, 1, 50)
    for x in (given, plain, given):
        found, expected = compiled(x), function(x)
        assert type(found) is type(expected)
        torch.testing.assert_close(found, expected)


def new_parameter(net: nn.Linear) -> None:
    net.weight = nn.Parameter(torch.randn(64, 64))


def new_data(net: nn.Linear) -> None:
    net.weight.data = torch.randn(64, 64)


def new_strides(net: nn.Linear) -> None:
    net.weight.data = torch.randn(64, 128)[:, ::2]


def written_data(net: nn.Linear) -> None:
    net.weight.data.mul_(torch.randn(64, 64))


def parametrized(net: nn.Linear) -> None:
    if parametrize.is_parametrized(net):
        parametrize.remove_parametrizations(net, "weight")
    else:
        parametrize.register_parametrization(net, "weight", nn.Softplus())


def assigned_state(net: nn.Linear) -> None:
    state = {name: torch.randn_like(value) for name, value in net.state_dict().items()}
    net.load_state_dict(state, assign=True)


def another_dtype(net: nn.Linear) -> None:
    net.to(torch.float64 if net.weight.dtype is torch.float32 else torch.float32)


CHANGES = (
    new_parameter, new_data, new_strides, written_data, parametrized, assigned_state, another_dtype,
)  # fmt: skip


def called(net: nn.Module, x: torch.Tensor, trains: bool) -> list[Any]:
    with torch.set_grad_enabled(trains):
        result = net(x.to(next(net.parameters()).dtype)).relu()
    if not trains:
        return [result]
    net.zero_grad()
    result.sum().backward()
    return [result, *(p.grad.clone() for p in net.parameters() if p.grad is not None)]


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_replaced_parameter_is_used(change: Callable[[nn.Linear], None], trains: bool) -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    net, x = nn.Linear(64, 64), torch.randn(32, 64)
    plain = copy.deepcopy(net)
    compiled = torch.compile(net, backend="inductor_lab")
    for turn in range(3):
        for changed in (net, plain) if turn else ():
            torch.manual_seed(turn)
            change(changed)
        for _ in range(2):
            assert_same(called(compiled, x, trains), called(plain, x, trains))


def jagged(x: torch.Tensor) -> torch.Tensor:
    return torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, 3])) * 2


@pytest.mark.parametrize("trained", [False, True])
def test_a_result_that_is_a_wrapper(trained: bool) -> None:
    x = torch.randn(3, 4, requires_grad=trained)
    compiled = lab.compile(jagged)
    for _ in range(3):
        found = compiled(x)
        assert type(found) is type(jagged(x))
        torch.testing.assert_close(found.values(), 2 * x)
        if trained:
            (gradient,) = torch.autograd.grad(found.values().sum(), x)
            torch.testing.assert_close(gradient, torch.full((3, 4), 2.0))


def test_a_wrapper_of_several_tensors() -> None:
    def parts(x: torch.Tensor) -> torch.Tensor:
        return torch.nested.nested_tensor([x[:1], x[1:]], layout=torch.jagged) * 2

    x = torch.randn(3, 4)
    torch.testing.assert_close(lab.compile(parts)(x).values(), parts(x).values())
