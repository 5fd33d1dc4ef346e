"""A complete compiler in less than 1,000 lines: `torch.compile(f, backend="inductor_lab_mini")`.

    from inductor_lab import mini
    graphs = mini.inspect(f, x)     # compile f, run it once, keep every stage
    print(graphs[0].parts[0].program)

Read the files in this order.  Each one starts with what goes in and what comes out.

    pipeline.py    the stages in order
    autograd.py    joint graph        → forward and backward graphs
    decompose.py   operators          → simpler operators
    lower.py       FX graph           → loops, one nest for each operator
    loops.py       the loops: their types, their text, their interpreter
    fuse.py        loops              → fewer loops, in groups
    memory.py      groups             → a place for each buffer
    cpp.py         groups             → C++
    host.py        plan and kernels   → a Python function

Sizes are numbers here: a graph with symbolic sizes is compiled once for each set of sizes.  Loops
run on a CPU; everything else is a call of ATen.
"""

from inductor_lab.mini.pipeline import Graph, Part, inductor_lab_mini, inspect

__all__ = ["Graph", "Part", "inductor_lab_mini", "inspect"]


# What the full compiler does differently
#
# - inductor_lab/__init__.py: imports each name when it is first used, so that the import is quick.
# - compiler/ is 30 times as long; docs/architecture.md describes its parts.
