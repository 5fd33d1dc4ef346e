"""Two compilations of one function, compared: numbers, and a diff of the generated code."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inductor_lab.compiler.base.display import Shown
from inductor_lab.compiler.records import CompiledPart, Record
from inductor_lab.saved.documents import comparison_types
from inductor_lab.saved.documents.kinds import document
from inductor_lab.saved.documents.of_kernel import cost


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
    """Two compilations of one function, compared; made by `Compilation.compare`.

    `print` shows the numbers and a diff of the generated code; a notebook displays both.
    """

    before: Record
    after: Record

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """(label, before, after): kernels, passes, bytes, saved for backward, compile seconds."""
        return tuple(
            (name, tell(self.before), tell(self.after)) for name, tell in _MEASURES.items()
        )

    @property
    def parts(self) -> tuple[tuple[str, CompiledPart | None, CompiledPart | None], ...]:
        """(`g0.forward`, part before, part after); None if a compilation has no such part."""
        before, after = _parts(self.before), _parts(self.after)
        names = dict.fromkeys((*before, *after))
        return tuple((name, before.get(name), after.get(name)) for name in names)

    def __repr__(self) -> str:
        kernels = f"{self.before.after.kernels} and {self.after.after.kernels} kernels"
        return f"Comparison({self.before.name}: {kernels})"

    @property
    def diffs(self) -> Mapping[str, str]:
        """By part: the unified diff of the generated code; "" if it is equal."""
        found = {}
        for name, old, new in self.parts:
            lines = difflib.unified_diff(
                _code(old), _code(new), f"{name} before", f"{name} after", lineterm="", n=2
            )
            found[name] = "\n".join(lines)
        return found

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(comparison_types.Comparison(
            id="comparison",
            summary=repr(self),
            kind="comparison",
            name=self.before.name,
            before=cost(self.before.after),
            after=cost(self.after.after),
            numbers={what: [old, new] for what, old, new in self.rows},
            parts=[comparison_types.PartDifference(part=part, diff=diff)
                   for part, diff in self.diffs.items()],
        ))  # fmt: skip

    def __str__(self) -> str:
        width = max(len(cell) for row in self.rows for cell in row[:2])
        lines = [f"{what:{width}}  {old:>{width}} -> {new}" for what, old, new in self.rows]
        for diff in filter(None, self.diffs.values()):
            lines += ["", diff]
        return "\n".join(lines)


def _parts(compilation: Record) -> dict[str, CompiledPart]:
    return {
        f"g{number}.{part.name}": part
        for number, graph in enumerate(compilation.graphs)
        for part in graph.parts
    }


def _code(part: CompiledPart | None) -> list[str]:
    kernels = part.kernels if part is not None else ()
    return [line.text for kernel in kernels for line in kernel.code.lines]


def _kept(compilation: Record) -> int:
    """Bytes saved for the backward."""
    return sum(g.partition.cut_bytes for g in compilation.graphs if g.partition is not None)


def _peak(compilation: Record) -> int:
    return max((p.schedule.memory.peak_after for p in compilation.parts), default=0)


_MEASURES: Mapping[str, Callable[[Record], str]] = {
    "kernels": lambda c: f"{c.after.kernels:,}",
    "passes over memory": lambda c: f"{c.after.passes:,}",
    "bytes read": lambda c: f"{c.after.bytes_read:,}",
    "bytes written": lambda c: f"{c.after.bytes_written:,}",
    "flop": lambda c: f"{c.after.flops:,}",
    "peak of intermediates, bytes": lambda c: f"{_peak(c):,}",
    "kept for the backward, bytes": lambda c: f"{_kept(c):,}",
    "compile seconds": lambda c: f"{c.total_seconds:.2f}",
}
