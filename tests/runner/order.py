"""In which order `.ci/run` takes the parts of `make check`."""

from __future__ import annotations

from collections.abc import Sequence

from tests.runner.changes import changed_files, distance, git
from tests.runner.history import Memory
from tests.runner.parts import Part

NEAR = 1
"""A change concerns a part if the part holds a changed file, or if one of its files imports it."""

MISSED = 3
"""A part that so many runs have left out goes first."""


def in_order(parts: Sequence[Part], memory: Memory, since: str | None) -> list[Part]:
    """First what has waited too long, then what the change touches, then what has waited longest.

    Without a memory the number of commits decides where the last group begins: each commit begins
    with another part.
    """
    changed = changed_files(since or base(memory))
    turn = commits() % len(parts)
    rotated = [*parts[turn:], *parts[:turn]]
    return sorted(rotated, key=lambda part: rank(part, memory, distance(part, changed)))


def rank(part: Part, memory: Memory, steps: int) -> tuple[bool, int, int]:
    missed = memory.missed.get(part.name, 0)
    near = min(steps, NEAR + 1)
    return (missed < MISSED, near, -missed)


def base(memory: Memory) -> str:
    """The commit that was run before this one; the one before the last, where that is unknown."""
    kept = memory.commit
    known = kept and git("merge-base", kept, "HEAD") == [kept]
    return kept if known and kept not in git("rev-parse", "HEAD") else "HEAD~1"


def commits() -> int:
    count = git("rev-list", "--count", "HEAD")
    return int(count[0]) if count else 0
