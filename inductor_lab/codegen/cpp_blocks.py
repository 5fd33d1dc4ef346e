"""Innermost loops a block at a time: results past the caches, halves as floats.

    for (int64_t i0_block = 0; i0_block < 4000000; i0_block += 128) {
        float block_out0[128];
        #pragma omp simd
        for (...) block_out0[i0 - i0_block] = in0[i0] + 1;
        lab_stream(out0 + i0_block, block_out0, 128);
    }

Inductor: none for the caches; halves are widened in classes of `at::vec`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from inductor_lab.codegen.cpp_halves import (
    in_floats,
    narrowed_stores,
    side_by_side,
    widened_loads,
)
from inductor_lab.codegen.cpp_ops import CTYPES
from inductor_lab.codegen.cpp_statements import Statements
from inductor_lab.codegen.cpp_text import Writer
from inductor_lab.codegen.cpu_plan import WHOLE_BLOCK, CpuPlan, in_lines
from inductor_lab.codegen.tidy import walk
from inductor_lab.codegen.tree import Let, Loop, Stmt, Store
from inductor_lab.ir.expr import Expr, Load
from inductor_lab.ir.index import Axis, Index

STREAM_BLOCK = 128
"""Elements of a result that are computed into the first cache and then written past all caches: so
few that the machine computes the next ones meanwhile."""
SHORT_BLOCK = 256
"""The same for elements of 16 bits or less, and for halves that are widened."""


class Blocks(Statements):
    """Prints innermost loops over blocks, with local arrays for what they read or write."""

    def __init__(self, tree: tuple[Stmt, ...], writer: Writer, plan: CpuPlan) -> None:
        super().__init__(tree, writer, plan)
        self.staged: dict[str, str] = {}
        """Elements of blocks that are streamed afterwards, by the buffer they belong to."""

    def in_need_of_blocks(self, loop: Loop) -> bool:
        if not isinstance(loop.axis.size, int) or loop.axis.size < STREAM_BLOCK:
            return False
        return bool(self.streams(loop) or widened_loads(loop) or narrowed_stores(loop))

    def streams(self, loop: Loop) -> list[Store]:
        """What an innermost loop writes side by side to large results that nobody reads soon."""
        if not isinstance(loop.axis.size, int) or loop.axis.size < STREAM_BLOCK:
            return []
        stores = [s for s in walk(loop.body) if isinstance(s, Store) and s.kind == "store"]
        names = [store.buffer for store in stores]
        return [
            store
            for store in stores
            if store.buffer in self.plan.streamed
            and names.count(store.buffer) == 1
            and side_by_side(store.index, loop.axis)
        ]

    def in_blocks(self, loop: Loop) -> None:
        """The loop a block at a time, with some of what it reads and writes in local arrays."""
        name, size = loop.axis.name, self.writer.size(loop.axis.size)
        first, end = f"{name}_block", f"{name}_end"
        halves = widened_loads(loop) or narrowed_stores(loop)
        if not halves and in_lines(loop, self.streams(loop)):
            with self.threaded(), self.loop(first, "0", size, str(WHOLE_BLOCK)):
                self.stretch(loop, first, "", WHOLE_BLOCK)
            return
        long = any(store.value.dtype.itemsize > 2 for store in self.streams(loop))
        most = STREAM_BLOCK if long else SHORT_BLOCK
        with self.threaded(), self.loop(first, "0", size, str(most)):
            stop = f"{first} + {most}"
            self.line(f"const int64_t {end} = {stop} < {size} ? {stop} : {size};")
            widened, narrowed = widened_loads(loop), narrowed_stores(loop)
            with self.as_floats(widened, loop.axis, first, f"{end} - {first}", most):
                self.stretch(loop, first, end, most, widened, narrowed)

    @contextmanager
    def as_floats(
        self, widened: Sequence[Let], axis: Axis, first: str, count: str, most: int
    ) -> Iterator[None]:
        """Halves in local arrays of floats, so many of them from `first` on."""
        for let in widened:
            block = f"block_{let.temp.name}"
            start = self.block_start(let.value, {axis: first})
            self.line(f"float {block}[{most}];", let.origins)
            self.line(f"lab_widen({block}, {start}, {count});", let.origins, statement=True)
            self.writer.places[let.temp.name] = f"{block}[{axis.name} - {first}]"
        yield
        for let in widened:
            del self.writer.places[let.temp.name]

    def stretch(
        self,
        loop: Loop,
        first: str,
        end: str,
        most: int,
        widened: Sequence[Let] = (),
        narrowed: Sequence[Store] = (),
    ) -> None:
        """A SIMD loop over so many turns at most; then what it made is narrowed or streamed.

        Without an `end` there are exactly so many, and whole lines are streamed.
        """
        axis, streams = loop.axis, [s for s in self.streams(loop) if s not in narrowed]
        for store in (*narrowed, *streams):
            name = self.writer.buffers[store.buffer]
            ctype = "float" if store in narrowed else CTYPES[store.value.dtype]
            self.line(f"{ctype} block_{name}[{most}];", store.origins)
            self.staged[store.buffer] = f"block_{name}[{axis.name} - {first}]"
        self.pragma("simd" + self.clauses(loop.body))
        with self.loop(*((axis.name, first, end) if end else ("lane", "0", str(most)))):
            if not end:
                self.line(f"const int64_t {axis.name} = {first} + lane;")
            self.body(in_floats(loop.body, widened, narrowed))
        for store in (*narrowed, *streams):
            del self.staged[store.buffer]
            name = self.writer.buffers[store.buffer]
            start = self.block_start(store, {axis: first})
            streaming = f"lab_stream{'' if end else '_lines'}"
            function = "lab_narrow" if store in narrowed else streaming
            call = f"{function}({start}, block_{name}, {f'{end} - {first}' if end else most});"
            self.line(call, store.origins, statement=True)

    def block_start(self, access: Expr | Store, first: Mapping[Axis, str]) -> str:
        """The address of what is loaded or stored where these axes are at their first places."""
        assert isinstance(access, Load | Store)
        index = access.index if isinstance(access, Store) else access.index[0]
        places = {axis: Index.of(Axis(name, axis.size)) for axis, name in first.items()}
        start = index.substitute(places)
        return f"{self.writer.buffers[access.buffer]} + {self.writer.index(start)}"

    def place(self, stmt: Store) -> str:
        return self.staged.get(stmt.buffer) or super().place(stmt)
