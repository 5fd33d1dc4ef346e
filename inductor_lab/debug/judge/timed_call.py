"""One sample: several calls of the function of a process, timed by the clock of the judge.

On a GPU the process makes the same calls with other inputs until the clock starts.  A process that
has just been stopped launches kernels more slowly: it has to wait for its processor, and for its
caches.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import torch

from inductor_lab.debug.judge.cases import Arguments
from inductor_lab.debug.judge.remote_call import SERVED, Layout, Results
from inductor_lab.debug.judge.timing_memory import HostMemory, Span, TimingMemory
from inductor_lab.debug.judge.tree import Tree
from inductor_lab.debug.untrusted.remote import Process

WARM_UP = 0.01
"""Seconds of calls on a GPU before the clock starts."""


@dataclass(frozen=True)
class Plan:
    """Several calls of one sample: their arguments, and where everything is in shared memory.

    earlier  arguments that have been used, for calls before the clock starts
    """

    layouts: list[Layout]
    earlier: list[Layout]
    places: list[dict[str, list[Span]]]
    results: Results
    written: list[int]
    gradients: int | None

    @staticmethod
    def of(
        calls: Sequence[Arguments], earlier: list[Layout], results: Results, written: list[int],
        gradients: int | None, memory: TimingMemory,
    ) -> Plan:  # fmt: skip
        """Places at random offsets, so that no address says anything."""
        layouts = [Layout.of(args) for args in calls]
        sizes = [[one.numel() for one in layout.storages] for layout in layouts]
        outputs = [nbytes_of(one) for one in results]
        unit = memory.aligned
        needed = sum(aligned(count, unit) for own in sizes for count in (*own, *outputs))
        free = max((memory.nbytes - needed) // unit, 1)
        at = random.SystemRandom().randrange(free) * unit
        places: list[dict[str, list[Span]]] = [{"storages": [], "results": []} for _ in sizes]
        for what, each in (("storages", sizes), ("results", [outputs] * len(sizes))):
            for place, counts in zip(places, each, strict=True):
                for count in counts:
                    place[what].append((at, count))
                    at += aligned(count, unit)
        return Plan(layouts, earlier, places, results, written, gradients)

    @property
    def inputs(self) -> list[tuple[Span, torch.Tensor]]:
        """Where each input is written, and its bytes."""
        return self._placed(self.layouts)

    @property
    def earlier_inputs(self) -> list[tuple[Span, torch.Tensor]]:
        """The same for arguments that have been used."""
        return self._placed(cycle(self.earlier))

    def _placed(self, layouts: Iterable[Layout]) -> list[tuple[Span, torch.Tensor]]:
        return [
            (span, content) for place, layout in zip(self.places, layouts, strict=False)
            for span, content in zip(place["storages"], layout.storages, strict=True)
        ]  # fmt: skip

    @property
    def outputs(self) -> list[Span]:
        return [span for place in self.places for span in place["results"]]

    @property
    def input_span(self) -> Span:
        """All inputs, with what is between."""
        return _around([span for span, _ in self.inputs])

    @property
    def output_span(self) -> Span:
        """All results, with what is between."""
        return _around(self.outputs)

    @property
    def copied_span(self) -> Span:
        """What the judge copies: the results, and all inputs if the reference writes to some."""
        inputs = [span for span, _ in self.inputs] if self.written else []
        return _around([*inputs, *self.outputs])

    def request(self) -> dict[str, Any]:
        """What the side that calls must know."""
        layout = self.layouts[0]
        return layout.request() | self.short_request() | {"calls": self.places}

    def short_request(self) -> dict[str, Any]:
        """The same for calls that are prepared."""
        results = [(list(shape), dtype) for shape, dtype in self.results]
        return {"calls": [], "results": results, "gradients": self.gradients}


def _around(spans: Sequence[Span]) -> Span:
    first = min((at for at, _ in spans), default=0)
    return first, max((at + count for at, count in spans), default=0) - first


def nbytes_of(result: tuple[tuple[int, ...], torch.dtype]) -> int:
    """Bytes of a result with this shape and dtype."""
    count = result[1].itemsize
    for length in result[0]:
        count *= length
    return count


def aligned(count: int, unit: int) -> int:
    """The next multiple of `unit`."""
    return -(-count // unit) * unit


@dataclass(frozen=True)
class Sampled:
    """What the calls of a sample did.

    layouts    dtype and shape of each result, as the side that was called says
    results    copies of the results of each call
    written    for each call, copies of the arguments that the reference writes to
    unchanged  whether the other arguments are as they were
    """

    layouts: list[Any]
    results: list[list[torch.Tensor]]
    written: list[list[torch.Tensor]]
    unchanged: bool


class Timed:
    """The root of a process, which is stopped while it is not called, and the shared memory."""

    def __init__(self, memory: TimingMemory, process: Process, tree: Tree) -> None:
        self.memory, self.process, self.tree = memory, process, tree
        tree.stop()

    @staticmethod
    def with_file(process: Process, nbytes: int, folder: Path, tree: Tree) -> Timed:
        """A process that shares a file in `folder`."""
        memory, path = HostMemory.made(folder, nbytes)
        process.run(f"{SERVED}:share", path)
        Path(path).unlink()
        return Timed(memory, process, tree)

    def sample(
        self, plan: Plan, nothing: bool = False, cold: bool = False
    ) -> tuple[float, Sampled]:
        """Seconds of the calls of a plan, until their results are copied; and what they did.

        With `nothing`, a function that computes nothing is called.
        """
        memory = self.memory
        request = plan.short_request() if memory.batches else plan.request()
        if memory.batches:
            self.tree.resume()
            self.process.run(f"{SERVED}:prepare", plan.request())
            self.tree.stop()
        memory.before(plan, cold)
        if memory.batches:
            self._warm_up(nothing, request)
            memory.clear_results(plan)
        spans = plan.outputs
        spans += [place["storages"][n] for place in plan.places for n in plan.written]
        start = time.perf_counter()
        memory.start(plan, cold)
        layouts = self._answer(nothing, request)
        copies = memory.copied(plan, spans)
        took = time.perf_counter() - start
        self.tree.stop()
        rest = iter(copies)
        results = [[next(rest) for _ in place["results"]] for place in plan.places]
        written = [[next(rest) for _ in plan.written] for _ in plan.places]
        unchanged = all(
            n in plan.written or torch.equal(memory.part(*place["storages"][n]), content)
            for layout, place in zip(plan.layouts, plan.places, strict=True)
            for n, content in enumerate(layout.storages)
        )
        return took, Sampled(layouts, results, written, unchanged)

    def _warm_up(self, nothing: bool, request: dict[str, Any]) -> None:
        """Make the prepared calls, with inputs that have been used."""
        end = time.perf_counter() + WARM_UP
        self._answer(nothing, request)
        while time.perf_counter() < end:
            self._answer(nothing, request)

    def _answer(self, nothing: bool, request: dict[str, Any]) -> list[Any]:
        self.tree.resume()
        if nothing:
            found = self.process.run(f"{SERVED}:timed_nothing", request)
        else:
            found = self.process.run(f"{SERVED}:timed_calls", self.process.root, request)
        return found  # type: ignore[no-any-return]
