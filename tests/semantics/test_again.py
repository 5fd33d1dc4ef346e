"""`c.again` reports what TorchDynamo does in a call: it reuses compiled code or recompiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

import inductor_lab as lab

SCALE = 2.0


class Holder:
    n = 3


def _ones(*size: int) -> torch.Tensor:
    return torch.ones(size)


def _broken(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    torch._dynamo.graph_break()
    return y * 2


CASES: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "lengths": (lambda x: x.sin() * 2, [(_ones(n),) for n in (4, 5, 6, 7, 1, 0, 9)]),
    "a length that comes back": (lambda x: x + 1, [(_ones(n),) for n in (4, 5, 4, 5, 8)]),
    "one of two dimensions": (lambda x: x * x, [(_ones(n, 3),) for n in (4, 5, 6, 7)]),
    "then the other": (
        lambda x: x.exp(),
        [(_ones(*s),) for s in ((4, 3), (5, 3), (6, 3), (6, 4), (7, 5), (8, 8))],
    ),
    "two tensors": (
        lambda x, y: x + y,
        [(_ones(n), _ones(m)) for n, m in ((4, 4), (5, 5), (6, 1), (7, 7), (1, 9))],
    ),
    "dtypes": (
        lambda x: x * 2,
        [(_ones(4).to(d),) for d in (torch.float32, torch.float64, torch.float32, torch.int32)],
    ),
    "integers": (lambda x, n: x * n, [(_ones(4), n) for n in (3, 5, 6, 7, 1, 0, -2)]),
    "floats": (lambda x, s: x * s, [(_ones(4), s) for s in (1.5, 2.5, 3.5, 4.0)]),
    "flags": (lambda x, f: x + 1 if f else x, [(_ones(4), f) for f in (True, False, True)]),
    "strings": (lambda x, s: x + len(s), [(_ones(4), s) for s in ("a", "bb", "a", "ccc")]),
    "gradients": (
        lambda x: x.sin(),
        [(_ones(n).requires_grad_(g),) for n, g in ((4, True), (4, False), (5, True), (6, True))],
    ),
    "ranks": (lambda x: x + 1, [(_ones(*s),) for s in ((4,), (4, 4), (5,), (5, 5), (6,))]),
    "a list": (sum, [([_ones(4)] * n,) for n in (2, 3, 2, 4)]),
    "an attribute": (lambda x, h: x + h.n, [(_ones(n), Holder()) for n in (4, 5, 6)]),
    "a graph break": (_broken, [(_ones(n),) for n in (4, 5, 6, 7)]),
    "strides": (
        lambda x: x + 1,
        [(x,) for x in (_ones(4, 5), _ones(5, 4).t(), _ones(6, 6), _ones(6, 7).t())],
    ),
}


def traced_frames() -> int:
    """The number of frames that TorchDynamo has traced, including frames without an operator, whose
    code is not kept."""
    return int(torch._dynamo.utils.counters["frames"]["total"])


@pytest.mark.parametrize("name", CASES)
def test_again_recompiles_when_torch_does(name: str) -> None:
    fn, calls = CASES[name]
    torch._dynamo.reset()
    compiled = torch.compile(fn, backend="eager")
    compiles = []
    for args in calls:
        before = traced_frames()
        compiled(*args)
        compiles.append(traced_frames() > before)
    torch._dynamo.reset()
    c = lab.inspect(fn, *calls[0])
    agains = [c.again(*args) for args in calls[1:]]
    assert [True, *(not again.hit for again in agains)] == compiles
    assert all(again.hit or again.reasons for again in agains)
    for again, args in zip(agains, calls[1:], strict=True):
        torch.testing.assert_close(again.result, fn(*args))


def test_sizes_of_an_inspected_call_do_not_affect_other_calls() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.cos() + 1

    torch._dynamo.reset()
    first = lab.inspect(fn, _ones(4))
    assert not first.again(_ones(5)).hit
    second = lab.inspect(fn, _ones(6))
    assert not second.capture.symbols, "sizes of other functions make no dimension dynamic"
    assert first.again(_ones(7)).hit
    counter = CompileCounter()
    compiled = torch.compile(fn, backend=counter)
    compiled(_ones(8))
    compiled(_ones(8))
    assert counter.frame_count == 1
