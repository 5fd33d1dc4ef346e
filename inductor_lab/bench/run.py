"""Compare compilers on one function: compile cold and warm, compare results, time interleaved.

Inductor: `torch._dynamo.utils.timed`, and its `benchmarks/dynamo` folder, in which each backend
runs in a process of its own.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.benchmark import Measurement

from inductor_lab.api.arguments import Seconds, checked
from inductor_lab.api.backend import inspect
from inductor_lab.api.compilation import Compilation
from inductor_lab.api.expect_data import expect_data
from inductor_lab.bench.bench_result import (
    STOCK,
    WITH_GRADIENT,
    BenchResult,
    CompileTime,
    Contender,
)
from inductor_lab.bench.contenders import (
    Rival,
    Way,
    caches_in,
    empty_folder,
    plus_one,
    ways,
)
from inductor_lab.bench.jobs import Job, difference, tolerance, values_in
from inductor_lab.bench.kernels import timed
from inductor_lab.bench.machine import machine
from inductor_lab.bench.progress import Progress, usual_progress
from inductor_lab.bench.roofs import Ceilings
from inductor_lab.bench.timing import compare
from inductor_lab.bench.timings import Timings
from inductor_lab.compiler.base.errors import BadArguments, NothingToChange, NotRunnable
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.torch_door.torch_api import DTYPE_NAMES
from inductor_lab.debug.compare.state import Kept
from inductor_lab.notebook.language import say, translate

FEWEST_ROUNDS = 7
BETWEEN_UPDATES = 0.2
"""Seconds between two updates of the progress bar."""

DREW = "random numbers are drawn, each compiler's own: results cannot be compared"
BEFORE = "timed before, not interleaved; its results are not known"
KERNEL_SECONDS = 1.0
KERNEL_TRIES = 3
WARM_SHARE = 0.2
"""Estimated time of a warm compile, as a share of a cold one, for the progress bar."""


@checked
def bench(
    fn: Callable[..., Any],
    /,
    *args: Any,
    against: Rival | Iterable[Rival] = ("eager", "inductor"),
    modes: Sequence[str] = ("default",),
    backward: bool | None = False,
    options: Options | Mapping[str, Any] | None = None,
    seconds: Seconds = 2.0,
    cold: bool = True,
    kernels: bool = True,
    title: str = "",
    progress: Progress | None = None,
    **kwargs: Any,
) -> BenchResult:
    """Compare our compiler with others on `fn(*args, **kwargs)`.

    against   `"eager"`, `"inductor"` (stock), another backend's name, a function with the same
              arguments, or a torch `Measurement`; or a list: all are compared with the first one
    modes     for our compiler and for stock: default, reduce-overhead, max-autotune, ...
    backward  time the gradient of the summed results too; None: if a result requires grad
    options   for our compiler, as `lab.inspect` takes them
    seconds   for timing, after all compiles; at least seven rounds are made
    cold      measure compile times too, with empty caches on disk; stock takes about 10 s for that
    kernels   time each of our kernels against the limits of this machine

    Results are compared before the timing.  Arguments are copied first.  The state of a function
    (buffers, parameters, an optimizer's state, closures) is restored before each first call and at
    the end.  Ctrl-C returns what was measured until then.  `torch.compiler.reset` drops functions
    that were compiled before.

    Raises BadOption for an unknown backend or mode, BadArguments for a measurement of other work or
    with other threads, and the exceptions of `fn`.  If a compiler fails, its error is in the table.
    """
    rivals = _listed(against)
    asked = options if isinstance(options, Options) else Options.make(dict(options or {}))
    name = title or getattr(fn, "__name__", type(fn).__name__)
    work = f"{name}({', '.join(map(describe, (*args, *kwargs.values())))})"
    expect_data("bench", fn, (args, kwargs))
    kept = Kept.of(fn, (*args, *filter(callable, rivals)), kwargs)
    run = _Run(fn, args, kwargs, backward, kept, name, work, progress or usual_progress())
    with ExitStack() as stack:
        stack.callback(lambda: run.progress.finished(run.result()))
        stack.callback(torch.compiler.reset)
        stack.callback(kept.put_back)
        run.ways = ways(rivals, modes, asked, run.tell_phase, run.works)
        run.plan(cold, seconds, kernels)
        try:
            if cold:
                run.folders = {w.name: stack.enter_context(empty_folder()) for w in run.ways}
                run.compile_cold()
            jobs = run.compile_warm()
            run.time(jobs, seconds)
            if kernels:
                run.time_kernels(asked)
        except KeyboardInterrupt:
            run.complete = False  # what was measured is kept
    return run.result()


def _listed(against: Rival | Iterable[Rival]) -> list[Rival]:
    """A list, also of one; raises BadArguments if it is empty."""
    if isinstance(against, str | Measurement) or callable(against):
        return [against]
    found = list(against)
    if not found:
        raise BadArguments("nothing to compare with", todo='for example against=["eager"]')
    return found


@dataclass
class _Run:
    """The state of a running benchmark: its contenders and the results so far."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    backward: bool | None
    kept: Kept
    title: str
    work: str
    progress: Progress
    ways: tuple[Way, ...] = ()
    folders: Mapping[str, Path] = field(default_factory=dict)
    contenders: dict[str, Contender] = field(default_factory=dict)
    so_far: Callable[[], Timings] = field(default=lambda: Timings({}))
    device: str = "cpu"
    measured: tuple[Compilation, Mapping[str, Ceilings]] | None = None
    complete: bool = True
    doing: str = ""
    done: float = 0.0
    whole: float = 1.0

    # ---- progress -------------------------------------------------------------------------------

    def plan(self, cold: bool, seconds: float, kernels: bool) -> None:
        """Estimate the duration, for the progress bar."""
        compiling = sum(way.expected_seconds for way in self.ways)
        self.whole = compiling * (WARM_SHARE + cold) + seconds + kernels * KERNEL_SECONDS

    def start(self, doing: str) -> None:
        self.doing = doing
        self.tell(doing)

    def tell_phase(self, phase: str) -> None:
        """Show the phase that our compiler enters."""
        self.tell(f"{self.doing} ({phase})")

    def tell(self, text: str, more: float = 0.0) -> None:
        """Update the progress bar; `more` is the elapsed time of the current step in seconds."""
        done = min((self.done + more) / self.whole, 1.0)
        self.progress.update(done, translate(text), self.result())

    def note(self, way: Way, **known: Any) -> None:
        """Add results of a contender."""
        old = self.contenders.get(way.name, Contender(way.name))
        self.contenders[way.name] = replace(old, **known)

    def result(self) -> BenchResult:
        contenders = tuple(self.contenders.values())
        found = BenchResult(
            self.title, self.works[0], machine(self.device), contenders, self.timings(),
            self.complete,
        )  # fmt: skip
        return found if self.measured is None else found.with_steps(*self.measured)

    @property
    def works(self) -> tuple[str, ...]:
        """What is timed: without its gradient, with it, or either if that is not known yet."""
        both = self.work, say(WITH_GRADIENT, work=self.work)
        return both if self.backward is None else both[1:] if self.backward else both[:1]

    def timings(self) -> Timings:
        """The samples so far, with those that are given."""
        found = dict(self.so_far().seconds)
        given = {way.name: way.given for way in self.ways if way.given} if found else {}
        return Timings({**given, **found}, tuple(given))

    # ---- measuring ------------------------------------------------------------------------------

    def compile_cold(self) -> None:
        """Time each compiler with empty caches: first on `x + 1`, then on the function."""
        for way in self.ways:
            self.note(way)
            if way.given:
                continue
            if not way.compiles:
                self.attempt(way, self.job(way.make(self.fn)))  # an error of `fn` is raised at once
                continue
            patience = ", which takes ten seconds or more" if way.kind == STOCK else ""
            with caches_in(self.folders[way.name]):
                self.start(f"{way.name}: setting up{patience}")
                setup, _ = self.attempt(way, partial(way.make(plus_one), torch.ones(8)))
                torch.compiler.reset()
                self.start(f"{way.name}: compiling with nothing on disk{patience}")
                took, _ = self.attempt(way, self.job(way.make(self.fn)))
                torch.compiler.reset()
            self.note(way, compile=CompileTime(setup, took))
            self.done += way.expected_seconds

    def compile_warm(self) -> dict[str, Callable[[], Any]]:
        """Compile each contender again, compare its results with the first, return jobs to time."""
        jobs: dict[str, Callable[[], Any]] = {}
        expected, drew = None, False
        args, kwargs = copied((self.args, self.kwargs))
        for way in self.ways:
            if way.given:
                self.note(way, note=BEFORE)
                continue
            self.start(f"{way.name}: compiling again, comparing" if way.compiles else way.name)
            if way.code is not None:
                way.code.texts.clear()
            ready = way.make(self.fn)
            with caches_in(self.folders[way.name]) if self.folders else nullcontext():
                took, found = self.attempt(way, self.job(ready))
            self.done += way.expected_seconds * WARM_SHARE
            if took is None:
                continue
            if not jobs:
                expected, drew = found, self.kept.drew()
                self.device = device_of(found)
            else:
                error = difference(expected, found)
                agrees = error <= tolerance(expected)
                if drew and not agrees:
                    self.note(way, note=DREW)
                else:
                    self.note(way, error=error, agrees=agrees)
            if way.compiles and self.folders:
                known = self.contenders[way.name].compile or CompileTime()
                self.note(way, compile=replace(known, warm=took))
            jobs[way.name] = Job(ready, args, kwargs, self.backward)
        self.note_equal_code()
        return jobs

    def note_equal_code(self) -> None:
        """Note modes that generate the same code as an earlier mode."""
        seen: dict[tuple[str, ...], str] = {}
        for way in self.ways:
            if way.code is not None and way.code.texts:
                first = seen.setdefault(tuple(way.code.texts), way.name)
                if first != way.name:
                    self.note(way, note=f"changes nothing here: same code as {first}")

    def time(self, jobs: Mapping[str, Callable[[], Any]], seconds: float) -> None:
        """Time all jobs interleaved; keep the results after each round."""
        self.start("timing")
        started = told = time.perf_counter()

        def after_round(so_far: Callable[[], Timings]) -> None:
            nonlocal told
            self.so_far = so_far
            now = time.perf_counter()
            if now - told > BETWEEN_UPDATES:
                told = now
                doing = f"timing, round {so_far().rounds}"
                self.tell(doing, min(now - started, seconds))

        compare(jobs, seconds=seconds, at_least=FEWEST_ROUNDS, after_round=after_round)
        self.done += seconds

    def time_kernels(self, options: Options) -> None:
        """Time each of our kernels, unless every call recompiles."""
        self.start("timing each kernel")
        args, kwargs = copied((self.args, self.kwargs))
        compilation = inspect(self.fn, *args, options=options, **kwargs)
        with suppress(NotRunnable):
            for _ in range(KERNEL_TRIES):
                measured = timed(compilation, KERNEL_SECONDS / 2, backward=bool(self.backward))
                self.measured = measured.compilation, measured.limits
                if self.result().same_moment(measured.compilation):
                    break

    def job(self, fn: Callable[..., Any]) -> Job:
        """The function with its own copies of the arguments."""
        args, kwargs = copied((self.args, self.kwargs))
        return Job(fn, args, kwargs, self.backward)

    def attempt(self, way: Way, run: Callable[[], Any]) -> tuple[float | None, Any]:
        """Seconds and results of a first call; an exception of a compiler goes into the table."""
        if way.name in self.contenders and self.contenders[way.name].failure:
            return None, None
        self.note(way)
        self.kept.put_back()
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():  # `note_equal_code` reports it in the table
                warnings.filterwarnings("ignore", ".* has no effect on a CPU", NothingToChange)
                found = run()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if isinstance(run, Job):
                self.backward = run.backward
        except Exception as error:
            if not way.compiles:
                raise
            text = str(error).strip().splitlines() or [""]
            self.note(way, failure=f"{type(error).__name__}: {text[0]}")
            return None, None
        return time.perf_counter() - start, found


def copied(values: Any, done: dict[int, Any] | None = None) -> Any:
    """Copies of tensors and arrays; a tensor that occurs twice is copied once."""
    done = {} if done is None else done
    if id(values) in done:
        return done[id(values)]
    if isinstance(values, torch.Tensor) and not isinstance(values, torch.nn.Parameter):
        made: Any = values.detach().clone().requires_grad_(values.requires_grad)
    elif isinstance(values, np.ndarray):
        made = values.copy()
    elif type(values) in (list, tuple):
        made = type(values)(copied(item, done) for item in values)
    elif type(values) is dict:
        made = {key: copied(item, done) for key, item in values.items()}
    else:
        made = values
    done[id(values)] = made
    return made


def describe(value: Any) -> str:
    """`f32[1000, 8]` for tensors and arrays; Python for short values, the type for others."""
    if isinstance(value, torch.Tensor):
        name = DTYPE_NAMES.get(value.dtype, str(value.dtype))
        return f"{name}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    text = repr(value)
    return text if len(text) <= 20 else type(value).__name__


def device_of(results: Any) -> str:
    """The device of the first tensor of the results."""
    devices = (str(v.device) for v in values_in(results) if isinstance(v, torch.Tensor))
    return next(devices, "cpu")
