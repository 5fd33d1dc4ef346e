"""Python's garbage collection is disabled during a compile, and restored afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop

import inductor_lab as lab
from inductor_lab.compiler.base.errors import MissingLowering
from inductor_lab.compiler.base.garbage import no_collection


@pytest.fixture
def often() -> Iterator[None]:
    """With this threshold, Python would collect a thousand times during a compile."""
    torch.compiler.reset()
    before = gc.get_threshold()
    gc.set_threshold(50, 5, 5)
    yield
    gc.set_threshold(*before)


def collections_in(run: Callable[[], object]) -> int:
    """Return how often Python collects garbage while Dynamo compiles."""
    found: list[bool] = []

    def seen(phase: str, _: object) -> None:
        frame = sys._getframe()
        while phase == "start" and frame is not None:
            if frame.f_code.co_name == "_compile_inner":
                return found.append(True)
            frame = frame.f_back

    gc.callbacks.append(seen)
    try:
        run()
    finally:
        gc.callbacks.remove(seen)
    return len(found)


def layers(x: torch.Tensor) -> torch.Tensor:
    for _ in range(20):
        x = torch.sin(x) @ x
    return x


@pytest.mark.usefixtures("often")
def test_no_collection_while_dynamo_captures_a_function() -> None:
    x = torch.ones(4, 4)
    assert collections_in(lambda: torch.compile(layers, backend="aot_eager")(x)) > 10
    for _ in range(2):
        torch.compiler.reset()
        assert collections_in(lambda: lab.compile(layers)(x)) == 0
        assert gc.isenabled()


def test_no_collection_in_the_first_capture_of_a_process() -> None:
    """The capture has ended when `torch.compile` calls a backend that it has found by name."""
    program = """
        import gc, torch
        from tests.end_to_end.test_garbage_collection import layers, collections_in
        x = torch.ones(4, 4)
        gc.set_threshold(50, 5, 5)
        compiled = torch.compile(layers, backend="inductor_lab")
        print(collections_in(lambda: compiled(x)), gc.isenabled())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"]


def test_collection_is_enabled_after_a_failed_capture() -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported):
        lab.compile(lambda: torch._dynamo.graph_break(), fullgraph=True)()
    assert gc.isenabled()


@pytest.mark.usefixtures("often")
def test_collection_is_enabled_after_a_reset_in_another_thread() -> None:
    """A backward compiled at its first run holds no lock, so a reset does not wait for it."""
    asked = []

    def with_a_reset(module: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        with ThreadPoolExecutor(1) as threads:
            error = threads.submit(torch.compiler.reset).exception()
        asked.append((gc.isenabled(), str(error)))
        return boxed_nop(module, _)

    x = torch.ones(4, 4, requires_grad=True)
    lab.compile(layers)(x)  # from now on, captures disable collection
    backend = aot_autograd(fw_compiler=boxed_nop, bw_compiler=with_a_reset)
    torch.compile(layers, backend=backend)(x).sum().backward()
    assert asked == [(False, "Cannot clear callbacks while 1 are pending")] and gc.isenabled()


class CollectorAsked(lab.Observer):
    """Record whether garbage collection is enabled when a phase starts."""

    def __init__(self) -> None:
        self.found: dict[str, bool] = {}

    def entered(self, phase: str) -> None:
        self.found[phase] = gc.isenabled()


@pytest.mark.parametrize("searching", [True, False])
def test_collection_is_disabled_during_a_compile_and_restored(searching: bool) -> None:
    asked, before = CollectorAsked(), gc.isenabled()
    x = torch.ones(4, 4, requires_grad=True)
    try:
        (gc.enable if searching else gc.disable)()
        lab.inspect(layers, x, observer=asked).result.sum().backward()
        after = [gc.isenabled()]
        with pytest.raises(MissingLowering):
            lab.inspect(torch.linalg.inv, torch.eye(2), options={"strict": True})
        after.append(gc.isenabled())
    finally:
        (gc.enable if before else gc.disable)()
    assert asked.found["total"] is searching and after == [searching, searching]
    assert not asked.found["forward.lower"] and not asked.found["backward.lower"]


@pytest.mark.parametrize(("aside", "old"), [(0, True), (375, True), (50_000, False)])
def test_objects_created_during_a_compile_become_old(aside: int, old: bool, monkeypatch) -> None:
    """Python 3.12 freezes some hundred objects itself.  Objects that a user froze stay frozen."""
    monkeypatch.setattr(gc, "get_freeze_count", lambda: aside)
    with no_collection():
        made = [[number] for number in range(10_000)]
    assert any(each is made for each in gc.get_objects(generation=2)) is old
