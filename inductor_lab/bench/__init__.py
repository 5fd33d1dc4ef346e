"""Benchmarks that can be trusted: `lab.bench(f, x)` compares compilers on one call.

lab.bench(f, x)                              eager, stock and ours: compile time, time, verdict
lab.bench.sweep(f, make, sizes)              the same over sizes, in one plot
lab.bench.modes(f, x)                        eager, and stock and ours in three modes
lab.bench.four_experiments()                 sin, ResNet-18, BERT and NumPy code in three modes
lab.bench.ceilings()                         the bandwidth and flop rate of this machine
lab.bench.load(path)                         what a result's `.save(path)` wrote

`help(lab.bench.run.bench)` has all options; docs/benchmarks.md says how things are measured.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

from inductor_lab.compiler.base.errors import needing_torch

_HOMES = {
    "sweep": "sizes",
    "modes": "experiments",
    "four_experiments": "experiments",
    "ceilings": "machine",
    "load": "bench_result",
    "BenchResult": "bench_result",
    "SweepResult": "bench_result",
    "Experiments": "bench_result",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for."""
    if name == "run":
        return importlib.import_module(f"{__name__}.run")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing_torch():
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


class _Bench(ModuleType):
    """A module that can be called: `lab.bench(f, x)` is `inductor_lab.bench.run.bench(f, x)`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with needing_torch():
            run = importlib.import_module(f"{__name__}.run")
        return run.bench(*args, **kwargs)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_HOMES, "run"})


sys.modules[__name__].__class__ = _Bench
