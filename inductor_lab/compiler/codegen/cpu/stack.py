"""The stack space that the local arrays of a kernel may use in total.

On some systems, OpenMP threads have stacks of 1 MiB; OMP_STACKSIZE can make them smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from inductor_lab.compiler.codegen.tree.loop_tree import Local

STACK_BYTES = 512 * 1024


def fits_on_stack(arrays: Iterable[Local]) -> bool:
    """Do these local arrays fit on a thread's stack?"""
    return sum(array.dtype.itemsize * prod(array.shape) for array in arrays) <= STACK_BYTES
