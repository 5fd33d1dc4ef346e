"""Strip-mining: a loop becomes a loop over strips, and a loop over the iterations of a strip.

    for i0 in 0 .. 10000:                for i0_block in 0 .. 10000 by 512:
        ...                       →          i0_end = min(i0_block + 512, 10000)
                                             for i0 in i0_block .. i0_end: ...

Inductor: `LoopLevel.tile` in `codegen/cpp.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from inductor_lab.compiler.codegen.tree.loop_tree import Bound, Loop, LoopKind, Minimum, Tree
from inductor_lab.compiler.ir.index import Axis, Index


def strip_mined(
    loop: Loop,
    width: int,
    inside: Callable[[Loop], Tree],
    kind: LoopKind | None = None,
    names: tuple[str, str] = ("", ""),
) -> Loop:
    """Strip-mine a loop: the result is a loop over strips of `width` iterations.

    `inside` takes the loop over one strip and returns the statements to run for it.  `kind` is the
    kind of the outer loop (default: unchanged).  `names` are the names of the strip's bounds.
    """
    name, size = loop.axis.name, loop.axis.size
    first, end = Axis(names[0] or f"{name}_block", size), Axis(names[1] or f"{name}_end", size)
    stop = Bound(end, Minimum(Index.of(first) + width, loop.stop))
    strip = replace(loop, begin=Index.of(first), end=Index.of(end))
    body = (stop, *inside(strip))
    return replace(loop, axis=first, kind=kind or loop.kind, body=body, step=width)
