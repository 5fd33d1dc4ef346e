"""The results of the benchmark as tables, means and lists of slow workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import geometric_mean

from benchmarks.measure import COPY
from inductor_lab.bench.bench_result import OURS, STOCK, BenchResult, CompileTime, Contender, Table
from inductor_lab.bench.contenders import EAGER

TITLES = {EAGER: "eager", STOCK: "stock", OURS: "ours"}
KINDS = ("kernel", "operator", "model", "training")
TOLERATED = 1.05
"""So much slower than somebody else is not called slower: it is noise more often than not."""
ROOF = 1.15
"""What streams may take so much longer than a copy of as many bytes."""


def ratio(result: BenchResult, name: str, base: str = OURS) -> float | None:
    """The time of a compiler divided by the time of `base`; None unless both were timed."""
    known = result.timed and {name, base} <= set(result.timings.seconds)
    return result.timings.ratio(name, base) if known else None


def times(results: Sequence[BenchResult], title: str) -> Table:
    """Milliseconds of each compiler, and the ratio of the others' times to ours."""
    columns = ("workload", *(f">{name}" for name in TITLES.values()), ">spread",
               ">eager/ours", ">stock/ours", ">copy/ours", "note")  # fmt: skip
    rows = []
    for result in results:
        seconds = result.timings.seconds if result.timed else {}
        row = [result.title]
        row += [f"{result.timings.median_ms(n):.3f}" if n in seconds else "" for n in TITLES]
        row.append(f"{result.timings.spread(OURS):.0%}" if OURS in seconds else "")
        for name in (EAGER, STOCK, COPY):
            found = ratio(result, name)
            row.append("" if found is None else f"{found:.2f}x")
        rows.append((*row, "; ".join(notes(result))))
    return Table(title, columns, tuple(rows)).without_empty()


def notes(result: BenchResult) -> Iterator[str]:
    """The compilers that failed or are wrong; a wrong one was not timed."""
    for contender in result.contenders:
        who = TITLES.get(contender.name, contender.name)
        if contender.failure:
            yield f"{who} failed: {contender.failure[:60]}"
        elif not contender.agrees:
            yield f"{who} is wrong by {contender.error:.0e}"
        elif contender.note:
            yield f"{who} {contender.note}"


def compiling(results: Sequence[BenchResult]) -> Table:
    """First calls and peak memory, measured in separate processes."""
    columns = ("workload", *(f">{TITLES[n]} {when}" for when in ("cold", "warm")
               for n in (STOCK, OURS)), *(f">{name} MB" for name in TITLES.values()))  # fmt: skip
    rows = []
    for result in results:
        known = {contender.name: contender for contender in result.contenders}
        took = [(known[n].compile if n in known else None) or CompileTime() for n in (STOCK, OURS)]
        row = [result.title, *(_seconds(t.cold) for t in took), *(_seconds(t.warm) for t in took)]
        rows.append((*row, *(_megabytes(known.get(name)) for name in TITLES)))
    title = "First call, s, and peak memory above an idle process, MB"
    return Table(title, columns, tuple(rows)).without_empty()


def findings(setting: str, results: Sequence[BenchResult]) -> Iterator[str]:
    """Geometric means, then the workloads that are too slow, then the wrong ones."""
    for kind in KINDS:
        for name in (STOCK, EAGER):
            found = [r for result in results if result.work == kind
                     if (r := ratio(result, name)) is not None]  # fmt: skip
            if found:
                yield (f"{setting}: {kind}, geometric mean of {len(found)}: "
                       f"{geometric_mean(found):.2f}x {TITLES[name]}'s speed")  # fmt: skip
    slow = [text for result in results if (text := slower(result))]
    yield f"{setting}: slower than eager or stock by more than 5 %: {'; '.join(slow) or 'nothing'}"
    below = [
        f"{result.title} {took:.2f}x"
        for result in results
        if (took := ratio(result, OURS, COPY)) is not None and took > ROOF
    ]
    yield (f"{setting}: takes more than {ROOF:.2f} times as long as a copy of as many bytes: "
           f"{'; '.join(below) or 'nothing'}")  # fmt: skip
    wrong = [f"{r.title} ({', '.join(notes(r))})" for r in results if any(notes(r))]
    yield f"{setting}: wrong or failed: {'; '.join(wrong) or 'nothing'}"


def slower(result: BenchResult) -> str:
    """`max of rows: 1.10x eager's time`, or nothing."""
    found = {name: ratio(result, OURS, name) for name in (EAGER, STOCK)}
    late = [
        f"{took:.2f}x {TITLES[name]}'s time"
        for name, took in found.items()
        if took is not None and took > TOLERATED
    ]
    return f"{result.title}: {', '.join(late)}" if late else ""


def markdown(settings: Mapping[str, Sequence[BenchResult]]) -> str:
    """The complete report, to be pasted into RESULTS.md."""
    parts = [times(results, f"{name} allocator, ms").to_markdown()
             for name, results in settings.items()]  # fmt: skip
    first = next(iter(settings.values()))
    parts.append(compiling(first).to_markdown())
    lines = [line for name, results in settings.items() for line in findings(name, results)]
    parts.append("".join(f"- {line}\n" for line in lines))
    parts.append(f"{first[0].machine}\n")
    return "\n".join(parts)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _megabytes(contender: Contender | None) -> str:
    if contender is None or contender.peak is None:
        return ""
    return f"{contender.peak / 1e6:,.0f}"
