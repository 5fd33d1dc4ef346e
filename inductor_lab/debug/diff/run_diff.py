"""Two runs, compared compile by compile: the first stage that differs.

The compiles of both runs are aligned by function.  For each pair the result has the first stage
that differs, with a diff of its lines.  Later stages that differ too are its consequences: they are
listed by name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.debug.diff.run_stages import CompileRun, Stage
from inductor_lab.saved.documents import comparison_types
from inductor_lab.saved.documents.kinds import document

MOST_LINES = 40
"""Maximum number of lines of a diff in the printed text."""


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
        verb = "differ" if self.stage.endswith("s") else "differs"
        text = [f"{name}: the {self.stage} {verb}", *self.lines[:MOST_LINES]]
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
        return document(self.data())

    def data(self, prefix: str = "") -> comparison_types.RunDiff:
        """The data without a schema; a larger document needs a prefix for the ids."""
        return comparison_types.RunDiff(
            id=f"{prefix}run_diff",
            summary=repr(self),
            kind="run_diff",
            old=self.old,
            new=self.new,
            differs=bool(self),
            changes=[_change(each, f"{prefix}change:{number}")
                     for number, each in enumerate(self.changes)],
            equal=self.equal,
            only_old=list(self.only_old),
            only_new=list(self.only_new),
            versions=list(self.versions),
            seconds=list(self.seconds),
            numbers={what: [old, new] for what, old, new in self.numbers},
        )  # fmt: skip


def _change(change: Change, ident: str) -> comparison_types.StageChange:
    return comparison_types.StageChange(
        id=ident,
        summary=str(change).partition("\n")[0],
        kind="stage_change",
        old=change.old,
        new=change.new,
        stage=change.stage,
        diff="\n".join(change.lines),
        consequences=list(change.consequences),
        not_reported=list(change.not_reported),
    )


def compare_compiles(
    names: tuple[str, str], before: Sequence[CompileRun], after: Sequence[CompileRun], **facts: Any
) -> RunDiff:
    """Compare the compiles of two runs; `facts` are other fields of the result."""
    changes, equal, matched = [], 0, set[int]()
    for first, second in _aligned(before, after):
        matched |= {id(first), id(second)}
        change = _compare(first, second)
        if change is None:
            equal += 1
        else:
            changes.append(change)
    return RunDiff(
        *names, tuple(changes), equal,
        tuple(each.label for each in before if id(each) not in matched),
        tuple(each.label for each in after if id(each) not in matched),
        seconds=(sum(each.seconds for each in before), sum(each.seconds for each in after)),
        **facts,
    )  # fmt: skip


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
