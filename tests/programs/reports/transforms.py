"""Transformations of functions, hooks, custom operators, and graphs inside graphs."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.programs.reports.case import made, report, wave

Tensor = torch.Tensor
ALIASES = "a custom operator whose result shares memory with an argument"
TRANSFORMS = "transformations of functions"
HOOKS = "hooks"

library = torch.library.Library("inductor_lab_reports", "DEF")
library.define("rows(Tensor(a) x, int n) -> Tensor(a)")
library.impl("rows", lambda x, n: x[:n], "CompositeExplicitAutograd")
library.impl("rows", lambda x, n: x[:n], "Meta")
library.define("same(Tensor(a!) x) -> Tensor(a!)")
library.impl("same", lambda x: x.mul_(2), "CompositeExplicitAutograd")
library.impl("same", lambda x: x, "Meta")
library.define("unmarked(Tensor x) -> Tensor")
library.impl("unmarked", lambda x: x.view(-1), "CompositeExplicitAutograd")
library.impl("unmarked", lambda x: x.view(-1), "Meta")
ops = torch.ops.inductor_lab_reports


@report(ALIASES, made((4, 3)))
def an_operator_returns_rows(x: Tensor) -> Any:
    y = x * 2
    v = ops.rows(y, 2)
    y.add_(1)
    return v, y


@report(ALIASES, made((4, 3)))
def an_operator_returns_what_it_writes(x: Tensor) -> Any:
    y = x + 1
    z = ops.same(y)
    return z * 2, y


@report(ALIASES, made((4, 3)))
def an_operator_hides_that_it_returns_its_argument(x: Tensor) -> Any:
    y = x + 1
    z = ops.unmarked(y)
    z.mul_(2)
    return y, z


@report(ALIASES, made((4, 3)))
def an_operator_returns_rows_inside_a_checkpoint(x: Tensor) -> Any:
    def inside(x: Tensor) -> Tensor:
        y = x * 2
        v = ops.rows(y, 2)
        v.add_(1)
        return y + v.sum()

    return checkpoint(inside, x, use_reentrant=False)


@report(ALIASES, made((4, 3)))
def an_operator_aliases_an_argument_of_a_checkpoint(x: Tensor) -> Any:
    def inside(x: Tensor) -> Tensor:
        return ops.rows(x, 2)

    v = checkpoint(inside, x, use_reentrant=False)
    return v + 1, v


@report(ALIASES, lambda: (wave(4, 3), torch.tensor(True)))
def an_operator_returns_rows_in_a_branch(x: Tensor, p: Tensor) -> Any:
    return torch.cond(p, lambda x: ops.rows(x, 2) * 1, lambda x: ops.rows(x, 2) + 1, (x,))


@report(ALIASES, made((4, 3)))
def an_operator_writes_inside_a_checkpoint(x: Tensor) -> Any:
    def inside(x: Tensor) -> Tensor:
        y = x.sin()
        return ops.same(y) + y

    return checkpoint(inside, x, use_reentrant=False)


@report(TRANSFORMS, made((4,)))
def gradient_of_a_function(x: Tensor) -> Any:
    return torch.func.grad(lambda x: (x.sin() * x).sum())(x)


@report(TRANSFORMS, made((4,)), 136662)
def gradient_of_a_function_that_writes(x: Tensor) -> Any:
    def inside(x: Tensor) -> Tensor:
        y = x.clone()
        y[1:].mul_(2)
        y[0] = 3.0
        return (y * y).sum()

    return torch.func.grad(inside)(x)


@report(TRANSFORMS, made((4,)), gradients=True)
def gradient_of_a_gradient(x: Tensor) -> Any:
    inner = torch.func.grad(lambda x: (x.sin() ** 3).sum())
    return inner(x) * x, torch.func.grad(lambda x: inner(x).sum())(x)


@report(TRANSFORMS, made((3, 4)))
def hessians_of_a_batch(x: Tensor) -> Any:
    return torch.func.vmap(torch.func.hessian(lambda x: (x.sin() * x[0]).prod()))(x)


@report(TRANSFORMS, made((3, 4), (4,)), gradients=True)
def jacobians_with_gradients(x: Tensor, w: Tensor) -> Any:
    return torch.func.vmap(torch.func.jacrev(lambda x: (x * w).tanh()))(x)


@report(TRANSFORMS, made((3, 4), (3, 4)))
def forward_mode_of_a_batch(x: Tensor, t: Tensor) -> Any:
    return torch.func.vmap(lambda x, t: torch.func.jvp(torch.exp, (x,), (t,)))(x, t)


@report(TRANSFORMS, made((3, 4)))
def a_batch_that_writes_in_place(x: Tensor) -> Any:
    def one(x: Tensor) -> Tensor:
        y = x * 1
        y[1:].add_(x[0])
        y[None].expand(2, -1)[0].mul_(2)
        return y

    return torch.func.vmap(one)(x)


@report(TRANSFORMS, made((2, 3), (3,)), gradients=True)
def a_functional_call(w: Tensor, x: Tensor) -> Any:
    layer = nn.Linear(3, 2, bias=False)
    return torch.func.functional_call(layer, {"weight": w}, (x,))


@report(TRANSFORMS, made((5,)), gradients=True)
def gradients_of_the_user_inside(x: Tensor) -> Any:
    y = (x.sin() * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g * 2


@report(HOOKS, made((4,)), gradients=True)
def a_hook_on_an_intermediate(x: Tensor) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y.sin()


@report(HOOKS, made((4,)), gradients=True)
def a_hook_on_an_argument(x: Tensor) -> Any:
    x.register_hook(lambda g: g + 1)
    return x.sin() * x


class Retains(nn.Module):
    """Returns the gradient of a value inside, by a backward inside."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(wave(4))

    def forward(self, x: Tensor) -> Any:
        y = self.weight * x
        y.retain_grad()
        z = y.sin()
        return z, y


@report(HOOKS, made((4,)), build=True, gradients=True)
def a_gradient_is_retained() -> nn.Module:
    return Retains()


@report(HOOKS, made((4,)), gradients=True)
def gradients_are_retained_before_writes(x: Tensor) -> Any:
    y, z = x.sin(), x.cos()
    if x.requires_grad:
        y.retain_grad()
        z.retain_grad()
    return y.mul_(2), z.mul_(2)


class Counts(nn.Module):
    """Counts its calls in an attribute, before and after `between`."""

    def __init__(self, between: Any) -> None:
        super().__init__()
        self.between, self.calls = between, 0

    def forward(self, x: Tensor) -> Any:
        self.calls += 1
        y = self.between(x)
        self.calls += 1
        return y + self.calls


def _hooked(x: Tensor) -> Any:
    y = x.sin()
    if y.requires_grad:
        y.register_hook(lambda g: g * 2)
    return y


def _chosen(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))


@report(HOOKS, lambda: [(wave(4),)] * 3, build=True, gradients=True)
def an_attribute_written_before_and_after_a_hook() -> nn.Module:
    return Counts(_hooked)


@report(HOOKS, lambda: [(wave(4),)] * 3, build=True)
def an_attribute_written_before_and_after_cond() -> nn.Module:
    return Counts(_chosen)


def _accumulated(x: Tensor) -> Any:
    leaf = x.detach().clone().requires_grad_()
    (leaf.sin() * x).sum().backward()
    return leaf.grad


@report(HOOKS, made((4,)))
def a_backward_inside(x: Tensor) -> Any:
    return _accumulated(x)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, k: float) -> Tensor:
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g * ctx.k * 2, None


@report("functions of autograd with a gradient of their own", made((4,)), gradients=True)
def a_gradient_of_its_own(x: Tensor) -> Any:
    return Scaled.apply(x, 3.0) + Scaled.apply(x.sin(), 0.5)


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * 2


@report("functions of autograd with a gradient of their own", made((4,)), gradients=True)
def a_function_that_writes_its_argument(x: Tensor) -> Any:
    y = x * 1
    z = Dirty.apply(y)
    return z + y


class Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * 5


@report("functions of autograd with a gradient of their own", made((4,)), 194534, gradients=True)
def a_function_that_returns_its_argument(x: Tensor) -> Any:
    return Identity.apply(x) * 2, Identity.apply(x.sin())[1:]
