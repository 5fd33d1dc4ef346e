"""What is done in a call around the kernels: nothing, where there is nothing to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch

import inductor_lab as lab


def files_entered(function: Callable[[], Any]) -> set[str]:
    """The names of all files whose Python functions are entered while `function` runs."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename.rsplit("/", 1)[-1])

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


def goes_straight(fn: Callable[..., Any], *args: Any) -> bool:
    """Does a compiled call reach the host program without AOTAutograd's wrappers?"""
    fast = lab.compile(fn)
    fast(*args)
    entered = files_entered(lambda: fast(*args))
    assert any(name.startswith("<host program") for name in entered)
    return not any("runtime_wrapper" in name for name in entered)


X = torch.linspace(-1, 1, 12).view(3, 4)
BUFFER = torch.zeros(3, 4)


def added(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1)


def written(x: torch.Tensor) -> torch.Tensor:
    BUFFER.copy_(x)
    return x + 1


STRAIGHT: dict[str, Callable[[torch.Tensor], Any]] = {
    "pointwise": lambda x: x.sin() + 1,
    "two results": lambda x: (x + 1, x.sum(0)),
    "a view of another result": lambda x: (y := x + 1, y[1:], y.view(-1)),
    "a number": lambda x: x * x.shape[0],
    "a library's call": lambda x: x @ x.T + 1,
    "writes to a buffer": written,
}
AROUND: dict[str, Callable[[torch.Tensor], Any]] = {
    "a view of an input": lambda x: (x[1:], x + 1),
    "writes to an input": added,
}


@pytest.mark.parametrize("name", STRAIGHT)
def test_the_host_program_is_all_there_is(name: str) -> None:
    fn = STRAIGHT[name]
    assert goes_straight(fn, X.clone())
    with torch.no_grad():
        assert goes_straight(fn, X.clone().requires_grad_())
    torch.testing.assert_close(lab.compile(fn)(X.clone()), fn(X.clone()))


@pytest.mark.parametrize("name", AROUND)
def test_what_has_more_to_do_is_done(name: str) -> None:
    fn = AROUND[name]
    assert not goes_straight(fn, X.clone())
    ours, eager = X.clone(), X.clone()
    found = lab.compile(fn)(ours)
    torch.testing.assert_close(found, fn(eager))
    torch.testing.assert_close(ours, eager)
    assert ours._version == eager._version
    if isinstance(found, tuple):
        shared = [t.untyped_storage().data_ptr() for t in (ours, *found)]
        assert len(set(shared)) == 2


def test_a_buffer_that_is_written_counts_a_version() -> None:
    fast = lab.compile(written)
    for factor in (1, 2, 3):
        before = BUFFER._version
        fast(X * factor)
        assert BUFFER._version == before + 1
        torch.testing.assert_close(BUFFER, X * factor)


def test_results_of_inputs_that_want_gradients() -> None:
    x = X.clone().requires_grad_()
    assert not goes_straight(lambda x: x.detach() @ torch.ones(4, 2), x)
    assert not lab.compile(lambda x: x.detach() @ torch.ones(4, 2))(x).requires_grad
    fast = lab.compile(lambda x: x @ torch.ones(4, 2))
    with torch.no_grad():
        assert not fast(x).requires_grad
    assert fast(x).requires_grad


def test_autocast() -> None:
    fast = lab.compile(lambda x: x @ x.T)
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            assert fast(X).dtype == torch.bfloat16
        assert fast(X).dtype == torch.float32


def test_the_same_input_twice() -> None:
    fast = lab.compile(lambda a, b: a * 2 + b)
    for a, b in ((X, X), (X, X + 1), (X, X)):
        torch.testing.assert_close(fast(a, b), a * 2 + b)


def test_a_call_imports_nothing_of_stock_inductor() -> None:
    """TorchDynamo itself imports some of it; we must not add to that."""
    program = (
        "import sys, torch, torch._dynamo; import inductor_lab.api.backend\n"
        "before = set(sys.modules)\n"
        "torch.compile(lambda x: x.sin(), backend='inductor_lab')(torch.ones(3))\n"
        "new = {m for m in set(sys.modules) - before if m.startswith('torch._inductor')}\n"
        "assert 'torch._inductor.debug' not in new, new\n"
        "assert not any(m.startswith('torch._inductor.ir') for m in new), new\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
