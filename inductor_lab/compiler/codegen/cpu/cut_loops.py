"""Split loops over points so that no index needs a division.

    for i0 in 0 .. 768:                     for i0 in 0 .. 12:
        out[i0] =                   →           for i1 in 0 .. 64:
            in[900*(i0 // 64) + i0 % 64]            out[64*i0 + i1] = in[900*i0 + i1]

The pass rebuilds the tree with other loops (`codegen/tree/axes.py`, `split_loop_space`), so it is
the first pass.
"""

from __future__ import annotations

from inductor_lab.compiler.codegen.cpu.facts import Shape
from inductor_lab.compiler.codegen.tree.build import full_tree
from inductor_lab.compiler.codegen.tree.loop_tree import Tree
from inductor_lab.compiler.codegen.tree.visit import nodes_in, places, walk
from inductor_lab.compiler.ir.index import Index, Quotient, Remainder


def split_divided_loops(tree: Tree, shape: Shape) -> Tree:
    """Split loops into a loop over rows and a loop within a row; unchanged without divisions."""
    indices = [index for node in nodes_in(tree) for index in node.indices()]
    indices += [index for stmt in walk(tree) for index in places(stmt)]
    if not any(map(_divides, indices)):
        return tree
    new = full_tree(shape.group, shape.buffers, cut=True)
    return tree if new == tree else new


def _divides(index: Index) -> bool:
    return any(isinstance(atom, Quotient | Remainder) for atom, _ in index.terms)
