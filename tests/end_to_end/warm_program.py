"""The program that `test_warm_start` runs twice with the same caches.  It prints which functions
torch found on disk, and whether all their results equal eager mode.

    python warm_program.py first|second
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.utils import counters
from torch.nn import functional as F

import inductor_lab as lab

SECOND = sys.argv[1:] == ["second"]
Case = Callable[[Callable[..., Any]], list[Any]]


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def inference(compiled: Callable[..., Any]) -> list[Any]:
    return [compiled(lambda x, y: torch.softmax(x * 2 + y, -1))(numbers(8, 100), numbers(100))]


def training(compiled: Callable[..., Any]) -> list[Any]:
    """The second call skips AOTAutograd's wrapper."""
    x, f = numbers(1000).requires_grad_(), compiled(lambda x: x.sin() ** 2 + x.exp().cos())
    for _ in range(2):
        result = f(x)
        result.sum().backward()
    return [result, x.grad]


def layers(compiled: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.GELU(), torch.nn.Linear(32, 4)
    )
    run, given = compiled(model), numbers(64, 16)
    for _ in range(2):
        run(given).square().mean().backward()
    return [run(given), *(p.grad for p in model.parameters()), *model.buffers()]


def optimizer(compiled: Callable[..., Any]) -> list[Any]:
    weights = [numbers(3, n, seed=n).requires_grad_() for n in (2, 5)]
    adam = torch.optim.Adam(weights, lr=0.1)
    step = compiled(adam.step)
    for _ in range(3):
        for weight in weights:
            weight.grad = weight.detach().cos()
        step()
    return weights


def writes(compiled: Callable[..., Any]) -> list[Any]:
    def f(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x.mul_(3)
        y[1:] += 1
        return x.t(), y * 2

    x, y = numbers(4, 5), numbers(6)
    results = compiled(f)(x, y)
    results[0].add_(1)  # a view of x
    return [x, y, *results]


def shared(compiled: Callable[..., Any]) -> list[Any]:
    """The second process passes two views of the same memory, the first passes two tensors."""

    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return y * 2

    memory = numbers(12)
    x, y = memory[:6], (memory if SECOND else numbers(12, seed=1))[:6]
    return [compiled(f)(x, y), memory]


def symbolic(compiled: Callable[..., Any]) -> list[Any]:
    f = compiled(lambda x: (x - x.mean(-1, keepdim=True)).relu().sum(0), dynamic=True)
    return [f(numbers(n, 3 * n)) for n in ((9, 5) if SECOND else (7, 64, 2))]


def symbolic_training(compiled: Callable[..., Any]) -> list[Any]:
    f, found = compiled(lambda x: (x.tanh() * x).cumsum(0), dynamic=True), []
    for n in (9, 5) if SECOND else (7, 64):
        x = numbers(n, 4).requires_grad_()
        f(x).square().sum().backward()
        found += [x.grad]
    return found


def reach(compiled: Callable[..., Any]) -> list[Any]:
    """A size that is declared large in the first process, and can be zero in the second."""
    f, found = compiled(lambda x: torch.cat([x.exp(), x.sum(0, keepdim=True)])), []
    for n in (0, 5) if SECOND else (64, 80):
        x = numbers(n, 4)
        if SECOND:
            torch._dynamo.decorators.mark_unbacked(x, 0)
        else:
            torch._dynamo.mark_dynamic(x, 0, min=50, max=100)
        found.append(f(x))
    return found


def bounds(compiled: Callable[..., Any]) -> list[Any]:
    f = compiled(lambda x: x.exp().sum(0))
    x = numbers(64, 4)
    torch._dynamo.mark_dynamic(x, 0, min=2 if SECOND else 50, max=100)
    return [f(x)]


def fixed_float(compiled: Callable[..., Any]) -> list[Any]:
    """AOTAutograd specializes the symbolic float."""
    f = compiled(lambda x: torch.linspace(0, x, 4), dynamic=True)
    return [f(x) for x in (1.5, -2.25, 0.1)]


def literal(compiled: Callable[..., Any]) -> list[Any]:
    weight = 3.0 if SECOND else 2.0
    return [compiled(lambda x: x * torch.tensor([1.0, weight]) + weight)(numbers(5, 2))]


def closed_over(compiled: Callable[..., Any]) -> list[Any]:
    table = torch.tensor([1.0, 3.0 if SECOND else 2.0])
    return [compiled(lambda x: x * table)(numbers(5, 2))]


def mixed(compiled: Callable[..., Any]) -> list[Any]:
    linear = torch.nn.Linear(8, 8)
    linear.load_state_dict({"weight": numbers(8, 8), "bias": numbers(8)})
    dtype = torch.float16 if SECOND else torch.bfloat16
    with torch.autocast("cpu", dtype=dtype), torch.no_grad():
        return [compiled(lambda x: linear(x).sin())(numbers(4, 8))]


def branches(compiled: Callable[..., Any]) -> list[Any]:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    return [compiled(f)(numbers(7))]


@torch.library.custom_op("warm_program::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


twice.register_fake(torch.empty_like)


def foreign(compiled: Callable[..., Any]) -> list[Any]:
    return [compiled(lambda x: twice(x.sin()).cos())(numbers(7))]


def packet(compiled: Callable[..., Any]) -> list[Any]:
    return [compiled(lambda x: torch.ops.warm_program.twice(x.sin()).tan())(numbers(7))]


def random(compiled: Callable[..., Any]) -> list[Any]:
    """The numbers differ from eager mode, so the test compares those of both processes."""
    torch.manual_seed(3)
    return [compiled(lambda x: F.dropout(x, 0.5) + torch.rand(1000))(torch.ones(1000))]


def complaint(compiled: Callable[..., Any]) -> list[Any]:
    """Return the error of an index out of range, with its line in this file."""
    try:
        compiled(lambda table, i: table[i].exp())(numbers(9, 4), torch.tensor([2, 900]))
    except IndexError as error:
        return [str(error)]
    return ["no error"]


def direct(compiled: Callable[..., Any]) -> list[Any]:
    """Return which `autograd.Function` runs in the second call of a graph with gradients."""
    x, f = numbers(100).requires_grad_(), compiled(lambda x: x.log1p().tan())
    for _ in range(2):
        result = f(x)
        result.sum().backward()
    return [type(result.grad_fn)._forward_cls.__module__]


CASES: tuple[Case, ...] = (
    inference,
    training,
    layers,
    optimizer,
    writes,
    shared,
    symbolic,
    symbolic_training,
    reach,
    bounds,
    fixed_float,
    literal,
    closed_over,
    mixed,
    branches,
    foreign,
    packet,
)


def same(ours: list[Any], eager: list[Any]) -> str:
    try:
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)
    except AssertionError as error:
        return str(error)
    return "eager's"


def found(case: Case, compiled: Callable[..., Any]) -> tuple[list[Any], dict[str, int]]:
    """Return the results of a case, and how often torch found, missed and saved a graph on disk."""
    torch._dynamo.reset()
    counters.clear()
    values = case(compiled)
    said = counters["aot_autograd"]
    return values, {k: said[f"autograd_cache_{k}"] for k in ("hit", "miss", "saved", "bypass")}


def main() -> None:
    report: dict[str, Any] = {}
    for case in CASES:
        values, counts = found(case, lab.compile)
        report[case.__name__] = {"is": same(values, case(lambda f, **_: f)), **counts}
    for case in (random, complaint, direct):
        values, counts = found(case, lab.compile)
        shown = [v if isinstance(v, str) else [float(v.sum()), float(v[0])] for v in values]
        report[case.__name__] = {"values": shown, **counts}
    for name, options in (
        ("other options", {"memory_budget": 0.5 if SECOND else 1.0}),
        ("no cache", {"cache": False}),
    ):
        values, counts = found(inference, lambda f, o=options: lab.compile(f, options=o))
        report[name] = {"is": same(values, inference(lambda f: f)), **counts}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
