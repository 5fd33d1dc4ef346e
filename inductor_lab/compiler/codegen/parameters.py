"""The parameters of a kernel: inputs, outputs, and the symbols in its loops.

Inductor: `KernelArgs` in `codegen/common.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sympy

from inductor_lab.compiler.codegen.kernel import Parameter
from inductor_lab.compiler.codegen.tree.loop_tree import Local, Loop, Stmt, Store
from inductor_lab.compiler.codegen.tree.visit import nodes_in, places, walk
from inductor_lab.compiler.ir.expr import Expr, Load, SizeValue
from inductor_lab.compiler.ir.index import Size, may_overflow, size_arguments, sizes_in
from inductor_lab.compiler.ir.program import Buffer, sizes_of


def kernel_parameters(
    tree: tuple[Stmt, ...], buffers: Mapping[str, Buffer]
) -> tuple[Parameter, ...]:
    """`in0, in1, ..` in order of first use, then `out0, ..`, then `ks0, ..` by symbol name.

    A buffer that the kernel both writes and reads is an output.
    """
    nodes = list(nodes_in(tree))
    own = {s.name for s in walk(tree) if isinstance(s, Local)}
    written = {s.buffer: None for s in walk(tree) if isinstance(s, Store) and s.buffer not in own}
    loads = (node.buffer for node in nodes if isinstance(node, Load))
    read = {buffer: None for buffer in loads if buffer not in written and buffer not in own}
    ins = [Parameter(f"in{k}", "in", b, buffers[b].dtype) for k, b in enumerate(read)]
    outs = [Parameter(f"out{k}", "out", b, buffers[b].dtype) for k, b in enumerate(written)]
    numbers = (n.size for n in nodes if isinstance(n, SizeValue) and may_overflow(n.size))
    return with_symbols((*ins, *outs), _sizes(tree, nodes), numbers)


def with_lengths(parameters: tuple[Parameter, ...], wanted: bool = True) -> tuple[Parameter, ...]:
    """If `wanted`, mark the buffers so that the kernel checks their bounds."""
    return tuple(replace(p, checked=wanted and p.buffer is not None) for p in parameters)


def with_symbols(
    parameters: tuple[Parameter, ...], sizes: Iterable[Size], numbers: Iterable[Any] = ()
) -> tuple[Parameter, ...]:
    """Append the symbols in `sizes` and the `numbers` that are not parameters yet."""
    known = {p.symbol for p in parameters if p.symbol is not None}
    parts = {part for s in sizes if isinstance(s, sympy.Expr) for part in size_arguments(s)}
    new = enumerate(sorted(parts.union(numbers) - known, key=str), start=len(known))
    return (*parameters, *(Parameter(f"ks{k}", "symbol", symbol=part) for k, part in new))


def _sizes(tree: tuple[Stmt, ...], nodes: Iterable[Expr]) -> Iterator[Size]:
    """Every size that the text will contain; `nodes` are the nodes of the tree's values."""
    for stmt in walk(tree):
        if isinstance(stmt, Loop):
            yield stmt.axis.size
        for index in places(stmt):
            yield from sizes_in(index)
    yield from sizes_of(nodes)
