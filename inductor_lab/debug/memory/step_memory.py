"""The result of `lab.memory`: three curves on one axis, their peaks, and who keeps the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import PurePath
from typing import Any, Literal

from inductor_lab.compiler.base.display import Shown, bytes_text, counted
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.saved.documents import command_types
from inductor_lab.saved.documents.kinds import document
from inductor_lab.saved.documents.sources import place

Who = Literal["eager", "stock", "inductor_lab"]
Kind = Literal[
    "parameter", "argument", "gradient", "output", "saved", "variable", "checkpoint", "pool",
    "temporary",
]  # fmt: skip
KINDS: dict[Kind, str] = {
    "parameter": "parameter", "argument": "argument", "gradient": "gradient of",
    "output": "result", "saved": "saved for backward", "variable": "variable",
    "checkpoint": "kept by a checkpoint", "pool": "free, kept by our memory pool",
    "temporary": "temporary",
}  # fmt: skip
"""Kind of holder → words."""
WHERE = {"forward": "in the forward", "backward": "in the backward", "update": "in the update"}
SHOWN = 6
"""The number of holders that a table shows for each run."""
LONGEST = 58
"""Characters of the user's line in a table."""


@dataclass(frozen=True, slots=True)
class Point:
    """The bytes alive after an allocation or a release."""

    phase: str
    nbytes: int


@dataclass(frozen=True)
class Holder:
    """What keeps some bytes at the peak.

    name   an argument, a parameter, a variable or an FX node
    why    the node of autograd or the rule of the partition that saves it
    place  the user's line that made it
    maker  the operator that allocated it, or the line of the host program
    count  the number of allocations
    before  does it exist before the step?
    """

    kind: Kind
    nbytes: int
    name: str = ""
    why: str = ""
    place: Span | None = None
    maker: str = ""
    count: int = 1
    before: bool = False
    lines: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    def plus(self, other: Holder) -> Holder:
        return replace(self, nbytes=self.nbytes + other.nbytes, count=self.count + other.count)

    def with_lines(self, lines: tuple[tuple[str, int], ...]) -> Holder:
        return replace(self, lines=lines)

    @property
    def what(self) -> str:
        """`saved for backward h, by SoftmaxBackward0`, `temporary mm_3, in MmBackward0`."""
        made = f"of {_short(self.maker)}" if self.kind == "temporary" else ""
        about = ", ".join(filter(None, (self.name or made, self.why)))
        return f"{KINDS[self.kind]} {about}".rstrip()


@dataclass(frozen=True)
class MemoryRun:
    """One step with one compiler.

    failure      why there is no measurement; "" if there is one
    base_bytes   arguments, parameters and gradients that exist before the step
    peak_bytes   the largest number of bytes alive, with `base_bytes`
    kept_bytes   bytes made in the forward that are saved when the backward begins
    planned_bytes  the peak by our memory plan, with `base_bytes`; None for others
    points       the bytes alive after each event
    """

    who: Who
    failure: str = ""
    base_bytes: int = 0
    peak_bytes: int = 0
    peak_phase: str = "forward"
    peak_what: str = ""
    peak_place: Span | None = None
    kept_bytes: int = 0
    planned_bytes: int | None = None
    holders: tuple[Holder, ...] = ()
    points: tuple[Point, ...] = ()

    @property
    def sentence(self) -> str:
        """The peak in one sentence."""
        if self.failure:
            return f"{self.who}: {self.failure}"
        if not self.points or self.peak_bytes == self.base_bytes:
            return f"{self.who}: peak {bytes_text(self.peak_bytes)}: the step allocates no more"
        made = f" ({_short(self.peak_what)})" if self.who == "eager" else ""
        at = f" {WHERE[self.peak_phase]}{_line(self.peak_place)}{made}"
        before = sum(h.nbytes for h in self.holders if h.before)
        new = [h for h in self.holders if not h.before]
        parts = [f"{bytes_text(h.nbytes)} {_is(h)}{_line(h.place)}" for h in new[:3]]
        parts += [f"{bytes_text(before)} arguments and parameters"] * bool(before)
        rest = self.peak_bytes - before - sum(h.nbytes for h in new[:3])
        parts += [f"{bytes_text(rest)} others"] if rest > 0 else []
        return f"{self.who}: peak {bytes_text(self.peak_bytes)}{at}: {', '.join(parts)}"


@dataclass(frozen=True)
class Suggestion:
    """An edit that was tried in a process of its own: its peak is lower, its results are equal.

    who     the run whose peak it lowers
    what    a sentence
    diff    the edit of the user's code; "" for an option
    """

    who: Who
    name: str
    what: str
    before_bytes: int
    after_bytes: int
    diff: str = ""

    def __str__(self) -> str:
        change = f"{bytes_text(self.before_bytes)} → {bytes_text(self.after_bytes)}"
        return f"{self.name}: {self.what}: measured peak of {self.who} {change}"


@dataclass(frozen=True, eq=False, repr=False)
class StepMemory(Shown):
    """The memory of one training step in eager mode, with stock and with our compiler.

    runs         one for each compiler that was asked for
    suggestions  edits and options that lower a peak, the best first
    tried        the number of edits and options that were tried
    plan         the memory plans of our compiler, as a document; None if it was not asked for
    """

    name: str
    device: str
    runs: tuple[MemoryRun, ...]
    suggestions: tuple[Suggestion, ...] = ()
    tried: int = 0
    plan: Mapping[str, Any] | None = field(default=None, repr=False)

    def __getitem__(self, who: str) -> MemoryRun:
        """The run of `"eager"`, `"stock"` or `"inductor_lab"`; raises KeyError."""
        found = {run.who: run for run in self.runs}
        return found[who]  # type: ignore[index]

    def __repr__(self) -> str:
        peaks = ", ".join(
            f"{r.who} {'failed' if r.failure else bytes_text(r.peak_bytes)}" for r in self.runs
        )
        return f"StepMemory({self.name}: peaks {peaks})"

    def __str__(self) -> str:
        return "\n".join([*self._table(), *self._details()])

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        plan = self.plan or {"peak_bytes": 0, "kept_bytes": 0, "plans": []}
        return document(command_types.Memory(
            id="memory", summary=repr(self), kind="memory", name=self.name,
            peak_bytes=plan["peak_bytes"], kept_bytes=plan["kept_bytes"], plans=plan["plans"],
            device=self.device,
            runs=[_run_document(run) for run in self.runs],
            suggestions=[command_types.MemorySuggestion(
                compiler=s.who, name=s.name, what=s.what, before_bytes=s.before_bytes,
                after_bytes=s.after_bytes, diff=s.diff) for s in self.suggestions],
            tried=self.tried,
        ))  # fmt: skip

    def _table(self) -> Iterator[str]:
        yield f"{self.name} on {self.device}: bytes alive in one step"
        rows = [("", "peak", "kept for backward", "before the step", "peak at")]
        for run in self.runs:
            if run.failure:
                rows.append((run.who, "-", "-", "-", run.failure))
                continue
            line = _line(run.peak_place).removeprefix(" at ")
            at = f"{run.peak_phase} {line}".rstrip()
            sizes = map(bytes_text, (run.peak_bytes, run.kept_bytes, run.base_bytes))
            rows.append((run.who, *sizes, at))  # type: ignore[arg-type]
        yield from columns(rows)

    def _details(self) -> Iterator[str]:
        for run in self.runs:
            if run.failure:
                continue
            yield ""
            yield run.sentence
            rows = [(bytes_text(h.nbytes), _is(h), _code(h.place)) for h in run.holders[:SHOWN]]
            more = run.holders[SHOWN:]
            if more:
                rows.append((bytes_text(sum(h.nbytes for h in more)), f"{len(more)} more", ""))
            yield from (f"  {row}" for row in columns(rows))
            if run.planned_bytes is not None:
                yield f"  the memory plan predicts {bytes_text(run.planned_bytes)}"
        yield from self._tried()

    def _tried(self) -> Iterator[str]:
        if not self.tried:
            return
        yield ""
        for each in self.suggestions:
            yield str(each)
            yield from (f"  {line}" for line in _hunk(each.diff))
        found = len(self.suggestions)
        lower = "lowers a peak" if found < 2 else "lower a peak"
        yield f"tried {counted(self.tried, 'suggestion')}: {found or 'none'} {lower}"


def _run_document(run: MemoryRun) -> command_types.MemoryRun:
    return command_types.MemoryRun(
        compiler=run.who, failure=run.failure, sentence=run.sentence, base_bytes=run.base_bytes,
        peak_bytes=run.peak_bytes, kept_bytes=run.kept_bytes, planned_bytes=run.planned_bytes,
        peak_phase=run.peak_phase, peak_place=place(run.peak_place),
        holders=[command_types.MemoryHolder(
            kind=h.kind, nbytes=h.nbytes, tensors=h.count, name=h.name, why=h.why, maker=h.maker,
            place=place(h.place), before=h.before) for h in run.holders],
        points=[command_types.MemoryPoint(phase=p.phase, nbytes=p.nbytes)
                for p in thinned(run.points)],
    )  # fmt: skip


def thinned(curve: Sequence[Point], most: int = 400) -> list[Point]:
    """At most so many points of a curve, with the largest of each phase."""
    found: list[Point] = []
    for _, phase in groupby(curve, key=lambda point: point.phase):
        here = list(phase)
        size = -(-len(here) * 2 // most) if len(curve) > most else 1
        bins = (here[n : n + size] for n in range(0, len(here), size))
        found += [max(points, key=lambda point: point.nbytes) for points in bins]
    return found


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows with aligned columns."""
    if not rows:
        return
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(f"{cell:{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()


def _is(holder: Holder) -> str:
    several = f" ({holder.count} tensors)" if holder.count > 1 else ""
    return f"{holder.what}{several}"


def _short(operator: str) -> str:
    return operator.removesuffix(".default")


def _line(place: Span | None) -> str:
    return "" if place is None else f" at {PurePath(place.file).name}:{place.line}"


def _code(place: Span | None) -> str:
    if place is None:
        return ""
    text = f"{PurePath(place.file).name}:{place.line}  {' '.join(place.code.split())}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _hunk(diff: str) -> Iterator[str]:
    """The changed lines of a diff."""
    yield from (line for line in diff.splitlines()
                if line.startswith(("+", "-")) and not line.startswith(("+++", "---")))  # fmt: skip
