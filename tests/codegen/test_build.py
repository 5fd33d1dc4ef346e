"""Loop trees of hand-written groups: which loops they have, and where values are computed."""

from __future__ import annotations

import torch

from inductor_lab.compiler.codegen.tree.build import build_tree, full_tree
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Init,
    Let,
    Loop,
    LoopKind,
    Stmt,
    Store,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import loads_in, walk
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Load, Masked, Op
from inductor_lab.compiler.ir.index import Axis, Index
from inductor_lab.compiler.ir.program import Buffer, BufferKind, Layout, Nest, Pointwise, Reduction
from inductor_lab.compiler.schedule.schedule import Cost, Group

F32 = torch.float32
ROW, COLUMN, REDUCED = Axis("i0", 64), Axis("i1", 128), Axis("r0", 128)
AT = Index.of


def buffers(**sizes: tuple[int, ...]) -> dict[str, Buffer]:
    return {
        name: Buffer(name, BufferKind.COMPUTED, F32, "cpu", Layout.contiguous(size))
        for name, size in sizes.items()
    }


def group(
    axes: tuple[Axis, ...], *nests: Nest, stored: str, inlined: tuple[Pointwise, ...] = ()
) -> Group:
    producers = {nest.buffer: nest for nest in inlined}
    return Group("test", axes, nests, frozenset(stored.split()), producers, Cost())


def load(buffer: str, *axes: Axis) -> Load:
    return Load(buffer, tuple(map(AT, axes)), F32)


def op(name: str, *args: Expr) -> Op:
    return Op(name, args, F32)


def loops(tree: tuple[Stmt, ...]) -> list[tuple[str, int, LoopKind]]:
    return [(s.axis.name, int(s.axis.size), s.kind) for s in walk(tree) if isinstance(s, Loop)]


def softmax() -> Group:
    numerator = op("exp", op("sub", load("x", ROW, COLUMN), load("m", ROW)))
    return group(
        (ROW,),
        Reduction("m", (ROW,), (REDUCED,), "max", load("x", ROW, REDUCED)),
        Reduction("s", (ROW,), (REDUCED,), "sum", load("e", ROW, REDUCED)),
        Pointwise("o", (ROW, COLUMN), op("truediv", load("e", ROW, COLUMN), load("s", ROW))),
        stored="o",
        inlined=(Pointwise("e", (ROW, COLUMN), numerator),),
    )


SHAPES = buffers(x=(64, 128), o=(64, 128), m=(64,), s=(64,), e=(64, 128), w=(128,))


def test_contiguous_axes_become_one_loop() -> None:
    nest = Pointwise("o", (ROW, COLUMN), op("sin", load("x", ROW, COLUMN)))
    tree = build_tree(group((ROW, COLUMN), nest, stored="o"), SHAPES)
    assert loops(tree) == [("i0", 64 * 128, LoopKind.VECTOR)]


def test_a_broadcast_prevents_merging_axes() -> None:
    body = op("add", load("x", ROW, COLUMN), load("w", COLUMN))
    tree = build_tree(group((ROW, COLUMN), Pointwise("o", (ROW, COLUMN), body), stored="o"), SHAPES)
    assert loops(tree) == [("i0", 64, LoopKind.PARALLEL), ("i1", 128, LoopKind.VECTOR)]


def test_a_value_of_the_row_is_computed_once_per_row() -> None:
    body = op("add", load("x", ROW, COLUMN), op("exp", load("m", ROW)))
    tree = build_tree(group((ROW, COLUMN), Pointwise("o", (ROW, COLUMN), body), stored="o"), SHAPES)
    (row,) = tree
    assert isinstance(row, Loop)
    assert [type(s) for s in row.body] == [Let, Let, Loop]


def test_a_reduction_is_ready_one_stage_later() -> None:
    tree = build_tree(softmax(), SHAPES)
    (row,) = tree
    assert isinstance(row, Loop) and row.kind is LoopKind.PARALLEL
    assert [type(s) for s in row.body] == [Init, Loop, Init, Loop, Loop]
    kinds = [s.kind for s in row.body if isinstance(s, Loop)]
    assert kinds == [LoopKind.REDUCE, LoopKind.REDUCE, LoopKind.SERIAL]


def test_equal_reductions_share_an_accumulator() -> None:
    first = Reduction("m", (ROW,), (REDUCED,), "sum", load("x", ROW, REDUCED))
    second = Reduction("s", (ROW,), (Axis("r9", 128),), "sum", load("x", ROW, Axis("r9", 128)))
    tree = build_tree(group((ROW,), first, second, stored="m s"), SHAPES)
    assert sum(isinstance(s, Accumulate) for s in walk(tree)) == 1
    assert [s.buffer for s in walk(tree) if isinstance(s, Store)] == ["m", "s"]


def test_equal_values_are_computed_once() -> None:
    sine = op("sin", load("x", ROW, COLUMN))
    same = op("sin", load("x", ROW, COLUMN))
    nest = Pointwise("o", (ROW, COLUMN), op("mul", sine, same))
    tree = build_tree(group((ROW, COLUMN), nest, stored="o"), SHAPES)
    values = [s.value for s in walk(tree) if isinstance(s, Let)]
    assert [v.name for v in values if isinstance(v, Op)] == ["sin"]


def test_masked_loads_stay_inside_the_mask() -> None:
    inside = Op("lt", (IndexValue(AT(COLUMN), torch.int64), Const(100, torch.int64)), torch.bool)
    shifted = Load("w", (AT(COLUMN) + 28,), F32)
    body = Masked(inside, op("exp", shifted), Const(0.0, F32))
    tree = build_tree(group((ROW, COLUMN), Pointwise("o", (ROW, COLUMN), body), stored="o"), SHAPES)
    (when,) = (s for s in walk(tree) if isinstance(s, When))
    lets = [s for s in walk(tree) if isinstance(s, Let) and isinstance(s.value, Load)]
    assert len(lets) == 1 and lets[0] in when.body


def test_loads_come_before_the_stores_of_a_body() -> None:
    first = Pointwise("o", (ROW, COLUMN), op("neg", load("x", ROW, COLUMN)))
    second = Pointwise("e", (ROW, COLUMN), op("square", load("x", ROW, COLUMN)))
    tree = build_tree(group((ROW, COLUMN), first, second, stored="o e"), SHAPES)
    (loop,) = (s for s in walk(tree) if isinstance(s, Loop))
    order = [type(s) for s in loop.body]
    assert order == sorted(order, key=lambda kind: kind is Store)


def test_a_chain_of_producers_has_linear_size() -> None:
    x = load("x", ROW, COLUMN)
    chain = [Pointwise("p0", (ROW, COLUMN), op("mul", x, x))]
    for k in range(1, 1200):
        before = load(f"p{k - 1}", ROW, COLUMN)
        chain.append(Pointwise(f"p{k}", (ROW, COLUMN), op("mul", before, before)))
    last = Pointwise("o", (ROW, COLUMN), op("add", load("p1199", ROW, COLUMN), x))
    tree = build_tree(group((ROW, COLUMN), last, stored="o", inlined=tuple(chain)), SHAPES)
    assert sum(isinstance(s, Let) for s in walk(tree)) == 1200


HEADS = buffers(x=(12, 300, 64), o=(300, 768))
TOKEN, WIDE = Axis("i0", 300), Axis("i1", 768)


def divided(tree: tuple[Stmt, ...]) -> bool:
    """Does an index of a load or store contain a division?"""
    places = [load.index[0] for load in loads_in(tree)]
    places += [stmt.index for stmt in walk(tree) if isinstance(stmt, Store)]
    return not all(place.is_affine for place in places)


def heads(length: int) -> Group:
    """Merge the heads of a token; the `length` elements of a head are contiguous in `x`."""
    place = (AT(WIDE) // length, AT(TOKEN), AT(WIDE) % length)
    return group((TOKEN, WIDE), Pointwise("o", (TOKEN, WIDE), Load("x", place, F32)), stored="o")


def test_merged_heads_become_a_loop_over_heads_and_a_loop_within() -> None:
    tree = full_tree(heads(64), HEADS)
    parallel, vector = LoopKind.PARALLEL, LoopKind.VECTOR
    assert loops(tree) == [("i0", 300, parallel), ("i1", 12, parallel), ("i2", 64, vector)]
    assert not divided(tree)


def test_triton_trees_are_not_split_into_heads() -> None:
    tree = build_tree(heads(64), HEADS)
    assert [size for _, size, _ in loops(tree)] == [300, 768]
    assert divided(tree)


def test_short_heads_are_not_split() -> None:
    short = {**HEADS, "x": buffers(x=(192, 300, 4))["x"]}
    assert [size for _, size, _ in loops(full_tree(heads(4), short))] == [300, 768]


def test_patches_become_one_loop_per_divisor() -> None:
    patch, inside = Axis("i0", 196), Axis("i1", 768)
    row, column = AT(inside) // 16 % 16, AT(inside) % 16
    place = (AT(inside) // 256, AT(patch) // 14 * 16 + row, AT(patch) % 14 * 16 + column)
    known = buffers(x=(3, 224, 224), o=(196, 768))
    nest = Pointwise("o", (patch, inside), Load("x", place, F32))
    tree = full_tree(group((patch, inside), nest, stored="o"), known)
    assert [size for _, size, _ in loops(tree)] == [14, 14, 3, 16, 16]
    assert not divided(tree)
