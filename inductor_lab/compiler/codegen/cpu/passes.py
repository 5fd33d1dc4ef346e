"""The passes over a loop tree for the CPU, in order, and what runs them.

`options={"passes_off": [...]}` leaves some out, `passes_off="all"` every one that is not needed:
what is left is the simple tree that `codegen/tree/build.py` makes, and it is right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace

from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.compiler.codegen.cpu.accumulators import wide_lanes
from inductor_lab.compiler.codegen.cpu.assign_threads import lanes, threads
from inductor_lab.compiler.codegen.cpu.blocks import blocks
from inductor_lab.compiler.codegen.cpu.checks import checks
from inductor_lab.compiler.codegen.cpu.columns import columns
from inductor_lab.compiler.codegen.cpu.extreme_positions import search
from inductor_lab.compiler.codegen.cpu.extremes import extremes
from inductor_lab.compiler.codegen.cpu.facts import Facts, Pass
from inductor_lab.compiler.codegen.cpu.half_roundings import rounded_as_floats
from inductor_lab.compiler.codegen.cpu.loops import point_loops
from inductor_lab.compiler.codegen.cpu.peel_tail import tails
from inductor_lab.compiler.codegen.cpu.plan import CpuPlan, plan_of, tiled_axes, with_rows
from inductor_lab.compiler.codegen.cpu.prefetch import fetch_ahead
from inductor_lab.compiler.codegen.cpu.row_residency import rows, rows_in_results
from inductor_lab.compiler.codegen.cpu.scans import scans
from inductor_lab.compiler.codegen.cpu.split_loops import split
from inductor_lab.compiler.codegen.cpu.sums import sums
from inductor_lab.compiler.codegen.cpu.thread_parts import parts
from inductor_lab.compiler.codegen.cpu.tiles import tiles, transpose
from inductor_lab.compiler.codegen.cpu.transpose_rows import turned
from inductor_lab.compiler.codegen.cpu.unroll_rows import steps
from inductor_lab.compiler.codegen.cpu.windows import windows
from inductor_lab.compiler.codegen.kernel import Parameter
from inductor_lab.compiler.codegen.parameters import kernel_parameters, with_symbols
from inductor_lab.compiler.codegen.tree.build import full_tree
from inductor_lab.compiler.codegen.tree.inline_temps import join, numbered, tidy
from inductor_lab.compiler.codegen.tree.loop_tree import Tree
from inductor_lab.compiler.codegen.tree.tree_history import TreeStep
from inductor_lab.compiler.codegen.tree.visit import loads_in
from inductor_lab.compiler.ir.index import product
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group

OF_VALUES = (
    Pass("steps", "unroll short rows inside the steps of a part", steps),
    Pass("rows", "keep values that two loops of a row share in a local array", rows),
    Pass("results", "for long rows, keep shared values in the result buffer", rows_in_results),
    Pass("split", "split loops where a mask changes", split),
    Pass("windows", "reuse partial results of overlapping windows", windows),
    Pass("join", "inline single-use values", lambda tree, _: join(tree)),
    Pass("number", "renumber temporaries", lambda tree, _: numbered(tree), needed=True),
)
"""Their trees have a temp for each operation."""

OF_LOOPS = (
    Pass("floats", "keep 16-bit values in float32 between operations", rounded_as_floats),
    Pass("parts", "parallelize loops inside a point across threads", parts),
    Pass("sums", "compute long floating-point sums in blocks", sums, needed=True),
    Pass("search", "find the extreme value first, then its index", search),
    Pass("registers", "accumulate in several vector registers", wide_lanes),
    Pass("fetch", "prefetch the data of the next iterations", fetch_ahead),
    Pass("extremes", "compute float extremes with a separate NaN flag", extremes),
    Pass("scans", "compute scans block by block", scans),
    Pass("columns", "strip-mine columns: process a strip of columns row by row", columns),
    Pass("turned", "transpose short rows so that vector lanes are contiguous", turned),
    Pass("tiles", "tile transposed reads", tiles),
    Pass("transpose", "transpose each tile into a local array", transpose),
    Pass("blocks", "store results in blocks, with streaming stores and 16-bit conversion", blocks),
    Pass("tails", "process the end of a row as one masked vector", tails),
    Pass("checks", "check indices and divisors", checks, needed=True),
    Pass("threads", "parallelize the outer loops across threads", threads),
    Pass("lanes", "vectorize innermost loops", lanes),
)
"""They transform loops."""

PASSES = (
    Pass("cut", "split loops so that indices need no division", lambda tree, _: tree),
    *OF_VALUES,
    *OF_LOOPS,
)
OPTIONAL = frozenset(step.name for step in PASSES if not step.needed)
STREAMED_BYTES = 16_000_000
"""Of a result, from which on it is written past the caches: more than a core's share of the last
one.  Chosen, not measured."""


def switched_off(names: Collection[str]) -> frozenset[str]:
    """The passes that `options.passes_off` leaves out; raises BadOption for one that there is not.
    """
    BadOption.refuse_unknown("passes_off", names, (*sorted(OPTIONAL), "all"))
    return OPTIONAL if "all" in names else frozenset(names)


@dataclass(frozen=True)
class CpuTree:
    """The tree of a kernel as it is printed, and those before it: the simple one, and the result of
    each pass that changed it."""

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
    """The tree of a group (of no combo), made fast by the passes that are not `off`.

    `results` are buffers that no other step of the graph reads; a `team` of threads is there
    already in a combo.
    """
    built = with_rows(full_tree(group, buffers, cut="cut" not in off), off)
    simple = tidy(built)
    parameters = kernel_parameters(simple, buffers)
    plan = plan_of(simple, off)
    if team:
        plan = replace(plan, inner_threads=False, in_team=True)
    if "threads" in off:
        plan = replace(plan, threads=0)
    facts = Facts(
        plan,
        {p.buffer: p.name for p in parameters if p.buffer is not None},
        _streamed(simple, buffers, results),
        "tiles" not in off and bool(tiled_axes(point_loops(simple))),
    )
    made = [TreeStep("build", built)]
    for step in (*OF_VALUES, *OF_LOOPS):
        on = step.needed or step.name not in off
        if on and (tree := step.apply(made[-1].tree, facts)) is not made[-1].tree:
            made.append(TreeStep(step.name, tree))
    # a product of sizes may be of other parts: Abs(n//2) * Abs(n//2) is (n//2)**2
    return CpuTree(tuple(made), with_symbols(parameters, (plan.work,)), plan)


def _streamed(
    tree: Tree, buffers: Mapping[str, Buffer], results: Collection[str]
) -> frozenset[str]:
    """Results so large that they leave the caches before they are read."""
    read = {load.buffer for load in loads_in(tree)}
    made = {name: buffers[name] for name in results if name not in read}
    sizes = {name: product(b.layout.size) * b.dtype.itemsize for name, b in made.items()}
    return frozenset(n for n, b in sizes.items() if isinstance(b, int) and b >= STREAMED_BYTES)
