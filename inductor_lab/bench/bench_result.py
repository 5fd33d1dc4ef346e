"""Results of benchmarks: frozen values that can be printed, drawn, copied, saved and loaded."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inductor_lab.api.arguments import checked
from inductor_lab.bench.roofs import Ceilings, Machine
from inductor_lab.bench.timings import Timings
from inductor_lab.compiler.base.display import (
    HasWidget,
    Shown,
    Svg,
    benchmark_svg,
    benchmark_widget,
    bytes_text,
    counted,
    write_benchmark,
)
from inductor_lab.compiler.records import Record
from inductor_lab.compiler.step_time import StepTime, duration
from inductor_lab.notebook.language import say, translate
from inductor_lab.saved import saving
from inductor_lab.saved.documents import of_kernel, tool_types
from inductor_lab.saved.documents.kinds import document, finite

if TYPE_CHECKING:
    from torch.utils.benchmark import Measurement

OURS = "inductor_lab"
STOCK = "inductor"
WITH_GRADIENT = "{work} and its gradient"
APART = 1.5
"""If times of one call differ by more than this factor, the conditions changed."""
MOST_KERNELS = 20
"""The slowest kernels have a row each; the others share one row."""


@dataclass(frozen=True)
class Table:
    """Rows of text under a title; columns that start with `>` hold numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def without_empty(self) -> Table:
        """The table without empty columns."""
        kept = [n for n in range(len(self.columns)) if n == 0 or any(row[n] for row in self.rows)]
        rows = tuple(tuple(row[n] for n in kept) for row in self.rows)
        return Table(self.title, tuple(self.columns[n] for n in kept), rows)

    def to_markdown(self) -> str:
        heads = [column.removeprefix(">") for column in self.columns]
        marks = ["---:" if column.startswith(">") else "---" for column in self.columns]
        lines = [_markdown_row(row) for row in (heads, marks, *self.rows)]
        return "\n".join([f"**{_escaped(self.title)}**", "", *lines]) + "\n"

    def __str__(self) -> str:
        heads = tuple(column.removeprefix(">") for column in self.columns)
        widths = [max(map(len, cells)) for cells in zip(heads, *self.rows, strict=True)]
        lines = [self.title]
        for row in (heads, *self.rows):
            cells = (
                cell.rjust(width) if column.startswith(">") else cell.ljust(width)
                for cell, column, width in zip(row, self.columns, widths, strict=True)
            )
            lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join(lines)


class Measured(Shown, HasWidget):
    """Base class of benchmark results; subclasses define `tables` and `sentences`."""

    title: str
    machine: Machine

    @property
    def tables(self) -> tuple[Table, ...]:
        raise NotImplementedError

    @property
    def sentences(self) -> tuple[str, ...]:
        """The results in sentences."""
        raise NotImplementedError

    def to_markdown(self) -> str:
        """Tables, findings and machine, to be pasted into an issue or a README."""
        found = "".join(f"- {_escaped(sentence)}\n" for sentence in self.sentences)
        tables = [table.to_markdown() for table in self.tables]
        return "\n".join([*tables, found, str(self.machine)])

    _repr_markdown_ = to_markdown

    def plot(self, view: str = "chart") -> Svg:
        """A picture as SVG text, for slides and papers: "chart", or "roofline" of kernels.

        Raises UnknownName for a view that this result does not have.
        """
        return benchmark_svg(self, view)

    def widget(self) -> Any:
        """The result as an anywidget: programs read and set what it shows (docs/notebooks.md)."""
        return benchmark_widget(self)

    def save(self, path: str | Path) -> Path:
        """Write all measurements (JSON); `lab.bench.load` reads them.  Raises CannotWrite."""
        return saving.save(Path(path), self)

    def report(self, path: str | Path) -> Path:
        """Write one HTML file that needs no network; raises CannotWrite."""
        return write_benchmark(self, Path(path))

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self.tables), "\n".join(self.sentences), str(self.machine)])


@dataclass(frozen=True)
class CompileTime:
    """Seconds of first calls, including the run of the compiled code; None: not measured.

    setup   of `x + 1`, compiled before with empty caches: the start-up cost of the compiler
    cold    with empty caches on disk
    warm    compiled again, with the caches of the cold compile
    """

    setup: float | None = None
    cold: float | None = None
    warm: float | None = None


@dataclass(frozen=True)
class Contender:
    """One way to run the function.

    error    largest difference from the first contender's results, relative to 1 + |expected|
    agrees   whether the error is within rounding
    note     says that a mode changes nothing
    failure  why it does not run; it then has no timings
    peak     peak memory in bytes that compile and calls add to a separate process
    """

    name: str
    compile: CompileTime | None = None
    error: float | None = None
    agrees: bool = True
    note: str = ""
    failure: str = ""
    peak: int | None = None


@dataclass(frozen=True)
class BenchResult(Measured):
    """One function on one set of arguments; made by `lab.bench`.

    work        what was timed: `"f(x: f32[1000])"`, with `"and its gradient"` if that is included
    contenders  the first one is the baseline
    timings     of the contenders that ran; complete rounds only
    complete    False if a user stopped the benchmark
    steps       our kernels and library calls, timed in the running program, with the roofs of
                `limits` (`lab.bench.ceilings`)
    unsure      why times of steps or roofs are not reliable
    """

    title: str
    work: str
    machine: Machine
    contenders: tuple[Contender, ...]
    timings: Timings
    complete: bool = True
    steps: tuple[StepTime, ...] = ()
    limits: Ceilings | None = None
    unsure: str = ""

    def with_steps(self, measured: Record, limits: Mapping[str, Ceilings]) -> BenchResult:
        """The same with the kernels of a compilation, measured under these limits by device.

        A note reports if a call took a different time than in the interleaved rounds, because then
        the two tables may contradict each other.
        """
        steps = tuple(step for part in measured.parts for step in part.times)
        shown = limits[max(limits)] if limits else None  # cuda's, if any
        doubt = translate(f"No shares of the roof: {shown.doubt}.") if shown and shown.doubt else ""
        apart = ""
        if not self.same_moment(measured):
            apart = say(
                "Kernels were timed separately: the call took {took} then and {call} when "
                "interleaved with the others, so other programs use this machine.",
                took=duration(measured.call_seconds), call=duration(self._usual[0]),
            )  # fmt: skip
        unsure = " ".join(filter(None, (apart, doubt)))
        return replace(self, steps=steps, limits=shown, unsure=unsure)

    def same_moment(self, measured: Record) -> bool:
        """Did a call take about the same time in both measurements?"""
        ratios = [measured.call_seconds / call for call in self._usual]
        return not ratios or any(1 / APART < ratio < APART for ratio in ratios)

    @property
    def _usual(self) -> list[float]:
        """Median seconds of a call of inductor_lab, for each mode."""
        ours = [s for name, s in self.timings.seconds.items() if name.startswith(OURS)]
        return [statistics.median(seconds) for seconds in ours if seconds]

    @property
    def base(self) -> str:
        """The baseline: the first contender that ran."""
        return next((c.name for c in self.contenders if not c.failure), "")

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(_benchmark(self, "benchmark"))

    def measurements(self) -> dict[str, Measurement]:
        """The samples of each contender, for `Compare` of `torch.utils.benchmark`."""
        import torch
        from torch.utils.benchmark import Measurement as Samples
        from torch.utils.benchmark.utils.common import TaskSpec

        return {
            name: Samples(1, list(seconds), TaskSpec(
                self.work, "", label=self.title, sub_label=self.work, description=name,
                num_threads=torch.get_num_threads(),
            ))
            for name, seconds in self.timings.seconds.items()
        }  # fmt: skip

    @property
    def timed(self) -> bool:
        return self.timings.rounds > 0

    def speedup(self, name: str, base: str | None = None) -> float:
        """The speedup over `base` (default: the first contender)."""
        return 1 / self.timings.ratio(name, base or self.base)

    def verdict(self, name: str, base: str | None = None) -> str:
        """`1.9x faster than eager, spread 3 %`, or why there is no verdict."""
        contender = next(c for c in self.contenders if c.name == name)
        if contender.failure:
            return say("failed: {reason}", reason=contender.failure)
        if not self.timed:
            return say("not timed")
        told = self.timings.verdict(name, base or self.base)
        if contender.agrees:
            return told
        return told + say("; but its results differ by {error:.0e}", error=contender.error)

    @property
    def tables(self) -> tuple[Table, ...]:
        over = say("speedup over {base}", base=self.base)
        columns = ("", ">setup", ">cold compile", ">warm compile", ">per call", ">spread",
                   f">{over}", ">difference", "note")  # fmt: skip
        table = Table(self.title, columns, tuple(map(self._row, self.contenders))).without_empty()
        return (table, roofline_table(self.steps)) if self.steps else (table,)

    def _row(self, contender: Contender) -> tuple[str, ...]:
        name = contender.name
        took = contender.compile or CompileTime()
        cells = [name, *map(_seconds, (took.setup, took.cold, took.warm))]
        cells += [_per_call(self, name), "", ""]
        if cells[-3]:
            cells[-2:] = [_percent(self.timings.spread(name)), f"{self.speedup(name):.2f}x"]
        error = contender.error
        cells.append("" if error is None else say("none") if error == 0 else f"{error:.0e}")
        return (*cells, contender.failure or translate(contender.note))

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        if not self.complete:
            yield say("Stopped early: results are from {n} rounds.", n=self.timings.rounds)
        names = [contender.name for contender in self.contenders]
        for contender in self.contenders[1:]:
            if self.timed or contender.failure:
                yield f"{contender.name}: {self.verdict(contender.name)}"
        for name in names:
            if name.startswith(OURS) and STOCK in self.timings.seconds and self.timed:
                yield f"{name}: {self.verdict(name, STOCK)}"
        if self.unsure:
            yield self.unsure
        if self.timed:
            yield say(
                "{work}, interleaved, {n} rounds; results were compared first; times are medians, "
                "speedups are medians of per-round ratios; spread is half the interquartile range.",
                work=self.work, n=self.timings.rounds,
            )  # fmt: skip

    def __repr__(self) -> str:
        found = "; ".join(f"{c.name} {self.verdict(c.name)}" for c in self.contenders[1:])
        return f"BenchResult({self.title}: {found or 'nothing compared'})"


@dataclass(frozen=True)
class SweepResult(Measured):
    """One function over sizes; made by `lab.bench.sweep`.  `results[i]` belongs to `sizes[i]`."""

    title: str
    machine: Machine
    sizes: tuple[int, ...]
    results: tuple[BenchResult, ...]
    complete: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all contenders that ran at some size."""
        found = (c.name for result in self.results for c in result.contenders)
        return tuple(dict.fromkeys(found))

    @property
    def tables(self) -> tuple[Table, ...]:
        names = self.names
        over = [say("{name} over {base}", name=name, base=names[0]) for name in names[1:]]
        columns = (">size", *(f">{head}" for head in (*names, *over)))
        pairs = zip(self.sizes, self.results, strict=False)
        rows = tuple((f"{size:,}", *self._cells(result)) for size, result in pairs)
        return (Table(self.title, columns, rows).without_empty(),)

    def _cells(self, result: BenchResult) -> Iterator[str]:
        yield from (_per_call(result, name) for name in self.names)
        for name in self.names[1:]:
            yield f"{result.speedup(name):.2f}x" if _per_call(result, name) else ""

    @property
    def sentences(self) -> tuple[str, ...]:
        stopped = () if self.complete else (
            say("Stopped early, at {n} of {m} sizes.", n=len(self.results), m=len(self.sizes)),
        )  # fmt: skip
        told = (
            f"{size:,}: {contender.name} {result.verdict(contender.name)}"
            for size, result in zip(self.sizes, self.results, strict=False)
            for contender in result.contenders[1:]
        )
        return (*stopped, *told)

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return _series(self, self.results, self.complete, self.sizes[: len(self.results)])

    def __repr__(self) -> str:
        return f"SweepResult({self.title}: {counted(len(self.results), 'size')})"


@dataclass(frozen=True)
class Experiments(Measured):
    """Programs in several modes; made by `lab.bench.four_experiments`."""

    title: str
    machine: Machine
    results: tuple[BenchResult, ...]
    complete: bool = True

    @property
    def tables(self) -> tuple[Table, ...]:
        columns = ("program", "compiled by", ">compile", ">before", ">after", "change", "note")
        rows = tuple(row for result in self.results for row in _experiment_rows(result))
        return (Table(self.title, columns, rows).without_empty(),)

    @property
    def sentences(self) -> tuple[str, ...]:
        stopped = say("Stopped early: not every program was measured.")
        told = say(
            "Compile: the first call with an empty disk cache.  Before: eager.  After: compiled.  "
            "Interleaved; results were compared first."
        )
        return (told,) if self.complete else (stopped, told)

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return _series(self, self.results, self.complete, ())

    def __repr__(self) -> str:
        return f"Experiments({', '.join(result.title for result in self.results)})"


@checked
def load(path: str | Path) -> Measured:
    """Read a file that `.save` wrote; raises UnreadableFile."""
    return saving.load(Path(path), Measured)


def _series(
    known: Measured, results: Sequence[BenchResult], complete: bool, sizes: Sequence[int]
) -> dict[str, Any]:
    return document(tool_types.BenchmarkSeries(
        id="series", summary=repr(known), kind="benchmark_series", title=known.title,
        machine=str(known.machine), complete=complete, sizes=list(sizes),
        results=[_benchmark(each, f"benchmark:{n}") for n, each in enumerate(results)],
        sentences=list(known.sentences),
    ))  # fmt: skip


def _benchmark(known: BenchResult, at: str) -> tool_types.Benchmark:
    return tool_types.Benchmark(
        id=at, summary=repr(known), kind="benchmark", title=known.title, work=known.work,
        machine=str(known.machine), rounds=known.timings.rounds, complete=known.complete,
        baseline=known.base, contenders=[_contender(known, each) for each in known.contenders],
        steps=[
            tool_types.MeasuredStep(name=step.name, generated=step.generated, nbytes=step.nbytes,
                                    flops=step.flops, time=of_kernel.time(step))
            for step in known.steps
        ],
        sentences=list(known.sentences),
    )  # fmt: skip


def _contender(known: BenchResult, one: Contender) -> tool_types.Contender:
    timed = known.timed and one.name in known.timings.seconds
    other = timed and one.name != known.base
    took = one.compile or CompileTime()
    return tool_types.Contender(
        name=one.name,
        median_seconds=known.timings.median_ms(one.name) / 1e3 if timed else None,
        spread=known.timings.spread(one.name) if timed else None,
        speedup=known.speedup(one.name) if timed else None,
        speedup_interval=list(known.timings.interval(one.name, known.base)) if other else None,
        verdict=known.verdict(one.name) if one.name != known.base else "",
        cold_compile_seconds=took.cold,
        warm_compile_seconds=took.warm,
        difference=finite(one.error),
        agrees=one.agrees,
        peak_bytes=one.peak,
        failure=one.failure,
        note=one.note,
    )


def roofline_table(steps: tuple[StepTime, ...]) -> Table:
    """Kernels and library calls, slowest first: bytes, flops, and share of the roof if known."""
    columns = (">", "kernel", ">time", ">spread", ">moved", ">GB/s", ">GFLOP/s", ">of the roof",
               "roof")  # fmt: skip
    order = sorted(enumerate(steps, 1), key=lambda pair: -pair[1].seconds)
    rows = [
        (
            str(number),
            step.name,
            duration(step.seconds),
            _percent(step.spread),
            bytes_text(step.nbytes),
            f"{step.bandwidth / 1e9:.3g}",
            f"{step.flop_rate / 1e9:.3g}",
            step.share_text,
            "" if step.roof is None else say("memory" if step.memory else "arithmetic"),
        )
        for number, step in order[:MOST_KERNELS]
    ]
    rest = [step.seconds for _, step in order[MOST_KERNELS:]]
    if rest:
        rows.append(("", say("{n} more", n=len(rest)), duration(sum(rest)), "", "", "", "", "", ""))
    known = any(step.roof is not None for step in steps)
    limits = "kernels of inductor_lab, against this machine's limits"
    title = limits if known else "kernels of inductor_lab"
    return Table(title, columns, tuple(rows)).without_empty()


def _experiment_rows(result: BenchResult) -> Iterator[tuple[str, ...]]:
    before = _per_call(result, result.base)
    for contender in result.contenders[1:]:
        name = contender.name
        took = contender.compile.cold if contender.compile else None
        after = _per_call(result, name)
        change = result.verdict(name) if after else contender.failure or say("not timed")
        yield result.title, name, _seconds(took), before, after, change, contender.note


def _per_call(result: BenchResult, name: str) -> str:
    known = result.timed and name in result.timings.seconds
    return duration(result.timings.median_ms(name) / 1e3) if known else ""


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """Escape characters of Markdown and HTML in the user's names."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
