"""All graph breaks of a program, each once, and one file with them for a bug report."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.display import Shown, counted
from inductor_lab.compiler.capture.capture import GraphBreak
from inductor_lab.compiler.capture.fx_graph import Span
from inductor_lab.compiler.torch_door.torch_types import VERSION
from inductor_lab.saved.documents import of_compile, tool_types
from inductor_lab.saved.documents.kinds import document


@dataclass(frozen=True, eq=False)
class GraphBreaks(Shown):
    """The graph breaks of a program.

    breaks        each once, in the order in which they were found
    compile_ids   for each: the compilations that it stopped
    torch_version the version that reported them
    """

    breaks: tuple[GraphBreak, ...]
    compile_ids: tuple[tuple[str, ...], ...]
    torch_version: str = VERSION

    @staticmethod
    def of(found: Iterable[GraphBreak], torch_version: str = "") -> GraphBreaks:
        """Graph breaks of several compilations; equal reasons at one line are one break."""
        by_place: dict[tuple[str, Span | None], list[GraphBreak]] = {}
        for each in found:
            by_place.setdefault((each.reason, each.span), []).append(each)
        first = tuple(same[0] for same in by_place.values())
        ids = (tuple(dict.fromkeys(one.compile_id for one in same)) for same in by_place.values())
        return GraphBreaks(first, tuple(ids), torch_version or VERSION)

    def __len__(self) -> int:
        return len(self.breaks)

    def __iter__(self) -> Iterator[GraphBreak]:
        return iter(self.breaks)

    def __repr__(self) -> str:
        return counted(len(self), "graph break")

    def __str__(self) -> str:
        return "\n".join([repr(self), *self._lines()])

    def _lines(self) -> Iterator[str]:
        for number, (each, ids) in enumerate(zip(self.breaks, self.compile_ids, strict=True), 1):
            first, *more = str(each).removeprefix("graph break: ").split("\n")
            yield f"{number}. {first}  ({', '.join(ids)})"
            yield from (f"  {line}" for line in more)

    def report(self) -> str:
        """The text of a bug report: versions, and each break with its stack."""
        lines = [f"torch {self.torch_version}, Python {platform.python_version()}, "
                 f"{platform.platform()}", repr(self)]  # fmt: skip
        listed = str(self).split("\n")[1:]
        stacks = iter(self.breaks)
        for line in listed:
            if line[:1].isdigit():
                each = next(stacks)
                lines += ["", line, *(f"    called from {span}  {span.code}" for span
                                      in each.user_stack[:-1])]  # fmt: skip
            else:
                lines.append(line)
        return "\n".join(lines) + "\n"

    def write(self, path: str | Path) -> Path:
        """Write `report()` to a file."""
        target = Path(path)
        target.write_text(self.report(), encoding="utf-8")
        return target

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON (docs/json.md)."""
        return document(tool_types.GraphBreaks(
            id="breaks", summary=repr(self), kind="graph_breaks", torch_version=self.torch_version,
            breaks=[of_compile.graph_break(each, f"break:{number}")
                    for number, each in enumerate(self.breaks)],
            compile_ids=[list(ids) for ids in self.compile_ids],
        ))  # fmt: skip
