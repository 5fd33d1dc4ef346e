"""Four programs in three modes: the compile time and the speedup of each mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from inductor_lab.api.arguments import Seconds, checked
from inductor_lab.bench.bench_result import BenchResult, Experiments
from inductor_lab.bench.demo.programs import PROGRAMS, Program
from inductor_lab.bench.machine import machine
from inductor_lab.bench.progress import Progress, usual_progress
from inductor_lab.bench.run import bench
from inductor_lab.bench.series import in_series
from inductor_lab.compiler.base.errors import BadArguments, unknown_name

NAMES = ("trig", "resnet18", "bert", "numpy")
MODES = ("default", "reduce-overhead", "max-autotune")


@checked
def modes(
    fn: Callable[..., Any],
    /,
    *args: Any,
    modes: Sequence[str] = MODES,
    against: Sequence[str] = ("eager", "inductor"),
    **more: Any,
) -> BenchResult:
    """Compare eager mode, stock and inductor_lab in each mode on one call.

    `more` is as in `lab.bench`: `backward`, `seconds`, ... and the function's own keywords.
    """
    return bench(fn, *args, modes=modes, against=against, **{"kernels": False, **more})


@checked
def four_experiments(
    names: Iterable[str] = NAMES,
    *,
    modes: Sequence[str] = MODES,
    against: Sequence[str] = ("eager",),
    seconds: Seconds = 3.0,
    progress: Progress | None = None,
) -> Experiments:
    """The sin function with its gradient, ResNet-18, BERT-base and the NumPy function.

    Each program runs in every mode and is compared with eager mode (and with stock, if `against`
    contains "inductor").  The models need `transformers`; their weights are random.  Without stock
    it takes one or two minutes.
    """
    known = {program.name: program for program in PROGRAMS}
    chosen = tuple(names)
    for name in chosen:
        if name not in known:
            what, todo = unknown_name("program", name, known)
            raise BadArguments(what, todo=todo)

    def run(program: Program, inner: Progress) -> BenchResult:
        fn, args = program.make()
        return bench(fn, *args, against=against, modes=modes, backward=program.gradient,
                     seconds=seconds, kernels=False, progress=inner,
                     title=program.title)  # fmt: skip

    def made(results: tuple[BenchResult, ...], complete: bool) -> Experiments:
        where: Any = results[0].machine if results else machine()
        return Experiments("programs in modes", where, results, complete)

    programs = [known[name] for name in chosen]
    return in_series(programs, run, made, progress or usual_progress())
