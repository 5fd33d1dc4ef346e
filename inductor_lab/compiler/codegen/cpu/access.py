"""How a loop accesses memory."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_lab.compiler.codegen.tree.loop_tree import Loop, Store
from inductor_lab.compiler.ir.index import Axis, Index, hint, is_int

LINE = 16
"""Floats per cache line. A part starts at a line boundary, so that no vector crosses one."""

WHOLE_BLOCK = 64
"""Elements in a block of full cache lines: few enough to stay in registers."""


def is_contiguous(index: Index, axis: Axis) -> bool:
    """Is the access contiguous along `axis`?"""
    return index.is_affine and is_int(index.coefficient(axis), 1)


def fills_cache_lines(loop: Loop, stores: Sequence[Store]) -> bool:
    """Does each block of these stores fill full cache lines, with elements of at least 4 bytes?"""
    indices = [store.index - Index.of(loop.axis) for store in stores]
    steps = [loop.axis.size, *(i.constant for i in indices)]
    steps += [factor for index in indices for _, factor in index.terms]
    whole = all(isinstance(step, int) and step % LINE == 0 for step in steps)
    wide = all(store.value.dtype.itemsize >= 4 for store in stores)
    return whole and wide and hint(loop.axis.size) % WHOLE_BLOCK == 0
