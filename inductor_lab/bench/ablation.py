"""Measure the effect of each pass: run the inspected call with one pass disabled at a time.

`bytes` counts all loads from buffers and stores to buffers in the loops, including cache hits.
Local arrays do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inductor_lab.bench.jobs import Job
from inductor_lab.bench.kernels import ready
from inductor_lab.bench.timing import compare
from inductor_lab.bench.timings import Timings
from inductor_lab.compiler.accelerators import LISTS
from inductor_lab.compiler.base.display import Shown, bytes_text, counted
from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.base.passes import optional
from inductor_lab.compiler.codegen.tree.loop_tree import Local, Loop, Store, Tree
from inductor_lab.compiler.codegen.tree.visit import expressions, walk
from inductor_lab.compiler.ir.expr import Load
from inductor_lab.compiler.ir.index import hint
from inductor_lab.compiler.records import AnyRecord, CompiledPart
from inductor_lab.compiler.step_time import duration
from inductor_lab.debug.explore.what_if import call_of, recompile
from inductor_lab.notebook.columns import last_column

COLUMNS = ("without", ">time", ">slowdown", ">loads and stores", "description")
HOW = "slowdown: the median of per-round ratios, not the ratio of two medians"
ABOUT = {step.name: step.what for table in LISTS.values() for step in table.values()}
ABOUT["all"] = "the simplest form at each level"


@dataclass(frozen=True)
class Ablated:
    """The call without one pass: seconds, slowdown compared with all passes, bytes."""

    name: str
    seconds: float
    ratio: float
    bytes: int

    @property
    def what(self) -> str:
        return ABOUT.get(self.name, "all passes enabled")

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row in a table, as text."""
        return (
            self.name, duration(self.seconds), f"{self.ratio:.2f}", bytes_text(self.bytes),
            self.what,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Ablation(Shown):
    """One row for each pass that changes the code; the first row has all passes, the last none.

    timings  the samples of each row, by its name
    """

    rows: tuple[Ablated, ...]
    timings: Timings

    def __repr__(self) -> str:
        return f"Ablation({counted(len(self.rows) - 2, 'pass')})"

    def __str__(self) -> str:
        cells = [tuple(column.removeprefix(">") for column in COLUMNS)]
        cells += [row.cells for row in self.rows]
        widths = [max(len(line[k]) for line in cells) for k in range(4)]
        lines = [
            last_column(
                f"{line[0]:<{widths[0]}}  "
                + "  ".join(f"{line[k]:>{widths[k]}}" for k in (1, 2, 3))
                + "  ",
                line[4],
            )
            for line in cells
        ]
        return "\n".join([*lines, HOW])


def ablation(compilation: AnyRecord, seconds: float = 2.0) -> Ablation:
    """Implements `Compilation.ablation`."""
    call = call_of(compilation)
    if compilation.target is not None:
        raise NotRunnable("it was compiled for another machine", todo="inspect it without a target")
    with ready(compilation) as (compilation, _, run):
        backward = run.backward
    used = {name for part in compilation.parts for name in part.passes}
    names = [name for table in LISTS.values() for name in table if name in used & optional(table)]
    made = {"nothing": compilation}
    for name in (*names, "all"):
        made[name] = recompile(compilation, passes_off=[name])
    same = [name for name in names if _code(made[name]) == _code(compilation)]
    for name in same:
        del made[name]
    jobs = {}
    for name, c in made.items():
        assert c.compiled is not None, "it was compiled in this process"
        jobs[name] = Job(c.compiled, call.args, call.kwargs, backward)
    times: Timings = compare(jobs, seconds=seconds)
    return Ablation(
        tuple(
            Ablated(
                name,
                times.median_ms(name) / 1e3,
                times.ratio(name, "nothing"),
                sum(map(bytes_of, c.parts)),
            )
            for name, c in made.items()
        ),
        times,
    )


def _code(compilation: AnyRecord) -> list[str]:
    kernels = [str(kernel.code) for part in compilation.parts for kernel in part.kernels]
    return [*kernels, *(str(part.host.code) for part in compilation.parts)]


def bytes_of(part: CompiledPart) -> int:
    """The bytes that the C++ kernels of a part load and store in one call."""
    trees = {trees.kernel: trees for trees in reversed(part.trees)}
    total = 0
    for kernel in part.kernels:
        if kernel.name in trees:
            numbered = [step for step in trees[kernel.name].steps if step.name in _BEFORE_BLOCKS]
            total += tree_bytes(numbered[-1].tree)
    return total


_BEFORE_BLOCKS = {
    "build", "cut", "short_rows", "rows", "results", "split", "windows", "join", "number",
}  # fmt: skip
"""The passes after which every loop still runs all its iterations, so that counting is exact."""


def tree_bytes(tree: Tree) -> int:
    """Bytes that a tree of complete loops loads from buffers and stores to buffers."""
    local = {stmt.name for stmt in walk(tree) if isinstance(stmt, Local)}

    def count(body: Tree, turns: int) -> int:
        total = 0
        for stmt in body:
            values = [node for value in expressions(stmt) for node in value.walk()]
            moved: list[Any] = [n for n in values if isinstance(n, Load) and n.buffer not in local]
            total += turns * sum(load.dtype.itemsize for load in moved)
            if isinstance(stmt, Store) and stmt.buffer not in local:
                total += turns * stmt.value.dtype.itemsize
            if isinstance(stmt, Loop):
                total += count(stmt.body, turns * hint(stmt.axis.size))
            elif hasattr(stmt, "body"):
                total += count(stmt.body, turns)
        return total

    return count(tree, 1)
