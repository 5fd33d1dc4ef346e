"""The ranks of one run, compared: which rank differs from the others, and where.

    rank0, rank1, rank3: equal          →   the reference is rank0
    rank2: another collective first     →   compared with rank0, stage by stage

Ranks must compile the same functions in the same order and start the same collectives, otherwise
they wait for each other forever.  Answers of a cache and guards may differ without harm.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.capture.fx_graph import FxNode
from inductor_lab.debug.diff.run_diff import RunDiff, compare_compiles
from inductor_lab.debug.diff.run_stages import CompileRun, compiles_of, function_key
from inductor_lab.saved.documents import comparison_types
from inductor_lab.saved.documents.kinds import document
from inductor_lab.stock.trace_log import TraceLog

_COLLECTIVE = re.compile(r"\b_?c10d_functional(?:_autograd)?\.(?!wait_tensor)(\w+)")
_NAME = re.compile(r"[A-Za-z_]\w*")
NONE = "none"
MOST_RANKS = 8
"""Ranks that a line lists; the others are counted."""


@dataclass(frozen=True)
class RankChange:
    """Ranks that are equal to each other and differ from the reference.

    out_of_step   the first compile whose id or function differs; "" if there is none
    collectives   the first collective that differs; "" if there is none
    run           the first of these ranks, compared with the reference
    """

    ranks: tuple[str, ...]
    out_of_step: str
    collectives: str
    run: RunDiff

    def __str__(self) -> str:
        said = [self.out_of_step, self.collectives, str(self.run)]
        return "\n".join([f"{listed(self.ranks)}:", *filter(None, said)])


@dataclass(frozen=True, eq=False)
class RankDiff(Shown):
    """The ranks of one log, compared; true if they differ.

    equal      the largest group of ranks whose compiles are equal; its first rank is the reference
    changes    the other groups
    """

    name: str
    equal: tuple[str, ...]
    changes: tuple[RankChange, ...]

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def reference(self) -> str:
        return self.equal[0]

    def __repr__(self) -> str:
        if not self.changes:
            return f"RankDiff({self.name}: {counted(len(self.equal), 'rank')}, equal)"
        others = [rank for change in self.changes for rank in change.ranks]
        verb = "differs" if len(others) == 1 else "differ"
        return f"RankDiff({self.name}: {listed(others)} {verb} from {listed(self.equal)})"

    def __str__(self) -> str:
        return "\n\n".join([repr(self), *map(str, self.changes)])

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(comparison_types.RankDiff(
            id="rank_diff",
            summary=repr(self),
            kind="rank_diff",
            name=self.name,
            differs=bool(self),
            equal=list(self.equal),
            changes=[_change(each) for each in self.changes],
        ))  # fmt: skip


def listed(ranks: Sequence[str]) -> str:
    """The names of the first ranks, and how many more there are."""
    more = len(ranks) - MOST_RANKS
    return ", ".join(ranks[:MOST_RANKS]) + (f" and {more} more" if more > 0 else "")


def _change(change: RankChange) -> comparison_types.RankChange:
    return comparison_types.RankChange(
        ranks=list(change.ranks),
        out_of_step=change.out_of_step,
        collectives=change.collectives,
        run=change.run.data(f"{change.ranks[0]}."),
    )


def compare_ranks(log: TraceLog) -> RankDiff:
    """Group the ranks by what they compiled, and compare each group with the largest one."""
    groups: dict[str, list[str]] = {}
    for rank in dict.fromkeys(each.process for each in log.compiled):
        groups.setdefault(_digest(compiles_of(log, rank)), []).append(rank)
    equal, *others = sorted(groups.values(), key=len, reverse=True)
    changes = []
    for ranks in others:
        run = _compared(log, equal[0], ranks[0])
        out_of_step = _first_out_of_step(log, equal[0], ranks[0])
        collectives = _first_collective(log, equal[0], ranks[0])
        if run or out_of_step:
            changes.append(RankChange(tuple(ranks), out_of_step, collectives, run))
        else:  # they report other stages, and are equal in those that both report
            equal.extend(ranks)
    return RankDiff(log.name, tuple(equal), tuple(changes))


def _digest(compiles: Iterator[CompileRun]) -> str:
    """A digest of all stages; each compile is read and forgotten."""
    found = hashlib.sha256()
    for each in compiles:
        found.update(f"{each.key}\n{each.compile_id}\n".encode())
        for stage in each.stages():
            found.update("\n".join((stage.name, *stage.lines)).encode(errors="replace"))
    return found.hexdigest()


def _compared(log: TraceLog, old: str, new: str) -> RunDiff:
    before, after = (tuple(compiles_of(log, rank)) for rank in (old, new))
    return compare_compiles((old, new), before, after)


def _first_out_of_step(log: TraceLog, old: str, new: str) -> str:
    """Compile ids name the same function on all ranks."""
    sides = [
        [(each.compile_id, function_key(each.function)) for each in log.compiled
         if each.process == rank]
        for rank in (old, new)
    ]  # fmt: skip
    for number, (first, second) in enumerate(zip_longest(*sides), 1):
        if first != second:
            said = "; ".join(
                f"{rank} compiles {f'{one[1]} as {one[0]}' if one else NONE}"
                for rank, one in ((old, first), (new, second))
            )
            return f"compile ids are out of step from compile {number}: {said}"
    return ""


def _first_collective(log: TraceLog, old: str, new: str) -> str:
    """All ranks must start the same collectives in the same order."""
    sides = (list(_collectives(log, rank)) for rank in (old, new))
    for number, (first, second) in enumerate(zip_longest(*sides, fillvalue=NONE), 1):
        if first != second:
            return (f"collective {number} differs, so the ranks can deadlock: "
                    f"{old} starts {first}; {new} starts {second}")  # fmt: skip
    return ""


def _collectives(log: TraceLog, rank: str) -> Iterator[str]:
    """The collectives of the compiled graphs, in the order in which they were compiled."""
    for entry in log.compiled:
        if entry.process != rank:
            continue
        for part in log[entry.key].parts:
            tensors = {n.name: str(n.tensor) for n in part.last.nodes if n.tensor}
            yield from (_call(node, tensors) for node in part.last.nodes
                        if _COLLECTIVE.search(node.target))  # fmt: skip


def _call(node: FxNode, tensors: Mapping[str, str]) -> str:
    """`all_reduce(f32[4, 4], 'sum', '0')`, also of its form in place, `all_reduce_`."""
    found = _COLLECTIVE.search(node.target)
    assert found is not None, "the node is a collective"
    given = _NAME.sub(lambda name: tensors.get(name[0], name[0]), node.args)
    return f"{found[1].removesuffix('_')}({given})"
