"""Rows that a GPU keeps in registers or caches, because a later loop visits them again.

    mean[c] = (sum over r of x[c, r]) / n
    squares[c] = sum over r of (x[c, r] - mean[c])²           reads the rows of x again
    y[c, r] = (x[c, r] - mean[c]) * scale[c]                  and again

In one kernel the rows stay in registers or in caches (`codegen/triton/shared_rows.py`), and x is
read once.  Reductions of such rows are therefore not split.  Other long rows are split
(`split_reductions.py`, `lower/ops/variance.py`, `split_softmax.py`), but then each kernel reads the
rows again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod

import torch

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.ir.expr import Load
from inductor_lab.compiler.ir.gpu_sizes import EXCHANGED, LONGEST_HELD, LONGEST_SHARED, WINDOW
from inductor_lab.compiler.ir.index import Size, gathered_in, hint, is_int, product
from inductor_lab.compiler.ir.program import (
    Buffer,
    ExternCall,
    LoopProgram,
    Nest,
    Pointwise,
    Reduction,
    read_by,
    views_in,
)

ENOUGH_PROGRAMS = 128
"""About the number of multiprocessors: more programs fill a GPU without a split.  Chosen for an
H200 with 132 multiprocessors, as the sizes in `split_reductions.py`; not measured one by one."""

FEWEST, ALIGNED = 32, 8
"""Rows that are kept if there are fewer than `ENOUGH_PROGRAMS`: at least so many, whose length is a
multiple of 16 bytes of bfloat16, so that programs can share them."""

UNKNOWN = 1 << 20
"""The hint for a symbolic size."""


def on_gpu(device: str, options: Options) -> bool:
    """Will a GPU run the computation?  Triton's interpreter runs one program at a time."""
    return device != "cpu" or options.target is not None


def rows_fit(rows: Size, length: Size) -> bool:
    """Can a GPU keep rows of this length, and are there enough rows to fill it?"""
    if not (isinstance(rows, int) and isinstance(length, int)):
        return False
    alone = rows >= ENOUGH_PROGRAMS or (rows >= FEWEST and length % ALIGNED == 0)
    enough = rows * length >= ENOUGH_PROGRAMS * LONGEST_HELD
    return LONGEST_HELD < length <= LONGEST_SHARED and alone and enough


def kept_rows(program: LoopProgram, options: Options) -> Iterator[tuple[Reduction, Nest]]:
    """Each reduction of rows that a GPU keeps, with each nest that visits all of its rows again and
    needs its result to do so."""
    long = {
        nest.buffer
        for nest in program.nests
        if isinstance(nest, Reduction)
        and on_gpu(program.buffers[nest.buffer].device, options)
        and _may_be_kept(nest, program.buffers)
    }
    if not long:
        return
    whole = _read_directly(program)
    sources: dict[str, frozenset[str]] = {}
    windows: set[str] = set()
    kept: dict[str, tuple[Reduction, frozenset[str]]] = {}
    for nest in program.nests:
        read = frozenset[str]().union(*(sources.get(name, {name}) for name in read_by(nest)))
        in_windows = _reads_windows(nest) or not windows.isdisjoint(read_by(nest))
        if isinstance(nest, Pointwise):
            sources[nest.buffer] = read
            windows |= {nest.buffer} if in_windows else set()
        if in_windows:
            continue
        if not isinstance(nest, Pointwise) or nest.buffer in whole:
            for reduced, of_rows in (kept[name] for name in read & kept.keys()):
                size = volume(reduced)
                again = (program.buffers[name].layout.size for name in read & of_rows)
                if volume(nest) == size and any(numel(shape) >= size for shape in again):
                    yield reduced, nest
        if isinstance(nest, Reduction) and nest.buffer in long:
            kept[nest.buffer] = nest, read


def _reads_windows(nest: Nest) -> bool:
    """Does it read a buffer at so many places that one row needs too many registers?"""
    places = {(x.buffer, x.index) for x in nest.body.loads()}
    return max(Counter(buffer for buffer, _ in places).values(), default=0) >= WINDOW


def _may_be_kept(nest: Reduction, buffers: Mapping[str, Buffer]) -> bool:
    rows, length = (product(axis.size for axis in axes) for axes in (nest.axes, nest.reduce_axes))
    exchanged = nest.kind in EXCHANGED and nest.body.dtype == torch.float32
    return exchanged and rows_fit(rows, length) and not favours_columns(nest, buffers)


def volume(nest: Nest) -> int:
    """The number of evaluations of its body."""
    return numel(axis.size for axis in (*nest.axes, *nest.reduce_axes))


def numel(sizes: Iterable[Size]) -> int:
    """The product of sizes, symbols hinted."""
    return prod(hint(size, UNKNOWN) for size in sizes)


def favours_columns(nest: Reduction, buffers: Mapping[str, Buffer]) -> bool:
    """Are elements that are adjacent in memory mostly reduced to different results?"""
    votes = 0
    for load in nest.body.loads():
        flat = buffers[load.buffer].layout.element(load.index)
        votes += any(is_int(flat.coefficient(axis), 1) for axis in nest.axes)
        votes -= any(is_int(flat.coefficient(axis), 1) for axis in nest.reduce_axes)
    return votes > 0


def _read_directly(program: LoopProgram) -> set[str]:
    """Buffers that some step reads at other than loaded positions."""
    makers = {step.buffer: step for step in program.nests}
    waiting = [view.buffer for view in views_in(program.outputs)]
    for step in program.steps:
        if isinstance(step, ExternCall):
            waiting += read_by(step)
        elif not isinstance(step, Pointwise):
            waiting += _read_at_axes(step)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        maker = makers.get(name)
        if isinstance(maker, Pointwise) and name not in found:
            waiting += _read_at_axes(maker)
        found.add(name)
    return found


def _read_at_axes(nest: Nest) -> list[str]:
    loads = (node for root in nest.roots for node in root.walk() if isinstance(node, Load))
    return [x.buffer for x in loads if not any(any(gathered_in(i)) for i in x.index)]
