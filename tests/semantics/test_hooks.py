"""Backward hooks inside compiled functions, with and without compiled autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo.config as dynamo_config
from torch import nn
from torch._dynamo import compiled_autograd
from torch._subclasses.fake_tensor import FakeTensorMode

import inductor_lab as lab
from inductor_lab.compiler.base.options import FusionOptions, Options
from inductor_lab.compiler.codegen.generate import generate_kernels
from inductor_lab.compiler.codegen.host.host_program import host_program
from inductor_lab.compiler.lower.graph import lower_graph
from inductor_lab.compiler.runtime.executable import build_executable
from inductor_lab.compiler.schedule.passes import schedule_program
from tests.semantics.compare import assert_same, check_gradients, wave

Hooked = Callable[..., torch.Tensor]


def doubled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x * w
    y.register_hook(lambda grad: grad * 2)
    return y.sin()


def clamped_by_another_tensor(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    y.register_hook(lambda grad: grad.clamp(-0.1, 0.1) + w.sum())
    return y.sin()


def of_an_input(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x.register_hook(lambda grad: grad * 3)
    return x * w


def two_of_one_tensor(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x * w
    y.register_hook(lambda grad: grad + 1)
    y.register_hook(lambda grad: grad * 5)
    return y.exp()


def with_another_layout(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = (x * w).t()
    y.register_hook(lambda grad: grad.t().contiguous().t() * 2)
    return y.cos()


FUNCTIONS = [doubled, clamped_by_another_tensor, of_an_input, two_of_one_tensor,
             with_another_layout]  # fmt: skip


def steps(function: Hooked, autograd: bool = False) -> list[Any]:
    """Two steps with gradients, with compiled autograd if `autograd`."""
    w = (wave(4, 4) + 1).requires_grad_()
    start = wave(4, 4).requires_grad_()
    results: list[Any] = []

    def train() -> None:
        for _ in range(2):
            result = function(start * 1, w)
            result.sum().backward()
            results.append(result.detach())

    if autograd:
        with compiled_autograd._enable(lab.compile):
            train()
    else:
        train()
    return [*results, start.grad, w.grad]


@pytest.mark.parametrize("autograd", [False, True], ids=["plain", "compiled autograd"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_hooks_of_tensors(function: Hooked, autograd: bool) -> None:
    assert_same(steps(lab.compile(function), autograd), steps(function))


def test_a_python_function_in_a_graph_is_called() -> None:
    """Hooks in a backward that is compiled for compiled autograd are such functions."""

    def hook(grad: torch.Tensor, by: float) -> torch.Tensor:
        return grad * by

    graph, x = torch.fx.Graph(), wave(4, 3)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
    nodes = [graph.placeholder("x")]
    nodes.append(graph.call_function(hook, (nodes[0],), {"by": 3.0}))
    nodes.append(graph.call_function(torch.ops.aten.sin.default, (nodes[1],)))
    graph.output((nodes[2],))
    for node in nodes:
        node.meta["val"] = fake
    program = lower_graph(torch.fx.GraphModule(nn.Module(), graph), "backward", Options())
    assert_same(program.run(x), (hook(x, 3.0).sin(),))
    schedule = schedule_program(program, FusionOptions())
    kernels = generate_kernels(schedule, Options())
    call = build_executable(schedule, kernels, host_program(schedule, kernels), Options())
    assert_same(call([x]), (hook(x, 3.0).sin(),))


def full(net: nn.Sequential) -> None:
    net[0].register_full_backward_hook(lambda module, given, out: (given[0] * 2,))
    net[2].register_full_backward_hook(lambda module, given, out: (given[0] * 3,))


def before(net: nn.Sequential) -> None:
    net[2].register_full_backward_pre_hook(lambda module, out: (out[0] * 2,))


def of_a_parameter(net: nn.Sequential) -> None:
    net[2].weight.register_hook(lambda grad: grad * 5)


def once_accumulated(net: nn.Sequential) -> None:
    def double(parameter: torch.Tensor) -> None:
        parameter.grad.mul_(2)

    net[2].weight.register_post_accumulate_grad_hook(double)


def trained(add: Callable[[nn.Sequential], None], compiled: bool, autograd: bool) -> list[Any]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    add(net)
    x = wave(5, 4).requires_grad_()

    def step() -> None:
        (lab.compile(net) if compiled else net)(x).square().sum().backward()

    if autograd:
        with compiled_autograd._enable(lab.compile):
            step()
    else:
        step()
    return [x.grad, *(parameter.grad for parameter in net.parameters())]


@pytest.mark.parametrize("autograd", [False, True], ids=["plain", "compiled autograd"])
@pytest.mark.parametrize("add", [full, before, of_a_parameter, once_accumulated])
def test_hooks_of_modules_and_parameters(
    add: Callable[[nn.Sequential], None], autograd: bool
) -> None:
    assert_same(trained(add, True, autograd), trained(add, False, False))


def test_compiled_autograd_by_its_option() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x = wave(5, 4)

    def step() -> torch.Tensor:
        loss = net(x).square().sum()
        loss.backward()
        return loss

    expected = step()
    gradients = [parameter.grad for parameter in net.parameters()]
    net.zero_grad()
    with dynamo_config.patch(compiled_autograd=True):
        found = lab.compile(step)()
    assert_same([found, *(p.grad for p in net.parameters())], [expected, *gradients])


CHECKED = {
    "eig": lambda x: torch.linalg.eig(x)[1].abs(),
    "eigvals": lambda x: torch.linalg.eigvals(x).abs(),
    "values of eig": lambda x: torch.linalg.eig(x)[0].real,
    "inv": torch.linalg.inv,
    "solve": lambda x: torch.linalg.solve(x, x.t()),
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.t() + torch.eye(4)),
    "matrix_exp": torch.linalg.matrix_exp,
    "pinv": torch.linalg.pinv,
}


@pytest.mark.parametrize("name", CHECKED)
def test_gradients_that_check_for_errors(name: str) -> None:
    """The check is an operator with effects: the backward has a token for it."""
    check_gradients(CHECKED[name], torch.randn(4, 4) + torch.eye(4))
