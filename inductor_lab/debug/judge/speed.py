"""Time a candidate and the reference, interleaved, by the clock of the judge.

    judge       fresh inputs in shared memory    t0 ────────────── t1  compares the results
    candidate                                       calls, copies

The time ends when the judge has its own copy of the results.  So a result that is computed later
(by a thread, by a stream, or lazily) is late or wrong, and every timed call is checked.  Between
its calls the processes of the candidate are stopped.  What the messages and the copies cost is
timed with a function that computes nothing, and subtracted.

Each round is timed twice.  With warm caches, the inputs are where the judge has just written them.
With cold caches, they are evicted to memory first.

Both functions run in processes of the same kind: on a CPU the reference runs in a fork of this
process, and on a GPU, where a fork cannot use CUDA, in a new process that gets its text.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch

from inductor_lab.bench.timings import Timings
from inductor_lab.compiler.base.errors import LabError, NotRunnable
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.compare.precision import FACTOR, LEAST_UNITS, judge, ulp_of
from inductor_lab.debug.judge.applied import Applied
from inductor_lab.debug.judge.cases import Arguments, Cases
from inductor_lab.debug.judge.expected import expected
from inductor_lab.debug.judge.remote_call import Layout, Results
from inductor_lab.debug.judge.serve_candidate import CLASSES
from inductor_lab.debug.judge.timed_call import (
    Plan,
    Sampled,
    Timed,
    aligned,
    nbytes_of,
)
from inductor_lab.debug.judge.timing_memory import HostMemory, NotQuiet, TimingMemory
from inductor_lab.debug.judge.tree import Tree
from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.remote import Process, Raised, Stopped, copy_of_this_process

OWN, REFERENCE = "candidate", "reference"
COLD = " with cold caches"
"""Follows a name in the timings."""
REFERENCE_LIMIT = 3600.0
"""Seconds for the reference, which is trusted to end."""
FEWEST_ROUNDS, FEWEST_IF_SLOW, MOST_ROUNDS = 7, 3, 200
SLOW = 5.0
"""If so many times the seconds for timing are over, FEWEST_IF_SLOW rounds are enough."""
LEAST_SHARE = 0.05
"""If the costs of messages vary more than the call takes, this share of the sample counts."""
SETTLES, RESTS, BUSY = 0.02, 0.15, 0.05
"""Seconds after the last call, seconds in which it should rest, and the share that it may use."""
CLEARLY = 0.9
"""A distance below this share of what is allowed needs no closer look."""


@dataclass(frozen=True)
class Speed:
    """The measured times.

    timings   seconds per call of each round, without what messages and copies cost: of the names
              above, and of the names with COLD where caches can be evicted
    overhead  these costs for the candidate, in seconds per call
    wrong     why the measurement rejects the candidate; "" if it does not
    """

    timings: Timings = field(default_factory=lambda: Timings({}))
    overhead: float = 0.0
    wrong: str = ""


class CannotTime(LabError):
    """Calls cannot be timed here; their results can be judged all the same."""


@dataclass(frozen=True)
class Sides:
    """What is timed: the candidate, and the reference in a process of the same kind, which is
    trusted and also times a function that computes nothing."""

    mine: Timed
    base: Timed


def room_of(args: Arguments, results: Results, kind: type[TimingMemory], most: int) -> int:
    """Bytes of shared memory for timing these calls, at most `most`; 0 if that is too little."""
    call_bytes = _call_bytes(args, results, kind.aligned)
    return 0 if 2 * call_bytes > most else min(most, 4 * kind.most_calls * call_bytes + (1 << 16))


def _call_bytes(args: Arguments, results: Results, unit: int) -> int:
    counts = (*(one.numel() for one in Layout.of(args).storages), *map(nbytes_of, results))
    return sum(aligned(count, unit) for count in counts)


OpenSides = Callable[[Applied, Arguments, Results], AbstractContextManager[Sides | None]]
"""Opens what is timed, for a reference with arguments and results; None if that is too large."""


def processes(process: Process, folder: Path, tree: Tree) -> OpenSides:
    """Time in main memory: `process`, which can write to `folder`, and a fork of this process."""

    @contextmanager
    def opened(
        reference: Applied, args: Arguments, results: Results
    ) -> Iterator[Sides | None]:
        room = room_of(args, results, HostMemory, HostMemory.most_bytes)
        if not room:
            yield None
            return
        with (
            tempfile.TemporaryDirectory(dir=shared_folder()) as own,
            copy_of_this_process(reference.function, Limits(REFERENCE_LIMIT), CLASSES) as peer,
        ):
            peer.begin()
            base = Timed.with_file(peer, room, Path(own), Tree(peer.keeper))
            yield Sides(Timed.with_file(process, room, folder, tree), base)

    return opened


def measure(reference: Applied, cases: Cases, seconds: float, sides: OpenSides) -> Speed:
    """Time the calls of the first example, for about `seconds`.  Raises CannotTime."""
    args = cases.examples[0]
    kept = expected(reference, args)
    storages = range(len(Layout.of(args).storages))
    written = [n for n in storages if _is_written(reference, args, n)]
    spreads = [kept.spread.get(f"result {n}") for n in range(len(kept.results))]
    allowed = [float(x.max()) if x is not None and x.numel() else 0.0 for x in spreads]
    with sides(reference, args, kept.results) as found:
        if found is None:
            return Speed()
        return _Rounds(found, reference, args, cases.redraws(args), kept.results, written,
                       allowed).run(seconds)  # fmt: skip


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
class _Round:
    """Seconds of nothing and of both functions, and why the candidate is wrong."""

    nothing: float
    took: dict[str, float]
    wrong: str


@dataclass
class _Rounds:
    sides: Sides
    reference: Applied
    args: Arguments
    redrawn: Callable[[], Arguments]
    results: Results
    written: list[int]
    allowed: list[float]
    before: Plan | None = None

    def run(self, seconds: float) -> Speed:
        """Rounds of one sample each."""
        try:
            return self._measured(seconds)
        except NotQuiet:
            return Speed(wrong="the GPU works while the candidate is not called: kernels of an "
                               "earlier call, or another program")  # fmt: skip

    def _measured(self, seconds: float) -> Speed:
        calls, wrong = self._calls_of_a_sample()
        if wrong:
            return Speed(wrong=wrong)
        modes = {"": False, COLD: True} if self.sides.mine.memory.can_be_cold else {"": False}
        rounds: dict[str, list[_Round]] = {mode: [] for mode in modes}
        end = time.perf_counter() + seconds
        for number in range(MOST_ROUNDS):
            late = time.perf_counter() - end
            fewest = FEWEST_ROUNDS if late < SLOW * seconds else FEWEST_IF_SLOW
            if late > 0 and number >= fewest:
                break
            for mode, cold in modes.items():
                found = self._round(calls, number % 2 == 1, cold)
                if found.wrong:
                    return Speed(wrong=found.wrong)
                rounds[mode].append(found)
        overhead = {mode: statistics.median(each.nothing for each in found)
                    for mode, found in rounds.items()}  # fmt: skip
        timed = {
            name + mode: tuple(
                max(each.took[name] - overhead[mode], LEAST_SHARE * each.took[name]) / calls
                for each in found
            )
            for mode, found in rounds.items() for name in (OWN, REFERENCE)
        }  # fmt: skip
        return Speed(Timings(timed), overhead[""] / calls, self._busy())

    def _calls_of_a_sample(self) -> tuple[int, str]:
        """How many calls a sample has, or why the candidate is wrong.

        Rounds with more and more calls warm up, at least two.  The first calls take longer than
        later ones, so one round does not suffice to count.
        """
        memory, calls, is_warm = self.sides.mine.memory, 1, False
        room = memory.nbytes // (2 * _call_bytes(self.args, self.results, memory.aligned) + 1)
        while True:
            found = self._round(calls)
            slower = max(max(each - found.nothing, LEAST_SHARE * each) / calls
                         for each in found.took.values())  # fmt: skip
            enough = min(memory.most_calls, room, int(memory.long_enough / slower))
            if found.wrong or (is_warm and enough < 2 * calls):
                return calls, found.wrong
            calls, is_warm = max(calls, enough), True

    def _busy(self) -> str:
        """Why the process is rejected that works while it is not called; "" if it does not."""
        tree = self.sides.mine.tree
        tree.resume()
        time.sleep(SETTLES)  # threads of OpenMP wait actively for a while
        there, used, start = {one.pid for one in tree.seen()}, tree.seconds(), time.perf_counter()
        time.sleep(RESTS)
        used, waited = tree.seconds() - used, time.perf_counter() - start
        self.sides.mine.memory.settle()
        if not {one.pid for one in tree.seen()} <= there:
            return "it starts processes while it is not called"
        if used < BUSY * waited:
            return ""
        return (f"it used {used:.2f} s of the processor in {waited:.2f} s in which it was not "
                "called: threads or processes of an earlier call")  # fmt: skip

    def _round(self, calls: int, back: bool = False, cold: bool = False) -> _Round:
        mine, before = self.sides.mine, self.before
        fresh = [self.redrawn() for _ in range(calls)]
        earlier = [Layout.of(self.args)] if before is None else before.layouts
        plan = Plan.of(fresh, earlier, self.results, self.written, self.reference.gradients,
                       mine.memory)  # fmt: skip
        took: dict[str, float] = {}
        found: dict[str, Sampled] = {}
        empty = 0.0
        for name in (REFERENCE, OWN) if back else (OWN, REFERENCE):
            if name == OWN:
                if before is not None:  # both processes have just done something
                    mine.sample(before, nothing=True)
                took[OWN], found[OWN] = mine.sample(plan, cold=cold)
            else:
                empty, took[REFERENCE], found[REFERENCE] = self._reference(plan, cold)
        if before is None and mine.memory.batches:
            self._check_reference(fresh[0], found[REFERENCE])
        self.before = plan
        return _Round(empty, took, self._wrong(found[OWN], found[REFERENCE]))

    def _reference(self, plan: Plan, cold: bool) -> tuple[float, float, Sampled]:
        """Seconds of nothing, seconds of the reference, and what it did."""
        base = self.sides.base
        try:
            empty, _ = base.sample(plan, nothing=True, cold=cold)
            return empty, *base.sample(plan, cold=cold)
        except (Raised, Stopped) as failed:
            what = f"the reference cannot be timed: {failed}"
            raise NotRunnable(what, todo="judge with seconds=None") from None

    def _check_reference(self, args: Arguments, found: Sampled) -> None:
        """Raise CannotTime if the text of the reference does something else than the reference."""
        copied = pytree.tree_map_only(torch.Tensor, torch.clone, args)
        leaves = pytree.tree_leaves(self.reference(*copied))
        own = [one.detach().contiguous().reshape(-1).view(torch.uint8) for one in leaves
               if isinstance(one, torch.Tensor)]  # fmt: skip
        storages = Layout.of(copied).storages
        here = Sampled(found.layouts, [own], [[storages[n] for n in self.written]], True)
        if self._wrong(found, here):
            raise CannotTime("not timed: the text of the reference gives other results")

    def _wrong(self, got: Sampled, peer: Sampled) -> str:
        shaped = [[(dtype, shape) for shape, dtype in self.results]] * len(peer.results)
        if got.layouts != shaped:
            return "a timed call returned other shapes or dtypes than the reference"
        for own, other in zip(got.results, peer.results, strict=True):
            for number, (one, two) in enumerate(zip(own, other, strict=True)):
                shape, dtype = self.results[number]
                mine, base = (x.view(dtype).view(shape) for x in (one, two))
                if not one.numel() or _is_close(mine, base, self.allowed[number]):
                    continue
                spread = torch.full(shape, self.allowed[number], dtype=torch.float64)
                judged = judge(mine, base, None, spread)
                if not judged.right and judged.kind != "sign of zero":
                    return f"in a timed call, result {number} is {judged}"
        if not got.unchanged:
            return "a timed call wrote to its arguments"
        return self._wrong_arguments(got, peer)

    def _wrong_arguments(self, got: Sampled, peer: Sampled) -> str:
        """What a function that writes to its arguments left there."""
        dtypes = {place[0]: place[1] for place in Layout.of(self.args).tensors}
        for own, other in zip(got.written, peer.written, strict=True):
            for number, one, two in zip(self.written, own, other, strict=True):
                judged = judge(one.view(dtypes[number]), two.view(dtypes[number]))
                if not judged.right:
                    return f"a timed call left other values in its arguments: {judged}"
        return ""


def _is_close(mine: torch.Tensor, base: torch.Tensor, allowed: float) -> bool:
    """Does a comparison on the GPU suffice?  Where it is False, `judge` looks closer."""
    if not mine.is_cuda or not mine.dtype.is_floating_point:
        return False
    exact = base.double()
    unit = ulp_of(exact, base.dtype) + allowed
    off = (mine.double() - exact).abs()
    return bool((off <= CLEARLY * FACTOR * LEAST_UNITS * unit).all())
