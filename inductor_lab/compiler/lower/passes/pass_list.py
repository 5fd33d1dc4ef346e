"""The passes over a loop program, in order.

`lower/graph.py` makes the simplest program: a nest or a call for each operator.

    keep_checks        x[rows[i0]], of which only one is read  →  all rows are checked
    dead_steps         buf0 = sin(x), which is never read      →  nothing
    split_softmax      m = max(x); s = sum(exp(x - m))         →  both in one pass over x
    split_reductions   a sum of 16777216 elements              →  512 sums of parts, and their sum
    in_place           buf0 = c; buf1 = buf0, buf1[3] = x      →  c[3] = x
    retarget           buffers on the CPU                      →  on the GPU of `target`

Inductor: `GraphLowering.finalize`, `ir.py`, `fx_passes/reinplace.py`.
"""

from __future__ import annotations

from inductor_lab.compiler.base.passes import Later, Pass, table_of
from inductor_lab.compiler.lower.passes.dead_steps import dead_steps, keep_checks
from inductor_lab.compiler.lower.retarget import retarget

PASSES = table_of(
    Pass("keep_checks", "keep the checks of steps that are removed", keep_checks, needed=True),
    Pass("dead_steps", "remove steps that no output needs", dead_steps),
    Pass("split_softmax", "compute a long softmax in parts, with one pass over the data",
         Later(f"{__package__}.split_softmax", "softmax_from_parts")),
    Pass("split_reductions", "split long reductions into parts that run in parallel",
         Later(f"{__package__}.split_reductions", "split_reductions")),
    Pass("in_place", "write to parts of a tensor without a copy",
         Later(f"{__package__}.in_place", "in_place")),
    Pass("retarget", "move the program to the device that it is compiled for",
         lambda program, facts: retarget(program, facts.options.target), needed=True),
)  # fmt: skip
