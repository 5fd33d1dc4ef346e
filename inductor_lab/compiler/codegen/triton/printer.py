"""Prints a loop tree as a Triton kernel, in the style of a handwritten one.

    for i0 < 8192:                     xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
      t0 = in0[i0]                 →   t0 = tl.load(in0 + xindex)
      out0[i0] = sin(t0)               tl.store(out0 + xindex, tl.sin(t0))

A row that fits is one block (`rindex`).  It is read once, even if several loops of the tree visit
it.  A longer row is a loop over blocks with block accumulators, which are reduced to one value per
row after the loop.  A mask is printed only if a block can reach beyond the end.

`Kernel.launch` has the launch settings:

    constants   {"XBLOCK": 1024, ...}, compile-time parameters of the kernel
    num_warps   warps per program
    xnumel      points of the outer loops (an int, or sympy over symbols); the grid is
                ceil(xnumel / XBLOCK), for a tile by ceil(ynumel / YBLOCK)
    ynumel      extent of the second dimension of a tile
    parts       for a combo: (points, XBLOCK) of each part, instead of `xnumel`; each part has
                ceil(points / XBLOCK) programs
    times       repetitions of `parts` (for the heads of attention, for the columns of a product)
    num_stages  pipelined iterations of loops, if different from Triton's default
    shared      (parts, words) if programs share rows: `parts` programs and `words` int64 zeros per
                point; the zeros are the last argument, through which programs exchange results
    asserts     True if the kernel checks a loaded index
    reach       for symbolic sizes: 32-bit indices (`INDEX`) are sufficient if all of these are
                below 2**31

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
    launch_checks,
    reach,
    with_atomics,
)
from inductor_lab.compiler.codegen.triton.combo_kernel import combo_kernel
from inductor_lab.compiler.codegen.triton.matmul_kernel import Tile, product_in, product_kernel
from inductor_lab.compiler.codegen.triton.shared_rows import can_share_rows
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
    """Print a fused group as a Triton kernel.

    `ops` is the table of operations.  `blocks` replaces the choice of `blocks_of` or `tiles_of`.
    """
    if group.combined:
        return combo_kernel(group, buffers, name, device, ops)
    if (product := product_in(group)) is not None:
        tile = blocks if isinstance(blocks, Tile) else None
        return product_kernel(product, group, buffers, name, device, ops, tile)
    assert not isinstance(blocks, Tile), "only a matrix product takes a Tile"
    tree = build_tree(with_atomics(group, buffers), buffers)
    parameters = kernel_parameters(tree, buffers)
    blocks = blocks or blocks_of(tree, shared=can_share_rows(device))
    reached = reach(parameters, buffers, blocks)
    parameters = with_symbols(parameters, reached)
    index = index_type(reached)
    printer = Printer(name, parameters, blocks, ops, index)
    code = printer.code()
    launch: dict[str, Any] = {"constants": blocks.constants, "num_warps": blocks.warps}
    launch["xnumel"] = blocks.xnumel
    if blocks.tiled is not None:
        launch["ynumel"] = blocks.tiled.size
    if blocks.shared is not None:
        launch["shared"] = (blocks.shared.parts, blocks.words)
    launch |= launch_checks(index, reached, printer.asserts)
    return Kernel(name, "triton", device, code, parameters, group, buffers, launch)
