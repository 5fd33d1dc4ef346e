"""Run several benchmarks in sequence as one: one progress bar, one result, one Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from inductor_lab.bench.bench_result import BenchResult
from inductor_lab.bench.progress import Progress
from inductor_lab.notebook.language import translate

Item = TypeVar("Item")
Whole = TypeVar("Whole")


class Part(Progress):
    """Progress of one benchmark of several, passed on to the progress of all."""

    def __init__(self, outer: Progress, before: int, count: int, tell: Callable[..., Any]) -> None:
        self._outer, self._before, self._count, self._tell = outer, before, count, tell

    def update(self, done: float, doing: str, result: Any) -> None:
        where = translate(f"{self._before + 1} of {self._count}: {result.title}: {doing}")
        self._outer.update((self._before + done) / self._count, where, self._tell(result))


def in_series(
    items: Sequence[Item],
    run: Callable[[Item, Progress], BenchResult],
    made: Callable[[tuple[BenchResult, ...], bool], Whole],
    progress: Progress,
) -> Whole:
    """Run all items and return `made(results, complete)`; stops after an interrupted benchmark."""
    results: tuple[BenchResult, ...] = ()
    try:
        for position, item in enumerate(items):
            done = results
            part = Part(progress, position, len(items), lambda r, d=done: made((*d, r), True))
            try:
                found = run(item, part)
            except KeyboardInterrupt:
                break  # between two benchmarks
            results = (*results, found)
            if not found.complete:
                break
        complete = len(results) == len(items) and all(r.complete for r in results)
        return made(results, complete)
    finally:
        progress.finished(made(results, len(results) == len(items)))
