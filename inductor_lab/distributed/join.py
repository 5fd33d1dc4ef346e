"""Compare the compilations of several ranks.

All ranks must start the same collectives in the same order, otherwise they deadlock.  Other
differences (kernels, choices of libraries, times) cost time, because in a collective all ranks wait
for the slowest one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from inductor_lab.api.arguments import checked
from inductor_lab.api.compilation import Compilation, load
from inductor_lab.compiler.base.display import Shown, bytes_text, counted
from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.records import CompiledPart
from inductor_lab.compiler.step_time import duration
from inductor_lab.distributed.timeline import Timeline, timeline


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the comparison: its label, and the value of each rank.

    Measured times are never equal, so they do not count as a difference.
    """

    what: str
    values: tuple[str, ...]

    @property
    def same(self) -> bool:
        return len(set(self.values)) == 1 or self.what in MEASURED


@dataclass(frozen=True, eq=False)
class Ranks(Shown):
    """Compilations of all ranks of a group, in order."""

    compilations: tuple[Compilation, ...]
    facts: tuple[Fact, ...]
    collectives: tuple[tuple[str, ...], ...]

    @property
    def agree(self) -> bool:
        """Do all ranks start the same collectives in the same order?"""
        return len(set(self.collectives)) == 1

    @property
    def first_difference(self) -> str:
        """The first collective that differs, with the call of each rank; "" if none differs."""
        for number, begun in enumerate(zip_longest(*self.collectives, fillvalue="none"), 1):
            if len(set(begun)) > 1:
                said = "; ".join(f"rank {rank} starts {what}" for rank, what in enumerate(begun))
                return f"collective {number} differs, so the ranks deadlock: {said}"
        return ""

    @property
    def differences(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if not fact.same)

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """The predicted timeline of each rank's call."""
        return tuple(timeline(c, len(self.compilations)) for c in self.compilations)

    def __len__(self) -> int:
        return len(self.compilations)

    def __repr__(self) -> str:
        count = len(self.collectives[0])
        said = f"the same {counted(count, 'collective')}" if self.agree else "DIFFERENT COLLECTIVES"
        many = len(self.differences)
        differ = "1 fact differs" if many == 1 else f"{many} facts differ"
        return f"Ranks({counted(len(self), 'rank')}, {said}, {differ})"

    def __str__(self) -> str:
        wide = max(len(fact.what) for fact in self.facts) + 2
        heads = [f"rank {n}" for n in range(len(self))]
        rows = [heads, *(fact.values for fact in self.facts)]
        columns = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
        lines = [repr(self), _row("", heads, wide, columns)]
        for fact in self.facts:
            mark = "" if fact.same else "  differs"
            lines.append(_row(fact.what, fact.values, wide, columns) + mark)
        if not self.agree:
            lines.append(self.first_difference)
        return "\n".join(lines)


@checked
def join(ranks: Sequence[Compilation | str | Path]) -> Ranks:
    """Compare the compilations of the ranks of one group, given in order, or their saved files.

    Raises BadArguments if there are none, or fewer than the ranks of one of their collectives, and
    UnreadableFile for a file that is not a compilation.
    """
    found = tuple(one if isinstance(one, Compilation) else load(one) for one in ranks)
    if not found or not all(isinstance(one, Compilation) for one in found):
        raise BadArguments(
            "there is nothing to join", todo="give a compilation, or a file of one, for each rank"
        )
    needed = max((_group_size(call) for c in found for _, call in _begun(c)), default=0)
    if needed > len(found):
        given = "1 rank was" if len(found) == 1 else f"{len(found)} ranks were"
        raise BadArguments(
            f"{given} given, and a collective has {needed}",
            todo="give a compilation, or a file of one, for each rank of the group",
        )
    facts = tuple(Fact(what, tuple(str(ask(c)) for c in found)) for what, ask in ASKED.items())
    return Ranks(found, facts, tuple(map(_collectives, found)))


def _collectives(c: Compilation) -> tuple[str, ...]:
    """Collectives with their arguments and shapes, in the order in which they start."""
    return tuple(
        f"{call.op.split('.')[1]}({', '.join(_argument(arg, part) for arg in call.args)})"
        for part, call in _begun(c)
    )


def _begun(c: Compilation) -> Iterator[tuple[CompiledPart, ExternCall]]:
    """Collectives in the order in which they start, each with its part."""
    for part in c.parts:
        for step in part.schedule.steps:
            if isinstance(step, ExternCall) and step.effect is Effect.COLLECTIVE:
                yield part, step


def _group_size(call: ExternCall) -> int:
    """The group size, if it is an argument of the collective (gather, scatter); else 0."""
    name = call.op.split(".")[1].removesuffix("_coalesced")
    place = {"all_gather_into_tensor": 1, "reduce_scatter_tensor": 2}.get(name)
    size = call.args[place] if place is not None else 0
    return size if isinstance(size, int) else 0


def _argument(given: Any, part: Any) -> str:
    layout = getattr(given, "layout", None)
    if layout is None:
        return str(given)
    dtype = str(part.loops.buffers[given.buffer].dtype).removeprefix("torch.")
    return f"{dtype}[{', '.join(map(str, layout.size))}]"


def _row(what: str, values: Sequence[str], wide: int, columns: Sequence[int]) -> str:
    shown = "".join(f"{value:>{width}}" for value, width in zip(values, columns, strict=True))
    return f"{what:{wide}}{shown}"


def _kernels(c: Compilation) -> str:
    """The number of kernels, and the start of the hash of their texts."""
    texts = [str(kernel.code) for part in c.parts for kernel in part.kernels]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return f"{len(texts)} ({digest[:6]})"


def _libraries(c: Compilation) -> str:
    """The libraries that were chosen by measuring, and how often."""
    chosen = Counter(choice.chosen for part in c.parts for choice in part.libraries)
    return ", ".join(f"{name} {count}" for name, count in sorted(chosen.items())) or "none"


ASKED: dict[str, Callable[[Compilation], Any]] = {
    "graphs": lambda c: len(c.graphs),
    "kernels": _kernels,
    "libraries": _libraries,
    "traffic": lambda c: bytes_text(sum(p.schedule.after.bytes for p in c.parts)),
    "peak memory": lambda c: bytes_text(
        max((p.schedule.memory.peak_after for p in c.parts), default=0)
    ),
    "collectives": lambda c: len(_collectives(c)),
    "compile time": lambda c: duration(c.total_seconds),
}
"""Label → the function that computes the compared value."""
MEASURED = frozenset({"compile time"})
