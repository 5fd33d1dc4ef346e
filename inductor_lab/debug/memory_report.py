"""The memory plans of a compile as one result: what is allocated, reused, and kept.

```
f: peak 12.3 kB, 4.2 kB kept for the backward
g0.forward  memory peak: 20.6 kB without fusion and reuse -> 12.3 kB
  buf5 reuses the storage of buf3 in place
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inductor_lab.compiler.base.display import Documented, bytes_text
from inductor_lab.compiler.records import CompiledPart, Record
from inductor_lab.compiler.schedule.text import memory_lines
from inductor_lab.saved.documents import of_compile
from inductor_lab.saved.documents.command_types import Memory
from inductor_lab.saved.documents.kinds import document


@dataclass(frozen=True, eq=False, repr=False)
class MemoryReport(Documented):
    """The memory plan of each part of a compilation."""

    compilation: Record

    @property
    def parts(self) -> Iterator[tuple[str, CompiledPart]]:
        """The parts by name (`g0.forward`)."""
        for number, graph in enumerate(self.compilation.graphs):
            yield from ((f"g{number}.{part.name}", part) for part in graph.parts)

    @property
    def peak_bytes(self) -> int:
        """The largest peak of any part."""
        return max((part.schedule.memory.peak_after for _, part in self.parts), default=0)

    @property
    def kept_bytes(self) -> int:
        """Bytes kept for the backward."""
        return sum(g.partition.cut_bytes for g in self.compilation.graphs if g.partition)

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        called_from = self.compilation.source.called_from
        return document(Memory(
            id="memory",
            summary=repr(self),
            kind="memory",
            name=self.compilation.name,
            peak_bytes=self.peak_bytes,
            kept_bytes=self.kept_bytes,
            plans=[of_compile.memory(part, of_compile.sources_of(part, called_from), f"{name}.")
                   for name, part in self.parts],
        ))  # fmt: skip

    def __repr__(self) -> str:
        peak, kept = bytes_text(self.peak_bytes), bytes_text(self.kept_bytes)
        return f"{self.compilation.name}: peak {peak}, {kept} kept for the backward"

    def __str__(self) -> str:
        lines = [repr(self)]
        for name, part in self.parts:
            first, *more = memory_lines(part.schedule.memory)
            lines += [f"{name}  {first}", *more]
        return "\n".join(lines)
