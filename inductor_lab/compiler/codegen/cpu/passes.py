"""The passes over a loop tree for the CPU, in order, and what runs them.

`options={"passes_off": [...]}` leaves some out, `passes_off="all"` every one that is not needed:
the simple tree that `codegen/tree/build.py` makes is left, and it is correct.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace

from inductor_lab.compiler.base.passes import Later, Pass, apply_passes, table_of
from inductor_lab.compiler.codegen.cpu.checks import checks
from inductor_lab.compiler.codegen.cpu.compiler_workarounds import keep_rolled, keep_rounding
from inductor_lab.compiler.codegen.cpu.facts import Facts, Shape
from inductor_lab.compiler.codegen.cpu.loops import point_loops
from inductor_lab.compiler.codegen.cpu.plan import (
    CpuPlan,
    Means,
    loop_over_short_rows,
    plan_of,
    tiled_axes,
)
from inductor_lab.compiler.codegen.cpu.sums import sums
from inductor_lab.compiler.codegen.kernel import Parameter
from inductor_lab.compiler.codegen.parameters import kernel_parameters, with_symbols
from inductor_lab.compiler.codegen.tree.build import full_tree
from inductor_lab.compiler.codegen.tree.inline_temps import inline_single_use, renumber, tidy
from inductor_lab.compiler.codegen.tree.loop_tree import Tree
from inductor_lab.compiler.codegen.tree.tree_history import TreeStep
from inductor_lab.compiler.codegen.tree.visit import loads_in
from inductor_lab.compiler.ir.index import product
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group


def _of(file: str, function: str) -> Later:
    """A pass of this folder; its file is loaded when it first runs."""
    return Later(f"{__package__}.{file}", function)


OF_SHAPE = (
    Pass("cut", "split loops so that indices need no division",
         _of("cut_loops", "split_divided_loops")),
    Pass("short_rows", "loop over the elements of short rows one by one",
         lambda tree, shape: loop_over_short_rows(tree, shape.means)),
)  # fmt: skip
"""Passes that choose the loops; the plan is computed after them."""

OF_VALUES = (
    Pass("steps", "unroll short rows inside the steps of a part",
         _of("unroll_rows", "unroll_rows")),
    Pass("rows", "keep values that two loops of a row share in a local array",
         _of("row_residency", "keep_rows")),
    Pass("results", "for long rows, keep shared values in the result buffer",
         _of("row_residency", "keep_rows_in_results")),
    Pass("split", "split loops where a mask changes", _of("split_loops", "split")),
    Pass("windows", "reuse partial results of overlapping windows", _of("windows", "windows")),
    Pass("join", "inline single-use values", lambda tree, _: inline_single_use(tree)),
    Pass("number", "renumber temporaries", lambda tree, _: renumber(tree), needed=True),
)  # fmt: skip
"""Passes over trees that have one temp per operation."""

OF_LOOPS = (
    Pass("floats", "keep 16-bit values in float32 between operations",
         _of("half_roundings", "keep_floats")),
    Pass("parts", "parallelize loops inside a point across threads",
         _of("thread_parts", "split_into_parts")),
    Pass("sums", "compute long floating-point sums in blocks", sums, needed=True),
    Pass("search", "find the extreme value first, then its index",
         _of("extreme_positions", "find_extreme_positions")),
    Pass("registers", "accumulate in several vector registers", _of("accumulators", "widen_sums")),
    Pass("fetch", "prefetch the data of the next iterations", _of("prefetch", "fetch_ahead")),
    Pass("extremes", "compute float extremes with a separate NaN flag",
         _of("extremes", "extremes")),
    Pass("scans", "compute scans block by block", _of("scans", "scans")),
    Pass("columns", "strip-mine columns: process a strip of columns row by row",
         _of("columns", "columns")),
    Pass("turned", "transpose short rows so that vector lanes are contiguous",
         _of("transpose_rows", "transpose_rows")),
    Pass("tiles", "tile transposed reads", _of("tiles", "tiles")),
    Pass("transpose", "transpose each tile into a local array", _of("tiles", "transpose")),
    Pass("blocks", "store results in blocks, with streaming stores and 16-bit conversion",
         _of("blocks", "blocks")),
    Pass("tails", "process the end of a row as one masked vector", _of("peel_tail", "peel_tails")),
    Pass("checks", "check indices and divisors", checks, needed=True),
    Pass("threads", "parallelize the outer loops across threads",
         _of("assign_threads", "assign_threads")),
    Pass("lanes", "vectorize innermost loops", _of("assign_threads", "assign_lanes")),
)  # fmt: skip
"""Passes that transform loops."""

WORKAROUNDS = (
    Pass("keep_rolled", "mark loops that a compiler would unroll wrongly", keep_rolled,
         needed=True),
    Pass("keep_rounding", "mark loops where a compiler would round differently", keep_rounding,
         needed=True),
)  # fmt: skip
"""Workarounds for bugs of C++ compilers."""

SHAPE = frozenset(step.name for step in OF_SHAPE)
PASSES = table_of(*OF_SHAPE, *OF_VALUES, *OF_LOOPS, *WORKAROUNDS)
STREAMED_BYTES = 16_000_000
"""Results of at least this size use streaming stores: more than a core's share of the last-level
cache.  Chosen, not measured."""


@dataclass(frozen=True)
class CpuTree:
    """The trees of a kernel: the simple tree, and the result of each pass that changed it.

    The last tree is printed.
    """

    steps: tuple[TreeStep, ...]
    parameters: tuple[Parameter, ...]
    plan: CpuPlan

    @property
    def tree(self) -> Tree:
        return self.steps[-1].tree


def cpu_tree(
    group: Group,
    buffers: Mapping[str, Buffer],
    *,
    results: Collection[str] = (),
    off: Set[str] = frozenset(),
    team: bool = False,
) -> CpuTree:
    """The tree of a group (not a combo), after the passes that are not `off`.

    `results` are buffers that no other step of the graph reads.  In a combo, a `team` of threads
    already runs the kernel.
    """
    steps = [TreeStep("build", full_tree(group, buffers, cut=False))]

    def changed(name: str, tree: Tree) -> None:
        steps.append(TreeStep(name, tree))

    means = _means(off)
    shape = Shape(group, buffers, means)
    built = apply_passes(_of_shape(), steps[0].tree, shape, off, changed)
    simple = tidy(built)
    parameters = kernel_parameters(simple, buffers)
    plan = plan_of(simple, means)
    if team:
        plan = replace(plan, inner_threads=False, in_team=True)
    facts = Facts(
        plan,
        {p.buffer: p.name for p in parameters if p.buffer is not None},
        _streamed(simple, buffers, results),
        means.tiles and bool(tiled_axes(point_loops(simple))),
    )
    apply_passes(_after_shape(), built, facts, off, changed)
    # the product of sizes may have other symbolic parts: Abs(n//2) * Abs(n//2) is (n//2)**2
    return CpuTree(tuple(steps), with_symbols(parameters, (plan.work,)), plan)


def _of_shape() -> list[Pass]:
    return [step for name, step in PASSES.items() if name in SHAPE]


def _after_shape() -> list[Pass]:
    return [step for name, step in PASSES.items() if name not in SHAPE]


def _means(off: Set[str]) -> Means:
    """The means that the enabled passes provide."""
    on = PASSES.keys() - off
    return Means(
        columns="columns" in on,
        transposed_rows="turned" in on,
        threads="threads" in on,
        inner_threads="parts" in on,
        tiles="tiles" in on,
    )


def _streamed(
    tree: Tree, buffers: Mapping[str, Buffer], results: Collection[str]
) -> frozenset[str]:
    """Results that are so large that they are evicted from the caches before they are read."""
    read = {load.buffer for load in loads_in(tree)}
    made = {name: buffers[name] for name in results if name not in read}
    sizes = {name: product(b.layout.size) * b.dtype.itemsize for name, b in made.items()}
    return frozenset(n for n, b in sizes.items() if isinstance(b, int) and b >= STREAMED_BYTES)
