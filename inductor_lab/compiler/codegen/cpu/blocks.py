"""Run innermost loops block by block: streaming stores of results, float16 converted in blocks.

    for i0 in 0 .. 4000000:              for i0_block in 0 .. 4000000 by 128:
        out0[i0] = in0[i0] + 1    →          block_out0: 128 floats
                                             for i0 in the block: block_out0[..] = in0[i0] + 1
                                             lab_stream(out0 + i0_block, block_out0, 128)

CPUs convert a full register of float16 at once, but GCC does not generate this from a loop:

    block_t0, block_out0: 256 floats
    lab_widen(block_t0, in0 + i0_block, 256)
    for i0 in the block: block_out0[i0 - i0_block] = block_t0[i0 - i0_block] + 1
    lab_narrow(out0 + i0_block, block_out0, 256)

Inductor: no streaming stores; classes of `at::vec` widen float16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from inductor_lab.compiler.codegen.cpu.access import WHOLE_BLOCK, fills_cache_lines, is_contiguous
from inductor_lab.compiler.codegen.cpu.assign_threads import INDEPENDENT
from inductor_lab.compiler.codegen.cpu.facts import Facts
from inductor_lab.compiler.codegen.cpu.half_roundings import rounds, unwidened_temps
from inductor_lab.compiler.codegen.cpu.plan import TILE, Simd
from inductor_lab.compiler.codegen.cpu.strip_mine import strip_mined
from inductor_lab.compiler.codegen.tree.loop_tree import (
    SEQUENTIAL,
    Address,
    Bound,
    Call,
    ElementAlias,
    Let,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Tree,
)
from inductor_lab.compiler.codegen.tree.visit import (
    expressions,
    is_innermost,
    old_if_same,
    walk,
    with_body,
)
from inductor_lab.compiler.ir.expr import Load, Op
from inductor_lab.compiler.ir.index import Axis, Index

STREAM_BLOCK = 128
"""Elements that are computed into the first-level cache and then written with streaming stores: few
enough that the core computes the next block while the stores drain (chosen, not measured)."""
SHORT_BLOCK = 256
"""The same for elements of 16 bits or less, and for float16 that is widened."""


def blocks(tree: Tree, facts: Facts) -> Tree:
    """Split innermost loops into blocks, and compute with local arrays in each block."""
    return tree if facts.plan.simd is Simd.COLUMNS else _Blocks(facts).body(tree, None)


@dataclass(frozen=True)
class _Blocks:
    facts: Facts

    def body(self, body: Tree, outer: Loop | None) -> Tree:
        new: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, Loop):
                new.append(stmt)
            elif not is_innermost(stmt):
                new.append(with_body(stmt, self.body(stmt.body, stmt)))
            else:
                new += self.innermost(stmt, outer)
        return old_if_same(tuple(new), body)

    def innermost(self, loop: Loop, outer: Loop | None) -> Tree:
        """Split a full loop into blocks; a strip of a loop is already a block."""
        if loop.is_whole and loop.kind in INDEPENDENT:
            needs = self.streams(loop) or widened_loads(loop) or narrowed_stores(loop)
            long = isinstance(loop.axis.size, int) and loop.axis.size >= STREAM_BLOCK
            return (self.in_blocks(loop),) if long and needs else (loop,)
        if loop.kind is LoopKind.VECTOR:  # in a tile
            return self.stretch(loop, TILE[1], self.streams(loop), ())
        if outer is not None and outer.kind is LoopKind.REDUCE and outer.step > 1:
            if loop.kind is LoopKind.SERIAL:
                count = Index.constant_of(outer.step)
                return _as_floats(loop, widened_loads(loop), outer.step, count)
        return (loop,)

    def streams(self, loop: Loop) -> list[Store]:
        """The contiguous stores of an innermost loop to large results that are not read soon."""
        if not isinstance(loop.axis.size, int) or loop.axis.size < STREAM_BLOCK:
            return []
        stores = [s for s in walk(loop.body) if isinstance(s, Store) and s.kind == "store"]
        names = [store.buffer for store in stores]
        return [
            store
            for store in stores
            if store.buffer in self.facts.streamed
            and names.count(store.buffer) == 1
            and is_contiguous(store.index, loop.axis)
        ]

    def in_blocks(self, loop: Loop) -> Loop:
        """Strip-mine the loop, with some of its loads and stores in local arrays."""
        streams, widened, narrowed = self.streams(loop), widened_loads(loop), narrowed_stores(loop)
        outer = LoopKind.PARALLEL if loop.kind is LoopKind.VECTOR else loop.kind
        if not (widened or narrowed) and fills_cache_lines(loop, streams):
            first = Axis(f"{loop.axis.name}_block", loop.axis.size)
            lane = Axis("lane", WHOLE_BLOCK)
            place = Bound(loop.axis, Index.of(first) + Index.of(lane))
            lanes = Loop(lane, LoopKind.VECTOR, (place, *loop.body))
            body = self.stretch(lanes, WHOLE_BLOCK, streams, (), loop.axis, Index.of(first))
            return replace(loop, axis=first, kind=outer, body=body, step=WHOLE_BLOCK)
        long = any(store.value.dtype.itemsize > 2 for store in streams)
        most = STREAM_BLOCK if long else SHORT_BLOCK
        streams = [store for store in streams if store not in narrowed]

        def inside(stretch: Loop) -> Tree:
            lanes = replace(stretch, kind=LoopKind.VECTOR, execution=SEQUENTIAL)
            *before, inner = _as_floats(lanes, widened, most, lanes.stop - lanes.begin)
            assert isinstance(inner, Loop)
            return (*before, *self.stretch(inner, most, streams, narrowed))

        return strip_mined(loop, most, inside, outer)

    def stretch(
        self,
        loop: Loop,
        most: int,
        streams: Sequence[Store],
        narrowed: Sequence[Store],
        axis: Axis | None = None,
        first: Index | None = None,
    ) -> Tree:
        """A loop with at most `most` iterations, then calls that narrow or stream its results.

        With `axis`, there are exactly `most` iterations from `first` on, and the calls stream full
        cache lines.
        """
        along, begin = axis or loop.axis, first if first is not None else loop.begin
        place = Index.of(along) - begin
        count = Index.constant_of(most) if axis is not None else loop.stop - loop.begin
        arrays: list[Stmt] = []
        calls: list[Stmt] = []
        body = loop.body
        for store in (*narrowed, *streams):
            block = f"block_{self.facts.names[store.buffer]}"
            value, dtype = store.value, store.value.dtype
            if store in narrowed:
                assert isinstance(value, Op)
                value, dtype, function = value.args[0], torch.float32, "lab_narrow"
            else:
                function = "lab_stream" if axis is None else "lab_stream_lines"
            arrays.append(Local(block, dtype, (most,), store.origins))
            kept_in = Store(block, place, value, store.origins)
            body = tuple(kept_in if stmt == store else stmt for stmt in body)
            start = Address(store.buffer, store.index.substitute({along: begin}))
            calls.append(Call(function, (start, Address(block), count), "", store.origins))
        return (*arrays, with_body(loop, body), *calls)


def _as_floats(loop: Loop, widened: Sequence[Let], most: int, count: Index) -> Tree:
    """Widen `count` float16 elements to local arrays of floats before the loop; then the loop."""
    arrays: list[Stmt] = []
    held: list[Stmt] = []
    place = Index.of(loop.axis) - loop.begin
    for let in widened:
        assert isinstance(let.value, Load)
        block = f"block_{let.temp.name}"
        start = let.value.index[0].substitute({loop.axis: loop.begin})
        args = (Address(block), Address(let.value.buffer, start), count)
        arrays.append(Local(block, torch.float32, (most,), let.origins))
        arrays.append(Call("lab_widen", args, "", let.origins))
        held.append(ElementAlias(let.temp.name, block, (place,)))
    body = (*held, *(stmt for stmt in loop.body if stmt not in widened))
    return (*arrays, with_body(loop, body) if widened else loop)


def widened_loads(loop: Loop) -> list[Let]:
    """Contiguous loads of float16 that a loop uses only as floats."""
    other = {
        t.name for stmt in walk(loop.body) for e in expressions(stmt) for t in unwidened_temps(e)
    }
    return [
        stmt
        for stmt in loop.body
        if isinstance(stmt, Let)
        and isinstance(stmt.value, Load)
        and stmt.temp.dtype is torch.float16
        and stmt.temp.name not in other
        and is_contiguous(stmt.value.index[0], loop.axis)
    ]


def narrowed_stores(loop: Loop) -> list[Store]:
    """Contiguous stores of floats that are rounded to float16."""
    stores = [stmt for stmt in walk(loop.body) if isinstance(stmt, Store)]
    names = [store.buffer for store in stores]
    return [
        stmt
        for stmt in loop.body
        if isinstance(stmt, Store)
        and stmt.kind == "store"
        and names.count(stmt.buffer) == 1
        and rounds(stmt.value)
        and stmt.value.dtype is torch.float16
        and is_contiguous(stmt.index, loop.axis)
    ]
