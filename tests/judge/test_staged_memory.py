"""Calls are timed with staged memory, as on a GPU."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.candidate import Candidate, candidate_of
from inductor_lab.debug.judge.cases import Arguments, Cases
from inductor_lab.debug.judge.remote_call import Results
from inductor_lab.debug.judge.speed import CannotTime, Sides, Speed, measure, room_of
from inductor_lab.debug.judge.timed_call import Timed
from inductor_lab.debug.judge.tree import Tree
from inductor_lab.debug.untrusted.confine import Limits, confinable
from inductor_lab.debug.untrusted.fresh import Fresh
from inductor_lab.debug.untrusted.remote import Process
from tests.judge import candidates, exploits, more_exploits
from tests.judge.exploits import HEAD
from tests.judge.staged import KNOWS_PREPARED_CALLS, FileMemory

pytestmark = pytest.mark.skipif(not confinable(), reason="no Landlock on this machine")
SLEEPS = "import time\ndef candidate(x):\n    time.sleep(0.03)\n    return right(x)\n"
CLASSES = "inductor_lab.debug.judge.serve_candidate:CLASSES"
BYTES = 1 << 24
FAST = {
    **{name: exploits.FAST[name] for name in (
        "computes_only_if_it_is_not_timed", "float16_if_it_is_timed",
        "patches_what_copies_its_results",
    )},
    **{name: more_exploits.FAST[name] for name in (
        "uses_its_argument_as_scratch_if_it_is_timed", "copies_the_result_of_the_call_before",
        "half_of_the_work_if_it_is_timed",
    )},
    "one_buffer_for_all_results": exploits.WRONG["one_buffer_for_all_results"],
    "computes_before_the_clock_starts": KNOWS_PREPARED_CALLS,
}  # fmt: skip


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(2 * x, -1)


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Fresh, Fresh]]:
    preload = ("inductor_lab.debug.judge.serve_candidate", "tests.judge.staged")
    with Fresh(preload) as first, Fresh(preload) as second:
        yield first, second


@contextmanager
def started(server: Fresh, candidate: Candidate) -> Iterator[tuple[Process, FileMemory]]:
    memory, file = FileMemory.made(BYTES)
    argument = {"candidate": candidate.as_data(), "gpu": False, "threads": 1, "nbytes": BYTES}
    with server.start("tests.judge.staged:begin", argument, Limits(60.0, 60.0), CLASSES, (),
                      files=[file]) as process:  # fmt: skip
        os.close(file)
        process.begin()
        yield process, memory


def speed(
    servers: tuple[Fresh, Fresh], text: str, base: Candidate | None = None
) -> tuple[Speed, FileMemory]:
    """What is measured, and the memory of the candidate; `base` is the text of the reference."""
    used: list[FileMemory] = []
    base = base or candidate_of(reference)

    @contextmanager
    def opened(function: Applied, args: Arguments, results: Results) -> Iterator[Sides]:
        with (started(servers[0], Candidate(text)) as (process, memory),
              started(servers[1], base) as (other, room)):  # fmt: skip
            used.append(memory)
            yield Sides(Timed(memory, process, Tree(servers[0].server.pid, keepers=True)),
                        Timed(room, other, Tree(servers[1].server.pid, keepers=True)))  # fmt: skip

    x = torch.randn(33, 40, generator=torch.Generator().manual_seed(1))
    cases = Cases([((x,), {})], secrets.randbits(62), lambda args: True)
    return measure(Applied(reference), cases, 0.2, opened), used[0]


def test_an_honest_candidate_is_timed(servers: tuple[Fresh, Fresh]) -> None:
    found, memory = speed(servers, candidates.PYTHON)
    assert not found.wrong
    assert {*found.timings.seconds} == {"candidate", "reference", "candidate with cold caches",
                                        "reference with cold caches"}  # fmt: skip
    assert memory.evicted >= found.timings.rounds >= 3


def test_the_time_of_a_call_is_measured(servers: tuple[Fresh, Fresh]) -> None:
    found, _ = speed(servers, HEAD + SLEEPS)
    assert 20 < found.timings.median_ms("candidate") < 60, found


def test_a_reference_whose_text_does_something_else_is_not_timed(servers) -> None:
    other = Candidate(HEAD + "def candidate(x):\n    return right(x) + 1\n")
    with pytest.raises(CannotTime, match="gives other results"):
        speed(servers, candidates.PYTHON, other)


@pytest.mark.parametrize("name", FAST)
def test_a_cheat_is_rejected(servers: tuple[Fresh, Fresh], name: str) -> None:
    found, _ = speed(servers, HEAD + FAST[name])
    assert found.wrong, f"{name}: {found}"


def test_the_memory_is_large_enough_for_some_calls() -> None:
    args: Arguments = ((torch.zeros(1000),), {})
    results = [((1000,), torch.float32)]
    assert room_of(args, results, FileMemory, 1 << 13) == 0
    assert room_of(args, results, FileMemory, 1 << 24) == 4 * 128 * 8192 + (1 << 16)
