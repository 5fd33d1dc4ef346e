"""`lab.diff(old, new)`: where two runs differ first.

```
lab.diff(lab.inspect(f, x), lab.inspect(g, x))        # two compilations, ours or stock's
lab.diff("trace_before", "trace_after")               # two folders of TORCH_TRACE
```

The compiles of both runs are aligned by function.  For each pair the result has the first stage
that differs, with a diff of its lines.  Later stages that differ too are its consequences: they are
listed by name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from inductor_lab.api.arguments import checked
from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.compiler.records import Record
from inductor_lab.debug.diff.run_stages import CompileRun, Stage, compiles_of
from inductor_lab.debug.explore.what_if import Comparison
from inductor_lab.saved.documents import comparison_types
from inductor_lab.saved.documents.kinds import document
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.stock.trace_log import TraceLog, read_trace

MOST_LINES = 40
"""Maximum number of lines of a diff in the printed text."""
Run = Record | StockCompilation | TraceLog


@dataclass(frozen=True)
class Change:
    """One compile that differs.

    old, new       how the runs name it: function and compile id
    stage          the first stage that differs
    lines          the unified diff of this stage
    consequences   later stages that differ too
    not_reported   stages that only one of the runs reports; they are not compared
    """

    old: str
    new: str
    stage: str
    lines: tuple[str, ...]
    consequences: tuple[str, ...]
    not_reported: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = self.old if self.old == self.new else f"{self.old} -> {self.new}"
        more = len(self.lines) - MOST_LINES
        text = [f"{name}: the {self.stage} differs", *self.lines[:MOST_LINES]]
        text += [f"... {counted(more, 'more line')}"] * (more > 0)
        if self.consequences:
            text.append(f"consequences: {', '.join(self.consequences)}")
        return "\n".join(text)


@dataclass(frozen=True, eq=False)
class RunDiff(Shown):
    """Two runs, compared; true if they differ.

    equal                the number of compiles that are equal in every stage
    only_old, only_new   compiles that the other run does not have
    versions             torch's version in both runs; "" if it is unknown
    seconds              compile time of both runs
    numbers              (what, old, new): kernels, bytes and so on of two compilations of ours
    """

    old: str
    new: str
    changes: tuple[Change, ...]
    equal: int
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    versions: tuple[str, str] = ("", "")
    seconds: tuple[float, float] = (0.0, 0.0)
    numbers: tuple[tuple[str, str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes or self.only_old or self.only_new)

    @property
    def first(self) -> Change | None:
        """The first compile that differs."""
        return self.changes[0] if self.changes else None

    def __repr__(self) -> str:
        number = len(self.changes)
        found = [f"{number} of {number + self.equal} compiles differ"] * bool(number)
        found += [f"{len(self.only_old)} only in {self.old}"] * bool(self.only_old)
        found += [f"{len(self.only_new)} only in {self.new}"] * bool(self.only_new)
        return f"RunDiff({self.old} and {self.new}: {', '.join(found) or 'equal'})"

    def __str__(self) -> str:
        head = [repr(self)]
        if self.versions[0] != self.versions[1] and all(self.versions):
            head.append(f"torch {self.versions[0]} -> {self.versions[1]}")
        if all(self.seconds):
            head.append(f"compile time {self.seconds[0]:.2f} s -> {self.seconds[1]:.2f} s")
        head += [f"{what} {old} -> {new}" for what, old, new in self.numbers if old != new]
        head += [f"only in {self.old}: {name}" for name in self.only_old]
        head += [f"only in {self.new}: {name}" for name in self.only_new]
        return "\n".join([*head, *(f"\n{change}" for change in self.changes)])

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(comparison_types.RunDiff(
            id="run_diff",
            summary=repr(self),
            kind="run_diff",
            old=self.old,
            new=self.new,
            differs=bool(self),
            changes=[_change(each, number) for number, each in enumerate(self.changes)],
            equal=self.equal,
            only_old=list(self.only_old),
            only_new=list(self.only_new),
            versions=list(self.versions),
            seconds=list(self.seconds),
            numbers={what: [old, new] for what, old, new in self.numbers},
        ))  # fmt: skip


def _change(change: Change, number: int) -> comparison_types.StageChange:
    return comparison_types.StageChange(
        id=f"change:{number}",
        summary=str(change).partition("\n")[0],
        kind="stage_change",
        old=change.old,
        new=change.new,
        stage=change.stage,
        diff="\n".join(change.lines),
        consequences=list(change.consequences),
        not_reported=list(change.not_reported),
    )


@checked
def diff(old: Any, new: Any, *, processes: tuple[str, str] | None = None) -> RunDiff:
    """Compare two runs, and find the first stage that differs in each compile.

    old, new    compilations (`lab.inspect`, ours or stock's), trace logs (`lab.read_trace`), or
                paths of saved compilations, trace files and folders of TORCH_TRACE
    processes   for logs of several processes: the process of each that is compared (`"rank0"`); by
                default all are

    Numbers of nodes, names of symbols, addresses and folders may differ between equal runs: they
    are not compared, and neither are times.  A stage that one run does not report is not compared.
    Raises UnreadableFile for a path that is neither.
    """
    runs = [_opened(run) for run in (old, new)]
    which = processes or (None, None)
    before, after = (_compiles(run, each) for run, each in zip(runs, which, strict=True))
    changes, equal, matched = [], 0, set[int]()
    for first, second in _aligned(before, after):
        matched |= {id(first), id(second)}
        change = _compare(first, second)
        if change is None:
            equal += 1
        else:
            changes.append(change)
    names = _names(old, new, runs, which)
    return RunDiff(
        *names, tuple(changes), equal,
        tuple(each.label for each in before if id(each) not in matched),
        tuple(each.label for each in after if id(each) not in matched),
        (_version(runs[0]), _version(runs[1])),
        (sum(each.seconds for each in before), sum(each.seconds for each in after)),
        _numbers(*runs),
    )  # fmt: skip


def _numbers(old: Run, new: Run) -> tuple[tuple[str, str, str], ...]:
    """What generated code costs; compile times are in `seconds`."""
    if not (isinstance(old, Record) and isinstance(new, Record)):
        return ()
    return tuple(row for row in Comparison(old, new).rows if row[0] != "compile seconds")


def _compiles(run: Run, process: str | None) -> tuple[CompileRun, ...]:
    found = tuple(compiles_of(run, process))
    known = {each.process for each in run.compiled} if isinstance(run, TraceLog) else set()
    if process is not None and process not in known:
        there = ", ".join(sorted(known - {""})) or "a single process"
        raise BadArguments(f"the run has no process {process!r}", todo=f"it has {there}")
    return found


def _opened(run: Any) -> Run:
    if isinstance(run, Run):
        return run
    if not isinstance(run, str | PathLike):
        what = f"{type(run).__name__} is not a run"
        raise BadArguments(what, todo="give a compilation, a trace log, or a path of one")
    path = Path(run)
    if path.suffix == ".json":
        from inductor_lab.api.compilation import load

        loaded = load(path)
        if isinstance(loaded, Run):
            return loaded
        raise UnreadableFile(f"{path} holds {type(loaded).__name__}", todo="give a compilation")
    return read_trace(path)


def _names(
    old: Any, new: Any, runs: Sequence[Run], which: Sequence[str | None]
) -> tuple[str, str]:
    """Distinct names of the two runs: their paths, processes or functions."""
    found = []
    for given, run, process in zip((old, new), runs, which, strict=True):
        name = Path(given).name if isinstance(given, str | PathLike) else run.name
        found.append(f"{name} {process}" if process else name)
    return ("old", "new") if found[0] == found[1] else (found[0], found[1])


def _version(run: Run) -> str:
    return getattr(run, "torch_version", "")


def _aligned(
    old: Sequence[CompileRun], new: Sequence[CompileRun]
) -> Iterator[tuple[CompileRun, CompileRun]]:
    """Pairs of compiles of one function, in order; an edited function has the same name."""
    before, after = _by_key(old), _by_key(new)
    partners = {
        id(first): second
        for key, compiles in before.items()
        for first, second in _pairs(compiles, after.get(key, []))
    }
    for each in old:
        if id(each) in partners:
            yield each, partners[id(each)]


def _by_key(compiles: Sequence[CompileRun]) -> dict[str, list[CompileRun]]:
    found: dict[str, list[CompileRun]] = {}
    for each in compiles:
        found.setdefault(each.key, []).append(each)
    return found


def _pairs(
    old: Sequence[CompileRun], new: Sequence[CompileRun]
) -> Iterator[tuple[CompileRun, CompileRun]]:
    """Compiles of one function: if one run has more, equal captured graphs belong together."""
    if len(old) == len(new):
        yield from zip(old, new, strict=True)
        return
    first_graphs, second_graphs = ([_captured(each) for each in side] for side in (old, new))
    matcher = difflib.SequenceMatcher(None, first_graphs, second_graphs, autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag in ("equal", "replace"):
            yield from zip(old[first:last], new[start:end], strict=False)


def _captured(compiled: CompileRun) -> tuple[str, ...]:
    found: Mapping[str, Stage] = {stage.name: stage for stage in compiled.stages()}
    return found["captured graph"].lines if "captured graph" in found else ()


def _compare(old: CompileRun, new: CompileRun) -> Change | None:
    """The first stage that differs; None if there is none."""
    before = {stage.name: stage.lines for stage in old.stages()}
    after = {stage.name: stage.lines for stage in new.stages()}
    differing = [
        name for name, lines in before.items() if name in after and after[name] != lines
    ]
    if not differing:
        return None
    first = differing[0]
    lines = difflib.unified_diff(
        before[first], after[first], f"{old.label} old", f"{new.label} new", lineterm="", n=2
    )
    alone = tuple(name for name in (*before, *after) if (name in before) != (name in after))
    return Change(old.label, new.label, first, tuple(lines), tuple(differing[1:]), alone)
