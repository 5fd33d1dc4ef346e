"""Golden tests of the printed forms: loop IR, decisions, C++ and Triton."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.bench.demo.programs import PROGRAMS


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (256,), w, b)


def momentum(xs: list[torch.Tensor], grads: list[torch.Tensor], kept: list[torch.Tensor]) -> None:
    """Two tensors have the same size, so they share a function of the combo."""
    torch._foreach_lerp_(kept, grads, 0.1)
    torch._foreach_add_(xs, kept, alpha=-0.01)


def lists(*sizes: tuple[int, ...]) -> tuple[list[torch.Tensor], ...]:
    return tuple([torch.zeros(size) for size in sizes] for _ in range(3))


FUNCTIONS = {p.name: p.make for p in PROGRAMS[:4]} | {
    "softmax": lambda: (softmax, (torch.randn(64, 1000),)),
    "momentum": lambda: (momentum, lists((300, 200), (64,), (7, 3), (64,))),
    "layer_norm": lambda: (layer_norm, (torch.randn(64, 256), torch.ones(256), torch.zeros(256))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_printed_forms(name: str, golden) -> None:
    fn, args = FUNCTIONS[name]()
    cpp = lab.inspect(fn, *args)
    triton = lab.inspect(fn, *args, target="cuda:90")
    for part, twin in zip(cpp.parts, triton.parts, strict=True):
        golden(f"{name}.{part.name}.loops.txt", part.loops)
        golden(f"{name}.{part.name}.schedule.txt", part.schedule)
        decisions = part.schedule.decisions
        explained = (decisions.explain(d.producer, d.consumer) for d in decisions)
        golden(f"{name}.{part.name}.decisions.txt", "\n\n".join(explained))
        golden(f"{name}.{part.name}.cpp", "\n".join(str(k) for k in part.kernels))
        if name in ("softmax", "add_mul"):
            golden(f"{name}.{part.name}.trees.txt", "\n".join(map(str, part.trees)))
        golden(f"{name}.{part.name}.host.py.txt", part.host)
        golden(f"{name}.{part.name}.triton.txt", "\n".join(str(k) for k in twin.kernels))
