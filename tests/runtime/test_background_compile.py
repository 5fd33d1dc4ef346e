"""Values that a thread computes in the background: exceptions, forks, libraries of C++ kernels."""

from __future__ import annotations

import multiprocessing
import os
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import CompileFailed, RunsUncompiled
from inductor_lab.compiler.runtime.toolchain.background_compile import (
    NAME,
    BackgroundValue,
    wait_for_all,
)
from tests.scripts import script


def test_the_value_is_computed_once_in_its_own_thread() -> None:
    may_end, threads = threading.Event(), []

    def make() -> str:
        threads.append(threading.current_thread().name)
        assert may_end.wait(60)
        return "made"

    ahead = BackgroundValue(make)
    assert not ahead._made, "nothing has waited for it"
    may_end.set()
    assert ahead.wait() == ahead.wait() == "made"
    assert threads == [NAME]


def test_an_exception_is_raised_and_the_next_wait_retries() -> None:
    answers = iter([ValueError("the first time"), "the second time"])

    def make() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    ahead = BackgroundValue(make)
    with pytest.raises(ValueError, match="the first time"):
        ahead.wait()
    assert ahead.wait() == "the second time"


def test_after_a_parser_error_in_a_thread_wait_computes_the_value() -> None:
    """Python up to 3.12 counts the depth of trees for all threads together (its issue 106905)."""
    threads = []

    def make() -> str:
        threads.append(threading.current_thread().name)
        if threads == [NAME]:
            raise SystemError("AST constructor recursion depth mismatch (before=30, after=138)")
        return "made"

    assert BackgroundValue(make).wait() == "made"
    assert threads == [NAME, threading.current_thread().name]


def test_waiting_for_all() -> None:
    may_end = threading.Event()
    several = [BackgroundValue(may_end.wait) for _ in range(3)]
    threading.Timer(0.2, may_end.set).start()
    wait_for_all()
    assert all(ahead._made == [True] for ahead in several)


def _compiled(fn: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    return lab.compile(fn, **options)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_does_not_wait_for_the_thread_of_its_parent() -> None:
    may_end, processes = threading.Event(), multiprocessing.get_context("fork")
    ahead = BackgroundValue(lambda: may_end.wait(60))
    ours, theirs = processes.Pipe(duplex=False)

    def in_child() -> None:
        may_end.set()
        theirs.send(ahead.wait())

    child = processes.Process(target=in_child)
    child.start()
    assert ours.poll(60) and ours.recv() is True
    may_end.set()
    child.join()
    assert ahead.wait() is True


def test_forward_and_backward_are_compiled_concurrently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The C++ compiler fails unless another one runs at the same time."""
    slow = script(
        tmp_path / "slow-g++",
        'case "$*" in *--version*) exec g++ --version;; esac\n'
        f'touch {tmp_path}/begun.$$\n'
        "for turn in $(seq 600); do\n"
        f'    [ $(ls {tmp_path}/begun.* | wc -l) -ge 2 ] && exec g++ "$@"\n'
        "    sleep 0.1\n"
        "done\n"
        'echo "kernel.cpp:1:1: error: alone" >&2; exit 1',
    )
    monkeypatch.setenv("CXX", str(slow))
    x = torch.randn(100, requires_grad=True)
    ours = _compiled(lambda x: x.sin() * 2)
    ours(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())


def test_a_failed_compile_raises_at_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is raised at each call until the compiler works."""
    broken = script(
        tmp_path / "broken-g++",
        'case "$*" in *--version*) exec g++ --version;; esac\n'
        f'[ -e {tmp_path}/mended ] && exec g++ "$@"\n'
        'echo "kernel.cpp:1:1: error: not today" >&2; exit 1',
    )
    monkeypatch.setenv("CXX", str(broken))
    # of an earlier run, whose compiler had the same path, the user's cache has the library
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path / "cache"))
    ours, x = _compiled(lambda x: x.sin() * 3), torch.randn(100)
    for _ in range(2):
        with pytest.raises(CompileFailed, match="not today"):
            ours(x)
    (tmp_path / "mended").touch()
    torch.testing.assert_close(ours(x), x.sin() * 3)


def test_with_suppressed_errors_a_graph_without_a_library_runs_in_eager_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes gradients and writes to inputs.  There is one warning for each graph."""
    broken = script(
        tmp_path / "broken-g++",
        'case "$*" in *--version*) exec g++ --version;; esac\n'
        'echo "kernel.cpp:1:1: error: not today" >&2; exit 1',
    )
    monkeypatch.setenv("CXX", str(broken))

    def scaled(x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        counts.add_(1)
        return x.sin() * counts.sum()

    torch._dynamo.reset()
    ours, counts = lab.compile(scaled), torch.zeros(3)
    x = torch.randn(100, requires_grad=True)
    with torch._dynamo.config.patch(suppress_errors=True):
        message = "scaled runs uncompiled: .*could not compile"
        with pytest.warns(RunsUncompiled, match=message) as told:
            result = ours(x, counts)
            result.sum().backward()
        assert 1 <= len(told) <= 2
        torch.testing.assert_close(x.grad, x.detach().cos() * 3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for n in (2, 3):
                torch.testing.assert_close(ours(x, counts), x.sin() * 3 * n)
    assert counts.tolist() == [3, 3, 3]
