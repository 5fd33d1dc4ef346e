"""The number of attempts of a family."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.faults.outcome import Tried

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """`short` is the form in `make check`; random choices come from `seed`; `folder` is empty."""

    short: bool
    seed: int
    folder: Path

    def random(self) -> random.Random:
        return random.Random(self.seed)

    def times(self, long: int, short: int) -> int:
        return short if self.short else long

    def some(self, every: list[T], short: int) -> list[T]:
        """All, or in the short form a few that the seed chooses."""
        if not self.short or len(every) <= short:
            return every
        return self.random().sample(every, short)

    def place(self, name: str) -> Path:
        """A new folder."""
        path = self.folder / name
        path.mkdir(mode=0o700)
        return path


Family = Callable[[Plan], Iterator[Tried]]
