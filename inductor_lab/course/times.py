"""How long each cell of each tutorial takes: `inductor-lab course times`.

Every tutorial runs in a separate kernel.  Wall time and processor time are reported; the latter
includes the compilers that a cell starts, and does not depend on other processes.
"""

from __future__ import annotations

import inspect
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.errors import LabError, MissingPackage
from inductor_lab.course.build import Cell, file_text, sources
from inductor_lab.course.scores import VARIABLE
from inductor_lab.course.source import Source

LIMIT = 20.0
"""Maximum seconds of a cell: readers do not wait longer."""
LONGEST_SHOWN = 5
PATIENCE = 600
"""Timeout in seconds of a cell on any machine."""

_WATCH = """
import json, os, time
{spent}
_begun, _cells = [spent()], []
def _before(info): _begun[0] = spent()
def _after(result): _cells.append([now - then for now, then in zip(spent(), _begun[0])])
get_ipython().events.register("pre_run_cell", _before)
get_ipython().events.register("post_run_cell", _after)
"""
_TELL = "print(json.dumps(_cells))"


@dataclass(frozen=True)
class CellTime:
    """A code cell: its number from 1, its first line, its wall time and processor time in
    seconds."""

    number: int
    line: str
    wall: float
    processor: float

    @property
    def seconds(self) -> float:
        """The cell's time without waiting for a busy processor."""
        return min(self.wall, self.processor)

    def __str__(self) -> str:
        slow = f"  over {LIMIT:.0f} s" if self.seconds > LIMIT else ""
        return f"{self.wall:7.1f} {self.processor:9.1f}   {self.number:3} {self.line[:60]}{slow}"


@dataclass(frozen=True)
class TutorialTimes:
    """All cells of one tutorial."""

    name: str
    cells: tuple[CellTime, ...]

    def __str__(self) -> str:
        walls = sum(cell.wall for cell in self.cells)
        processor = sum(cell.processor for cell in self.cells)
        longest = sorted(self.cells, key=lambda cell: -cell.wall)[:LONGEST_SHOWN]
        head = f"{walls:7.1f} {processor:9.1f}   {self.name}, {len(self.cells)} cells; the longest:"
        return "\n".join([head, *map(str, longest)])


def times(folder: Path, names: Sequence[str], tell: Callable[[str], None]) -> list[TutorialTimes]:
    """Run the tutorials whose names begin with one of `names` (all, if there is none), and report
    each when it ends.

    Raises LabError if a cell fails.
    """
    found = []
    tell("   wall processor   seconds, by cell")
    for source in sources(folder):
        if source.kind == "tutorial" and (not names or source.stem.startswith(tuple(names))):
            found.append(TutorialTimes(source.stem, tuple(run(source))))
            tell(str(found[-1]))
    return found


def spent() -> tuple[float, float]:
    """Wall time so far, and processor time of this process and its child processes."""
    used = os.times()
    processor = used.user + used.system + used.children_user + used.children_system
    return time.perf_counter(), processor


def run(source: Source) -> Iterator[CellTime]:
    """The cells of one tutorial, each with its time; raises LabError if one fails."""
    watching = _WATCH.format(spent=inspect.getsource(spent))  # imports nothing that is timed
    cells = [cell for cell in executed(source, watching, _TELL).cells if cell.cell_type == "code"]
    took = json.loads(cells[-1].outputs[0].text)
    # the first cell has one more message, the last one does not report its end
    for number, (cell, both) in enumerate(zip(cells[1:-1], took[1:], strict=True), 1):
        lines = [line for line in cell.source.splitlines() if line and line != "guess = None"]
        yield CellTime(number, lines[0] if lines else "", *both)


def executed(source: Source, before: str, after: str) -> Any:
    """The executed English notebook, with a cell before all others and one after them.

    Raises LabError if a cell fails.
    """
    try:
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError
    except ImportError as missing:
        raise MissingPackage("nbclient") from missing
    cells = [Cell(kind, text) for kind, text in source.cells("en", solved=True)]
    notebook = nbformat.reads(file_text(source, "en", cells), as_version=4)
    first, last = (nbformat.v4.new_code_cell(text) for text in (before, after))
    notebook.cells = [first, *notebook.cells, last]
    with tempfile.TemporaryDirectory(prefix="inductor_lab-") as scratch:
        environment = {VARIABLE: f"{scratch}/course.json"}
        try:
            client = NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3")
            client.execute(env=os.environ | environment)
        except CellExecutionError as failed:
            raise LabError(str(failed), source.stem, "mend the cell") from failed
    return notebook
