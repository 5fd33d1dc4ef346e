"""Threads that compile, inspect and measure at the same time."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.accelerate.first_call import FirstCall
from inductor_lab.compiler.torch_door import torch_logs


def _interrupted(call: Callable[[], Any], code: Any, at: int, other: Callable[[], Any]) -> bool:
    """Run `call`, and `other` before its instruction number `at`; returns whether there is one."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            count += 1
            if count == at + 1:
                sys.settrace(None)
                other()
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return count > at


def test_a_second_thread_at_any_point_of_the_first_training_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other call is tried before each bytecode instruction of the first one."""
    made: list[Any] = []
    real = FirstCall.call

    def kept(around: Any, wrapped: Any) -> Any:
        made.append(around)
        return real(around, wrapped)

    monkeypatch.setattr(FirstCall, "call", kept)
    x = torch.randn(8, requires_grad=True)
    torch._dynamo.reset()
    lab.compile(lambda x: x.sin() * 2)(x)
    (around,) = made
    results = around.direct(x)
    pair = torch.autograd.grad(results[0].sum(), x)[0]
    torch.testing.assert_close(pair, 2 * x.detach().cos())
    forwards, backwards = around.forwards, around.backwards

    def wrapped(*args: Any) -> Any:
        return results

    interrupted, at = True, 0
    while interrupted:
        around.forwards, around.backwards, around.direct = forwards, backwards, None
        call = real(around, wrapped)
        interrupted = _interrupted(lambda: call(x), call.__code__, at, lambda: call(x))  # noqa: B023
        assert around.direct is not None
        at += 1
    assert at > 20


def test_threads_at_the_first_training_call() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
    inputs = [torch.randn(4, 8) for _ in range(4)]
    expected = [torch.autograd.grad(model(x).sum(), list(model.parameters())) for x in inputs]
    torch._dynamo.reset()
    fast, together = lab.compile(model), threading.Barrier(4)

    def step(x: torch.Tensor) -> Any:
        together.wait(60)
        return torch.autograd.grad(fast(x).sum(), list(model.parameters()))

    with ThreadPoolExecutor(4) as pool:
        for got, right in zip(pool.map(step, inputs), expected, strict=True):
            torch.testing.assert_close(got, right)


def test_overlapping_inspections_are_recorded_separately() -> None:
    """The second starts inside the first and ends after it."""
    loggers = [
        torch_logs.TRACE_LOGGER,
        logging.getLogger("torch._dynamo.symbolic_convert.__trace_bytecode"),
    ]
    before = [(log.level, log.propagate, list(log.handlers)) for log in loggers]
    inside, ended = threading.Event(), threading.Event()

    def first(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        _first_waits()
        return y + 1

    @torch._dynamo.disable
    def _first_waits() -> None:
        inside.set()
        assert second_inside.wait(60)

    second_inside = threading.Event()

    def second(x: torch.Tensor) -> torch.Tensor:
        y = x.cos()
        torch._dynamo.graph_break()
        _second_waits()
        return y * 3

    @torch._dynamo.disable
    def _second_waits() -> None:
        second_inside.set()
        assert ended.wait(60)

    x = torch.ones(5)
    torch._dynamo.reset()

    def inspect_second() -> lab.Compilation:
        assert inside.wait(60)
        return lab.inspect(second, x)

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(inspect_second)
        one = lab.inspect(first, x)
        ended.set()
        two = coming.result(60)
    for c, name in ((one, "first"), (two, "second")):
        assert {b.function for b in c.capture.bytecode} >= {name}
        assert not any(b.function.startswith("second" if name == "first" else "first")
                       for b in c.capture.bytecode)  # fmt: skip
        assert len(c.capture.breaks) >= 1 and c.capture.guards
        assert c.capture.runs
    assert not {b.compile_id for b in one.capture.bytecode} & {
        b.compile_id for b in two.capture.bytecode
    }
    assert [(log.level, log.propagate, list(log.handlers)) for log in loggers] == before


@pytest.mark.usefixtures("known_limits")
def test_measuring_while_another_thread_calls() -> None:
    x = torch.randn(64, 64)
    torch._dynamo.reset()
    c = lab.inspect(lambda x: torch.softmax(x @ x, -1) + x.cumsum(0), x)
    assert c.compiled is not None
    names = c.parts[0].executable.call.__globals__  # type: ignore[union-attr]
    before, ending = dict(names), threading.Event()

    def calls() -> int:
        count = 0
        while not ending.is_set():
            c.compiled(x)  # type: ignore[misc]
            count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        others = pool.submit(calls)
        measured = [pool.submit(c.measure, 0.2) for _ in range(2)]
        try:
            times = [one.result(60).parts[0].times for one in measured]
        finally:
            ending.set()
        assert others.result(60) > 10
    assert all(times) and names == before
