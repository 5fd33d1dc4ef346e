"""Python's search for garbage waits while a function is compiled, and goes on afterwards."""

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
    """Python would search a thousand times during a compilation."""
    torch.compiler.reset()
    before = gc.get_threshold()
    gc.set_threshold(50, 5, 5)
    yield
    gc.set_threshold(*before)


def searches_in(run: Callable[[], object]) -> int:
    """How often Python searches while Dynamo compiles."""
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
def test_nothing_is_searched_while_dynamo_captures_a_function() -> None:
    x = torch.ones(4, 4)
    assert searches_in(lambda: torch.compile(layers, backend="aot_eager")(x)) > 10
    for _ in range(2):
        torch.compiler.reset()
        assert searches_in(lambda: lab.compile(layers)(x)) == 0
        assert gc.isenabled()


def test_nothing_is_searched_in_the_first_capture_of_a_process() -> None:
    """It is over when `torch.compile` calls a backend that it has found by name."""
    program = """
        import gc, torch
        from tests.end_to_end.test_garbage import layers, searches_in
        x = torch.ones(4, 4)
        gc.set_threshold(50, 5, 5)
        compiled = torch.compile(layers, backend="inductor_lab")
        print(searches_in(lambda: compiled(x)), gc.isenabled())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"]


def test_the_search_goes_on_after_a_function_that_cannot_be_captured() -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported):
        lab.compile(lambda: torch._dynamo.graph_break(), fullgraph=True)()
    assert gc.isenabled()


@pytest.mark.usefixtures("often")
def test_the_search_goes_on_after_a_reset_in_another_thread() -> None:
    """A backward that is compiled when it is first run has no lock that a reset would wait for."""
    asked = []

    def with_a_reset(module: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        with ThreadPoolExecutor(1) as threads:
            error = threads.submit(torch.compiler.reset).exception()
        asked.append((gc.isenabled(), str(error)))
        return boxed_nop(module, _)

    x = torch.ones(4, 4, requires_grad=True)
    lab.compile(layers)(x)  # from now on captures do not search
    backend = aot_autograd(fw_compiler=boxed_nop, bw_compiler=with_a_reset)
    torch.compile(layers, backend=backend)(x).sum().backward()
    assert asked == [(False, "Cannot clear callbacks while 1 are pending")] and gc.isenabled()


class CollectorAsked(lab.Observer):
    """Is Python searching for cycles when a phase starts?"""

    def __init__(self) -> None:
        self.found: dict[str, bool] = {}

    def entered(self, phase: str) -> None:
        self.found[phase] = gc.isenabled()


@pytest.mark.parametrize("searching", [True, False])
def test_the_search_for_cycles_waits_and_goes_on(searching: bool) -> None:
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
def test_what_was_made_meanwhile_is_old(aside: int, old: bool, monkeypatch) -> None:
    """Python 3.12 sets some hundred objects aside by itself; those of a user stay there."""
    monkeypatch.setattr(gc, "get_freeze_count", lambda: aside)
    with no_collection():
        made = [[number] for number in range(10_000)]
    assert any(each is made for each in gc.get_objects(generation=2)) is old
