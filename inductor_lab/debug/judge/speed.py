"""Time a candidate and the reference, interleaved, by the clock of the judge.

    judge       writes fresh inputs to shared memory    t0 ────────────── t1  compares the results
    candidate                                              calls, copies

The time ends when the judge has its own copy of the results.  So a result that is computed later
(by a thread, or lazily) is late or wrong, and every timed call is checked.  Between its calls the
processes of the candidate are stopped.  What the messages and
the copies cost is timed with a function that computes nothing, and subtracted.

Each round is timed twice.  With warm caches, the inputs are where the judge has just written them.
With cold caches, they are evicted to memory first.
"""

from __future__ import annotations

import mmap
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from inductor_lab.bench.timings import Timings
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.compare.precision import judge
from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.cases import Arguments, Cases
from inductor_lab.debug.judge.cold_memory import Evict, evictor
from inductor_lab.debug.judge.expected import expected
from inductor_lab.debug.judge.remote_call import SERVED, Layout, Results
from inductor_lab.debug.judge.serve_candidate import CLASSES
from inductor_lab.debug.judge.tree import Tree
from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.remote import Process, Raised, Stopped, copy_of_this_process

OWN, REFERENCE = "candidate", "reference"
COLD = " with cold caches"
"""Follows a name in the timings."""
LONG_ENOUGH = 4e-3
"""Seconds of one sample; shorter calls are timed several at once."""
MOST_CALLS = 32
SHARED_BYTES = 256 << 20
REFERENCE_LIMIT = 3600.0
"""Seconds for the reference, which is trusted to end."""
FEWEST_ROUNDS, FEWEST_IF_SLOW, MOST_ROUNDS = 7, 3, 200
ALIGNED = 64
LEAST_SHARE = 0.05
"""If the costs of messages vary more than the call takes, this share of the sample counts."""
SETTLES, RESTS, BUSY = 0.02, 0.15, 0.05
"""Seconds after the last call, seconds in which it should rest, and the share that it may use."""


@dataclass(frozen=True)
class Speed:
    """The measured times.

    timings   seconds per call of each round, without what messages and copies cost: of the names
              above, and of the names with COLD where caches can be evicted
    overhead  these costs, in seconds per call
    wrong     why the measurement rejects the candidate; "" if it does not
    """

    timings: Timings = field(default_factory=lambda: Timings({}))
    overhead: float = 0.0
    wrong: str = ""


class Timed:
    """One process, and the memory that it shares with the judge."""

    def __init__(self, process: Process, nbytes: int, folder: Path, tree: Tree) -> None:
        self.process, self.tree = process, tree
        handle, path = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "r+b") as file:
            file.truncate(nbytes)
            self.memory = mmap.mmap(file.fileno(), nbytes)
        process.run(f"{SERVED}:share", path)
        os.unlink(path)
        tree.stop()

    def bytes(self, at: int, count: int) -> torch.Tensor:
        """A part of the memory."""
        if not count:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self.memory, dtype=torch.uint8, count=count, offset=at)

    def sample(
        self, function: str, plan: Plan, target: Any = None, evict: Evict | None = None
    ) -> tuple[float, list[Any]]:
        """Seconds of the calls of a plan; the shapes and copies of their results, what they wrote
        to their arguments, and whether the other arguments are unchanged."""
        self._write(plan)
        if evict is not None:
            for place in plan.places:
                for at, count in (*place["storages"], *place["results"]):
                    evict(self.bytes(at, count))
        given = (plan.request(),) if target is None else (target, plan.request())
        start = time.perf_counter()
        self.tree.resume()
        layouts = self.process.run(f"{SERVED}:{function}", *given)
        found = [[self.bytes(at, count).clone() for at, count in place["results"]]
                 for place in plan.places]  # fmt: skip
        written = [[self.bytes(*place["storages"][n]).clone() for n in plan.written]
                   for place in plan.places]  # fmt: skip
        took = time.perf_counter() - start
        self.tree.stop()
        unchanged = all(
            n in plan.written or torch.equal(self.bytes(*place["storages"][n]), content)
            for layout, place in zip(plan.layouts, plan.places, strict=True)
            for n, content in enumerate(layout.storages)
        )
        return took, [layouts, found, written, unchanged]

    def _write(self, plan: Plan) -> None:
        """Write the inputs of a plan, and a pattern where its results will be."""
        for layout, place in zip(plan.layouts, plan.places, strict=True):
            for content, (at, count) in zip(layout.storages, place["storages"], strict=True):
                self.bytes(at, count).copy_(content)
            for at, count in place["results"]:
                self.bytes(at, count).fill_(0x7F)


@dataclass(frozen=True)
class Plan:
    """Several calls of one sample: their arguments, and where everything is in shared memory."""

    layouts: list[Layout]
    places: list[dict[str, Any]]
    results: Results
    written: list[int]
    gradients: int | None

    @staticmethod
    def of(
        calls: Sequence[Arguments], results: Results, written: list[int], gradients: int | None,
        room: int,
    ) -> Plan:  # fmt: skip
        """Places at random offsets, so that no address says anything."""
        layouts = [Layout.of(args) for args in calls]
        sizes = [[one.numel() for one in layout.storages] for layout in layouts]
        outputs = [_nbytes(one) for one in results]
        needed = sum(sum(map(_aligned, (*one, *outputs))) for one in sizes)
        at = random.SystemRandom().randrange(max((room - needed) // ALIGNED, 1)) * ALIGNED
        places = []
        for own in sizes:
            found = []
            for count in (*own, *outputs):
                found.append((at, count))
                at += _aligned(count)
            places.append({"storages": found[: len(own)], "results": found[len(own) :]})
        return Plan(layouts, places, results, written, gradients)

    def request(self) -> dict[str, Any]:
        layout = self.layouts[0]
        results = [(list(shape), dtype) for shape, dtype in self.results]
        return layout.request() | {
            "calls": self.places, "results": results, "gradients": self.gradients,
        }  # fmt: skip


def _calls(took: float, empty: float) -> int:
    """How many calls a sample needs, if one takes that long."""
    return int(LONG_ENOUGH / max(took - empty, LEAST_SHARE * took))


def _nbytes(result: tuple[tuple[int, ...], torch.dtype]) -> int:
    count = result[1].itemsize
    for length in result[0]:
        count *= length
    return count


def _aligned(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED


def measure(
    reference: Applied, process: Process, cases: Cases, seconds: float,
    folder: Path, tree: Tree,
) -> Speed:  # fmt: skip
    """Time the calls of the first example, for about `seconds`."""
    args = cases.examples[0]
    kept = expected(reference, args)
    before = Layout.of(args).storages
    written = [n for n, one in enumerate(before) if _is_written(reference, args, n)]
    call_bytes = sum(_aligned(one.numel()) for one in before)
    call_bytes += sum(_aligned(_nbytes(one)) for one in kept.results)
    if 2 * call_bytes > SHARED_BYTES:
        return Speed(wrong="")
    room = min(SHARED_BYTES, 4 * MOST_CALLS * call_bytes + (1 << 16))
    with (
        tempfile.TemporaryDirectory(dir=shared_folder()) as own,
        copy_of_this_process(reference.function, Limits(REFERENCE_LIMIT), CLASSES) as peer,
    ):
        peer.begin()
        base = Timed(peer, room, Path(own), Tree(peer.keeper))
        mine = Timed(process, room, folder, tree)
        spreads = [kept.spread.get(f"result {n}") for n in range(len(kept.results))]
        allowed = [float(x.max()) if x is not None and x.numel() else 0.0 for x in spreads]
        return _Rounds(base, mine, cases, args, kept.results, written, reference.gradients, room,
                       allowed).run(seconds, call_bytes)  # fmt: skip


def _is_written(reference: Applied, args: Arguments, number: int) -> bool:
    copied = pytree.tree_map_only(torch.Tensor, torch.clone, args)
    layout = Layout.of(copied)
    if number >= len(layout.storages):
        return False
    before = layout.storages[number].clone()
    reference(*copied)
    return not torch.equal(before, layout.storages[number])


def shared_folder() -> Path | None:
    """A folder in memory, where there is one; a confined process cannot write to it."""
    found = Path("/dev/shm")
    try:
        tempfile.TemporaryFile(dir=found).close()
    except OSError:
        return None
    return found


@dataclass
class _Rounds:
    base: Timed
    mine: Timed
    cases: Cases
    args: Arguments
    results: Results
    written: list[int]
    gradients: int | None
    room: int
    allowed: list[float]
    before: Plan | None = None

    def run(self, seconds: float, call_bytes: int) -> Speed:
        """Rounds of one sample each; the first warms up and says how many calls a sample has."""
        empty, took, wrong = self._round(1)
        if wrong:
            return Speed(wrong=wrong)
        most = max(1, min(MOST_CALLS, self.room // (2 * call_bytes + 1)))
        calls = max(1, min(most, *(_calls(each, empty) for each in took.values())))
        evict = evictor()
        modes = {"": None} if evict is None else {"": None, COLD: evict}
        samples: dict[str, list[float]] = {n + mode: [] for mode in modes for n in (OWN, REFERENCE)}
        nothing: dict[str, list[float]] = {mode: [] for mode in modes}
        end = time.perf_counter() + seconds
        for number in range(MOST_ROUNDS):
            late = time.perf_counter() - end
            if late > 0 and number >= (FEWEST_ROUNDS if late < seconds else FEWEST_IF_SLOW):
                break
            for mode, way in modes.items():
                empty, took, wrong = self._round(calls, number % 2 == 1, way)
                if wrong:
                    return Speed(wrong=wrong)
                nothing[mode].append(empty)
                for name, each in took.items():
                    samples[name + mode].append(each)
        overhead = {mode: statistics.median(found) for mode, found in nothing.items()}
        timed = {
            name + mode: tuple(max(each - overhead[mode], LEAST_SHARE * each) / calls
                               for each in samples[name + mode])
            for mode in modes for name in (OWN, REFERENCE)
        }  # fmt: skip
        return Speed(Timings(timed), overhead[""] / calls, self._busy())

    def _busy(self) -> str:
        """Why the process is rejected that works while it is not called; "" if it does not."""
        tree = self.mine.tree
        tree.resume()
        time.sleep(SETTLES)  # threads of OpenMP wait actively for a while
        there, used, start = {one.pid for one in tree.seen()}, tree.seconds(), time.perf_counter()
        time.sleep(RESTS)
        used, waited = tree.seconds() - used, time.perf_counter() - start
        if not {one.pid for one in tree.seen()} <= there:
            return "it starts processes while it is not called"
        if used < BUSY * waited:
            return ""
        return (f"it used {used:.2f} s of the processor in {waited:.2f} s in which it was not "
                "called: threads or processes of an earlier call")  # fmt: skip

    def _round(
        self, calls: int, back: bool = False, evict: Evict | None = None
    ) -> tuple[float, dict[str, float], str]:
        """Seconds of nothing, of both functions, and what is wrong with the candidate's results."""
        fresh = [self.cases.redrawn(self.args) for _ in range(calls)]
        plan = Plan.of(fresh, self.results, self.written, self.gradients, self.room)
        took: dict[str, float] = {}
        found: dict[str, list[Any]] = {}
        empty = 0.0
        for name in (REFERENCE, OWN) if back else (OWN, REFERENCE):
            if name == OWN:
                if self.before is not None:  # both processes have just done something
                    self.mine.sample("timed_nothing", self.before)
                took[OWN], found[OWN] = self.mine.sample(
                    "timed_calls", plan, self.mine.process.root, evict
                )
            else:
                empty, took[REFERENCE], found[REFERENCE] = self._reference(plan, evict)
        self.before = plan
        return empty, took, self._wrong(found[OWN], found[REFERENCE])

    def _reference(self, plan: Plan, evict: Evict | None) -> tuple[float, float, list[Any]]:
        """Seconds of nothing, seconds of the reference, and its results."""
        try:
            empty, _ = self.base.sample("timed_nothing", plan, evict=evict)
            return empty, *self.base.sample("timed_calls", plan, self.base.process.root, evict)
        except (Raised, Stopped) as failed:
            what = f"the reference cannot be timed: {failed}"
            raise NotRunnable(what, todo="judge with seconds=None") from None

    def _wrong(self, got: list[Any], peer: list[Any]) -> str:
        shaped = [[(dtype, shape) for shape, dtype in self.results]] * len(peer[1])
        if got[0] != shaped:
            return "a timed call returned other shapes than the reference"
        for own, other in zip(got[1], peer[1], strict=True):
            for number, (one, two) in enumerate(zip(own, other, strict=True)):
                shape, dtype = self.results[number]
                if not one.numel():
                    continue
                spread = torch.full(shape, self.allowed[number], dtype=torch.float64)
                mine, base = (x.view(dtype).view(shape) for x in (one, two))
                judged = judge(mine, base, None, spread)
                if not judged.right and judged.kind != "sign of zero":
                    return f"in a timed call, result {number} is {judged}"
        if not got[3]:
            return "a timed call wrote to its arguments"
        return self._wrong_arguments(got[2], peer[2])

    def _wrong_arguments(self, got: list[Any], peer: list[Any]) -> str:
        """What a function that writes to its arguments left there."""
        dtypes = {place[0]: place[1] for place in Layout.of(self.args).tensors}
        for own, other in zip(got, peer, strict=True):
            for number, one, two in zip(self.written, own, other, strict=True):
                judged = judge(one.view(dtypes[number]), two.view(dtypes[number]))
                if not judged.right:
                    return f"a timed call left other values in its arguments: {judged}"
        return ""
