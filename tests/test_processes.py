"""Work in processes: what they send, what becomes of those that die or hang, and stopping."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.processes import CRASH, HANG, STOPPED, Clock, Lost, in_parallel, messages, server

Send = Callable[[Any], None]


@pytest.fixture(scope="module")
def context() -> Any:
    return server("tests.processes")


def counting(send: Send, last: int) -> None:
    for number in range(last):
        send(number)


def dying(send: Send) -> None:
    send("alive")
    os.abort()


def hanging(send: Send) -> None:
    send("alive")
    time.sleep(600)


def heard(context: Any, work: Callable[..., None], *arguments: Any, **more: Any) -> list[Any]:
    clock = more.get("clock", Clock())
    return list(messages(context, work, arguments, more.get("limit", 60.0), clock))


def test_messages_arrive_in_order(context: Any) -> None:
    assert heard(context, counting, 3) == [0, 1, 2]


def test_a_crash_is_named(context: Any) -> None:
    assert heard(context, dying) == ["alive", Lost(CRASH, "killed by SIGABRT")]


def test_a_process_that_hangs_is_killed(context: Any) -> None:
    first, lost = heard(context, hanging, limit=10.0)
    assert (first, lost.how) == ("alive", HANG)


def test_the_clock_stops_a_process(context: Any) -> None:
    clock = Clock()
    found = []
    for message in messages(context, hanging, (), 60.0, clock):
        found.append(message)
        clock.stop()
    assert found == ["alive", Lost(STOPPED, "")]


def test_tasks_may_add_tasks() -> None:
    def do(task: int) -> tuple[int, list[int]]:
        return task, [task - 1] if task else []

    assert sorted(in_parallel(do, [2, 1], 2, Clock())) == [0, 0, 1, 1, 2]


def test_no_task_begins_after_the_clock_has_stopped() -> None:
    clock = Clock()

    def do(task: int) -> tuple[int, list[int]]:
        clock.stop()
        return task, [task + 1]

    assert list(in_parallel(do, [0], 1, clock)) == [0]


def asked_cache(send: Send) -> None:
    import torch._functorch.config

    send(torch._functorch.config.enable_autograd_cache)


def test_what_another_module_has_set_does_not_hold() -> None:
    assert heard(server("tests.fuzz.check"), asked_cache) == [False]
    assert heard(server("tests.processes"), asked_cache) == [True]


def raising(send: Send) -> None:
    send("alive")
    raise ValueError("too large")


def test_an_error_is_shown(context: Any) -> None:
    first, lost = heard(context, raising)
    assert (first, lost.how) == ("alive", CRASH)
    assert lost.why.endswith("ValueError: too large\n")
