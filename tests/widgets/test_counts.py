"""Counts that the explorer shows, and a second way of counting: torch itself, on real tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import inductor_lab as lab
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.schedule.cost import extern_cost

NO_KERNEL = ("detach", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")


def given(*size: int) -> torch.Tensor:
    return torch.randn(*size, requires_grad=True)


def network(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.linear(x, w, b)).log_softmax(-1)


def halved(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.add_(1)
    return y.half().t()[::2] + 1


def image(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.max_pool2d(F.conv2d(x, w, padding=1).relu(), 2)


TOKENS = torch.randint(0, 10, (32,))
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "pointwise": (lambda x: ((x + 1) * 2).sin(), (given(1000),)),
    "broadcast": (lambda x, row: (x * row + row).sum(0), (given(50, 40), given(40))),
    "layer norm": (
        lambda x, w, b: F.layer_norm(x, (64,), w, b), (given(8, 64), given(64), given(64))
    ),
    "product": (lambda a, b: (a @ b).relu().sum(), (given(32, 64), given(64, 16))),
    "network": (network, (given(16, 64), given(10, 64), given(10))),
    "loss": (F.cross_entropy, (given(32, 10), TOKENS)),
    "rows": (lambda w, i: w[i].relu(), (given(10, 16), TOKENS)),
    "views and dtypes": (halved, (torch.randn(20, 50),)),
    "scatter": (lambda x, i: torch.zeros(10, 8).index_add(0, i, x), (torch.randn(32, 8), TOKENS)),
    "convolution": (image, (given(2, 3, 8, 8), given(4, 3, 3, 3))),
    "attention": (F.scaled_dot_product_attention, tuple(given(2, 4, 16, 8) for _ in range(3))),
    "one number": (lambda x: x * 2 + 1, (torch.tensor(3.0),)),
    "nothing in it": (lambda x: x + 1, (torch.zeros(0, 4),)),
}


class Watched(TorchDispatchMode):
    """Operators that reach a kernel, and the bytes of their operands and results."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.moved = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if not func.is_view and func.overloadpacket.__name__ not in NO_KERNEL:
            self.calls += 1
            self.moved += size_of((args, kwargs)) + size_of(made)
        return made


def size_of(values: Any) -> int:
    tensors = {id(v): v for v in tree_leaves(values) if isinstance(v, torch.Tensor)}
    return sum(t.numel() * t.element_size() for t in tensors.values())


def storages(values: Any, but: Any = ()) -> dict[int, int]:
    """Address of each storage -> its bytes, but for those of other tensors."""
    tensors, others = ([v for v in tree_leaves(each) if isinstance(v, torch.Tensor)]
                       for each in (values, but))  # fmt: skip
    known = {t.untyped_storage()._cdata for t in others}
    found = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}
    return {place: size for place, size in found.items() if place not in known}


def in_eager(function: Callable[..., Any], inputs: Any) -> tuple[int, int, int]:
    """Operator calls of forward and backward, bytes moved, bytes saved besides the inputs."""
    kept: list[torch.Tensor] = []
    with (
        Watched() as seen,
        torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t),
    ):
        out = function(*inputs)
        leaves = [x for x in inputs if x.requires_grad]
        beside = sum(storages(kept, inputs).values())
        calls = seen.calls, seen.moved
    if leaves:
        seed = torch.ones_like(out)
        with Watched() as back:
            torch.autograd.grad(out, leaves, seed)
        calls = calls[0] + back.calls, calls[1] + back.moved
    return *calls, beside


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_are_those_of_torch(name: str) -> None:
    function, inputs = PROGRAMS[name]
    c = lab.inspect(function, *inputs)
    (graph,) = c.graphs
    assert graph.eager is not None
    told = graph.eager.kernels, graph.eager.bytes, graph.eager.kept_without_inputs
    calls, moved, kept = in_eager(function, inputs)
    assert told[:2] == (calls, moved)
    if graph.partition is not None:
        assert told[2] == graph.partition.bytes_if_all_saved == kept
        ours = storages(c.result.grad_fn.saved_tensors, graph.inputs)
        assert graph.partition.cut_bytes == sum(ours.values())
    for part in graph.parts:
        assert part.schedule.before.kernels == len(part.loops.steps)
        costs = [
            extern_cost(step, part.loops.buffers) if isinstance(step, ExternCall) else step.cost
            for step in part.schedule.steps
        ]
        for of in ("kernels", "passes", "bytes_read", "bytes_written", "flops"):
            assert sum(getattr(cost, of) for cost in costs) == getattr(part.schedule.after, of), of


def test_timed_kernels_equal_counted_kernels() -> None:
    c = lab.inspect(network, *PROGRAMS["network"][1]).measure()
    assert sum(len(part.times) for part in c.parts) == c.after.kernels
    assert sum(took.nbytes for part in c.parts for took in part.times) == c.after.bytes
    assert sum(took.flops for part in c.parts for took in part.times) == c.after.flops
