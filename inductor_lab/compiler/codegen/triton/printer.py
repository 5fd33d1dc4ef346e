"""The loop tree as a Triton kernel, as a user would write it.

    for i0 < 8192:                     xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
      t0 = in0[i0]                 →   t0 = tl.load(in0 + xindex)
      out0[i0] = sin(t0)               tl.store(out0 + xindex, tl.sin(t0))

A row that fits is one block (`rindex`), read once however many loops of the tree visit it; a longer
one is a loop over blocks with block accumulators, which are reduced to a value a row after it.  A
mask is written only where a block can reach over the end.

`Kernel.launch` holds what a launch needs besides the arguments:

    constants   {"XBLOCK": 1024, ...}, compile-time parameters of the kernel
    num_warps   of one program
    xnumel      points of the outer loops (an int, or sympy over symbols); the grid is
                ceil(xnumel / XBLOCK), for a tile by ceil(ynumel / YBLOCK)
    ynumel      rows of a tile's second dimension, where there is one
    parts       of a combo: (points, XBLOCK) of each part, in place of `xnumel`; each part has
                ceil(points / XBLOCK) programs
    times       of `parts`: each is done so many times (for heads of attention, for columns of a
                product)
    num_stages  of loops whose loads are begun ahead, where it is not Triton's own number
    shared      (parts, words) where so many programs share a row: so many for each point; the last
                argument is int64 zeros, `words` for each point, by which they exchange results
    asserts     there, and True, where the kernel checks an index that it has loaded
    reach       with symbolic sizes: 32-bit indices (`INDEX`) are enough while none of these
                reaches 2**31

Inductor: `codegen/triton.py`, `TritonKernel`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.parameters import kernel_parameters, with_symbols
from inductor_lab.compiler.codegen.tree.build import build_tree
from inductor_lab.compiler.codegen.triton.blocks import (
    Blocks,
    blocks_of,
    index_type,
    needs_of_launch,
    reach,
    with_atomics,
)
from inductor_lab.compiler.codegen.triton.combo_kernel import combo_kernel
from inductor_lab.compiler.codegen.triton.matmul_kernel import Tile, product_in, product_kernel
from inductor_lab.compiler.codegen.triton.shared_rows import may_share
from inductor_lab.compiler.codegen.triton.statements import Printer
from inductor_lab.compiler.codegen.triton.triton_ops import TRITON_OPS
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group


def triton_kernel(
    group: Group,
    buffers: Mapping[str, Buffer],
    name: str,
    *,
    device: str = "cuda",
    ops: Mapping[str, str] = TRITON_OPS,
    blocks: Blocks | Tile | None = None,
) -> Kernel:
    """Print a fused group as a Triton kernel; `ops` is the table of operations to print with, and
    `blocks` are others than those that `blocks_of` or `tiles_of` chooses."""
    if group.combined:
        return combo_kernel(group, buffers, name, device, ops)
    if (product := product_in(group)) is not None:
        tile = blocks if isinstance(blocks, Tile) else None
        return product_kernel(product, group, buffers, name, device, ops, tile)
    assert not isinstance(blocks, Tile), "a tile is for a product"
    tree = build_tree(with_atomics(group, buffers), buffers)
    parameters = kernel_parameters(tree, buffers)
    blocks = blocks or blocks_of(tree, shared=may_share(device))
    reached = reach(parameters, buffers, blocks)
    parameters = with_symbols(parameters, reached)
    counted_in = index_type(reached)
    printer = Printer(name, parameters, blocks, ops, counted_in)
    code = printer.code()
    launch: dict[str, Any] = {"constants": blocks.constants, "num_warps": blocks.warps}
    launch["xnumel"] = blocks.xnumel
    if blocks.tiled is not None:
        launch["ynumel"] = blocks.tiled.size
    if blocks.shared is not None:
        launch["shared"] = (blocks.shared.parts, blocks.words)
    launch |= needs_of_launch(counted_in, reached, printer.asserts)
    return Kernel(name, "triton", device, code, parameters, group, buffers, launch)
