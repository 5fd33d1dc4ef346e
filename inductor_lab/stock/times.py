"""Time stock's kernels inside stock's own program, for each call.

The module that stock generates for a graph (`output_code.py`) refers to its kernels, and to the
library functions of `extern_kernels`, by name.  During a measurement, these names are bound to the
same functions with timers; afterwards they are restored.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from inductor_lab.bench.jobs import Job
from inductor_lab.debug.explore.what_if import call_of
from inductor_lab.stock.stock_compilation import StockCompilation, StockPart

LIBRARIES = "extern_kernels"
FEWEST_ROUNDS = 5

Ticks = dict[str, list[float]]
"""Kernel → seconds of each of its calls, in order."""


def measured_stock(compilation: StockCompilation, seconds: float) -> StockCompilation:
    """Implements `StockCompilation.measure`."""
    call = call_of(compilation)
    trained = any(graph.backward is not None for graph in compilation.graphs)
    clocks: dict[int, Ticks] = {id(part): {} for part in compilation.parts}
    with torch.set_grad_enabled(call.with_grad):
        run = Job(
            compilation.compiled, call.args, call.kwargs, backward=None if trained else False
        )
        run()
        rounds = _rounds(run, compilation.parts, clocks, seconds)
    return replace(
        compilation,
        graphs=tuple(
            replace(
                graph,
                forward=graph.forward and _timed(graph.forward, clocks, rounds),
                backward=graph.backward and _timed(graph.backward, clocks, rounds),
            )
            for graph in compilation.graphs
        ),
    )


def _rounds(
    run: Callable[[], Any], parts: Sequence[StockPart], clocks: dict[int, Ticks], seconds: float
) -> int:
    modules = list(_modules())
    end, rounds = time.perf_counter() + seconds, 0
    with _clocked([(module, clocks[id(part)], part) for part in parts for module in modules
                   if _is_of(module, part)]):  # fmt: skip
        while rounds < FEWEST_ROUNDS or time.perf_counter() < end:
            run()
            rounds += 1
    return rounds


def _modules() -> Iterator[ModuleType]:
    """The programs that stock has loaded in this process; empty if this torch hides them."""
    try:
        cache = importlib.import_module("torch._inductor.codecache").PyCodeCache
        yield from cache.modules
    except (ImportError, AttributeError):
        return


def _is_of(module: ModuleType, part: StockPart) -> bool:
    try:
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
    except OSError:
        return False
    return bool(part.text) and text.strip() == part.text.strip()


@contextmanager
def _clocked(programs: Sequence[tuple[ModuleType, Ticks, StockPart]]) -> Iterator[None]:
    kept: list[tuple[ModuleType, dict[str, Any]]] = []
    try:
        for module, ticks, part in programs:
            before = vars(module)
            clocked = [k.name for k in part.kernels if k.language == "cpp" and k.name in before]
            new: dict[str, Callable[..., Any] | _Libraries] = {
                name: _clock(before[name], ticks.setdefault(name, [])) for name in clocked
            }
            if LIBRARIES in before:
                new[LIBRARIES] = _Libraries(before[LIBRARIES], ticks)
            kept.append((module, {name: before[name] for name in new}))
            before.update(new)
        yield
    finally:
        for module, names in kept:
            vars(module).update(names)


def _clock(function: Callable[..., Any], ticks: list[float]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        result = function(*args, **kwargs)
        ticks.append(time.perf_counter() - start)
        return result

    return call


class _Libraries:
    """`extern_kernels` with a timer on each function."""

    def __init__(self, functions: Any, ticks: Ticks) -> None:
        self._functions, self._ticks = functions, ticks

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._functions, name)
        return _clock(function, self._ticks.setdefault(f"{LIBRARIES}.{name}", []))


def _timed(part: StockPart, clocks: Mapping[int, Ticks], rounds: int) -> StockPart:
    """Each kernel with its time: the median over rounds of the total of its calls in a round."""
    kernels, ticks = [], clocks[id(part)]
    for kernel in part.kernels:
        heard = ticks.get(kernel.name, [])
        calls = len(heard) // rounds
        if calls and len(heard) == calls * rounds:
            sums = [sum(heard[n * calls : (n + 1) * calls]) for n in range(rounds)]
            kernel = replace(kernel, seconds=statistics.median(sums))
        kernels.append(kernel)
    return replace(part, kernels=tuple(kernels))
