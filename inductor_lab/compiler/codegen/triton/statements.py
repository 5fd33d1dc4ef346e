"""Prints the statements of a loop tree as Triton (`printer.py` prints the complete kernel)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from inductor_lab.compiler.codegen.kernel import Code, Line
from inductor_lab.compiler.codegen.tree.loop_tree import (
    Accumulate,
    Init,
    Let,
    Local,
    Loop,
    LoopKind,
    Stmt,
    Store,
    When,
)
from inductor_lab.compiler.codegen.tree.visit import expressions, loads_in, walk
from inductor_lab.compiler.codegen.triton.accumulate import Accumulations
from inductor_lab.compiler.codegen.triton.block_loops import flattened
from inductor_lab.compiler.codegen.triton.blocks import Cover, Row
from inductor_lab.compiler.codegen.triton.expressions import Value, in_one_step, signature
from inductor_lab.compiler.codegen.triton.triton_ops import TRITON_TYPES
from inductor_lab.compiler.ir.expr import IndexValue, Load
from inductor_lab.compiler.ir.index import Index, gathered_in, is_int, product
from inductor_lab.compiler.ir.row_major import coordinates_at


class Printer(Accumulations):
    """Prints one kernel, statement by statement."""

    # ---- functions ---------------------------------------------------------------------------

    def code(self) -> Code:
        names = [p.name for p in self.parameters]
        names += ["exchange"] if self.blocks.shared is not None else []
        heading = self.heading(self.name, names, self.blocks.constants)
        return Code.of([*heading, *self.body()])

    def heading(
        self, name: str, arguments: Iterable[str], constants: Iterable[str]
    ) -> Iterator[Line]:
        """Yield the decorator and the signature of a function."""
        constants = [*constants, *(["INDEX"] if self.index_type == "INDEX" else [])]
        yield Line("@triton.jit", statement=False)
        for line in signature(name, [*arguments, *(f"{c}: tl.constexpr" for c in constants)]):
            yield Line(line, statement=False)

    def body(self) -> tuple[Line, ...]:
        """Return the lines of the function after its heading."""
        self._points()
        for row in self.blocks.rows.values():
            if row.cover is Cover.WHOLE:
                self._row_index(row)
            elif row.cover is Cover.TILED:
                self._row_index(row, f"tl.program_id(1) * {row.block_name} + ")
            elif row.cover is Cover.SHARED:
                self._frame(f"rpart = tl.program_id(0) % {row.parts}")
                self._row_index(row, f"rpart * {row.block_name} + ")
        if self.blocks.tiled is not None:
            row = self.blocks.rows[self.blocks.tiled.size]
            self.text.axes[self.blocks.tiled] = Index.of(row.axis)
        self._statements(self.blocks.body)
        return tuple(self.lines)

    def _points(self) -> None:
        """Print `xindex`, the points that this program computes, and their mask."""
        self.text.axes.update(coordinates_at(Index.of(self.blocks.xaxis), self.blocks.outer))
        if is_int(self.blocks.xnumel, 1):
            return
        if self.index_type == "int32":
            start = self.block
        else:
            start = f"{self.block}.to({self._index_dtype()})"
        across = "[:, None]" if self.blocks.rows else ""
        self._frame(f"xindex = {start} * XBLOCK + tl.arange(0, XBLOCK){across}")
        self.text.positions["xindex"] = Value("xindex", frozenset("x"))
        if self.blocks.masked:
            self._frame(f"xmask = xindex < {self.text.size(self.blocks.xnumel).text}")

    def _row_index(self, row: Row, start: str = "") -> None:
        """Print `rindex`, the positions of a block in a row, and their mask."""
        name = row.axis.name
        lanes = f"{start}tl.arange(0, {row.block_name})[None, :]"
        wide = self.index_type != "int32"
        self._frame(
            f"{name} = ({lanes}).to({self._index_dtype()})" if wide else f"{name} = {lanes}"
        )
        self.text.positions[name] = Value(name, frozenset([row.prefix]))
        if row.masked:
            self._frame(f"{row.prefix}mask = {name} < {self.text.size(row.extent).text}")

    # ---- memory ------------------------------------------------------------------------------

    def _start_row(self, local: Local) -> None:
        """Print a local row of results.  Each lane of the block has one element.

        Elements beyond the end of a row are never stored.
        """
        (size,) = local.shape
        row = self.blocks.rows[size]
        assert row.cover is Cover.WHOLE, "a local row must fit in one block"
        name = self.kept[local.name] = f"row{len(self.kept)}"
        dtype = TRITON_TYPES[local.dtype]
        self._line(f"{name} = tl.full([XBLOCK, {row.block_name}], 0, tl.{dtype})")

    def _load(self, load: Load) -> Value:
        if load.buffer in self.kept and self.row is not None:
            return Value(self.kept[load.buffer], frozenset(["x", self.row.prefix]))
        if load.buffer in self.unsynced:
            self._frame("tl.debug_barrier()")
            self.unsynced.clear()
        place = self.text.index(load.index[0])
        wanted = place.dims.union(*(m.dims for m in self.guards))
        masks = self._mask(wanted)
        self._check_gathered(load.index[0], masks)
        if wanted != place.dims:
            shape = self._shape(wanted)
            blocks = f"tl.broadcast_to({place.text}, {shape})"
            number = f"tl.full({shape}, 0, tl.int32) + {place.inside()}"
            place = Value(blocks if place.dims else number, wanted)
        name = self.buffer[load.buffer]
        arguments = [f"{name} + {place.inside()}"]
        if masks:
            arguments.append(" & ".join(m.inside() for m in masks))
        loaded = Value(f"tl.load({', '.join(arguments)})", wanted)
        self.loaded.setdefault(name, []).append(loaded.text)
        return loaded

    def _check_gathered(self, index: Index, masks: list[Value]) -> None:
        mask = " & ".join(m.inside() for m in masks) or "True"
        for atom in gathered_in(index.substitute(self.text.axes)):
            position, size = self.text.value(atom.value), self.text.size(atom.size)
            check = f"lab.check_index({position.text}, {size.text}, {mask})"
            self.asserts = True
            if self._known(check) is None:
                self._frame(check)
                self.scopes[-1][check] = position

    def _check_positions(self, stmt: Stmt) -> None:
        """Check loaded positions that are used as numbers."""
        for node in (node for value in expressions(stmt) for node in value.walk()):
            if isinstance(node, IndexValue) and any(gathered_in(node.index)):
                self._check_gathered(node.index, self._mask(self.text.index(node.index).dims))

    def _store(self, store: Store) -> None:
        value = self.text.value(store.value)
        if store.buffer in self.kept:
            row = self.kept[store.buffer]
            self._line(f"{row} = {row} + {value.inside()}")
            return
        place = self.text.index(store.index)
        name = self.buffer[store.buffer]
        if not place.dims and not is_int(self.blocks.xnumel, 1):
            place = Value(f"{place.inside()} + xindex * 0", frozenset("x"), atomic=False)
        if not in_one_step(store):
            place = self._named(place, "place")
        where = place.inside()
        if not place.dims:
            shape = "[1, 1]" if self.blocks.rows else "[1]"
            wide = "int64" if any(gathered_in(store.index)) else "int32"
            where = f"tl.full({shape}, {place.text}, tl.{wide})"
        masks = self._mask(place.dims)
        shared = self.blocks.shared
        if shared is not None and shared.prefix not in place.dims:
            masks.append(Value("rpart == 0", atomic=False))  # one program of the row stores it
        self._check_gathered(store.index, masks)
        tests = [self.text.in_range(a, self._shape(place.dims)) for a in gathered_in(store.index)]
        masks += [self._named(test, "inside") for test in tests]
        mask = f", {' & '.join(m.inside() for m in masks)}" if masks else ""
        self._line(self.text.stored(store, f"{name} + {where}", value, mask))
        if not in_one_step(store):
            self._frame("tl.debug_barrier()")
        for text in self.loaded.pop(name, ()):  # earlier loads of this buffer are out of date
            for scope in self.scopes:
                scope.pop(text, None)
        self.unsynced.add(store.buffer)

    # ---- statements --------------------------------------------------------------------------

    def _statements(self, body: tuple[Stmt, ...]) -> None:
        for group in self._groups(body):
            for stmt in group:
                if not isinstance(stmt, Loop):
                    self.origins = stmt.origins
                    self._check_positions(stmt)
            match group:
                case (Let(temp, value),):
                    self.text.temps[temp.name] = self._bind(temp.name, self.text.value(value))
                case (Store() as stmt,):
                    self._store(stmt)
                case (Init(name) as stmt,):
                    self.inits[name] = stmt
                case (Local() as stmt,):
                    self._start_row(stmt)
                case (Accumulate() as stmt,):
                    self._accumulate(stmt)
                case (Accumulate() as one, Accumulate() as other):
                    self._accumulate_pair(one, other)
                case (When() as stmt,):
                    self._when(stmt)
                case (Loop() as stmt,):
                    self._loop(stmt)

    def _groups(self, body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
        """Yield the statements, each alone, or two sums that are reduced together."""
        at = 0
        while at < len(body):
            pair = body[at : at + 2]
            group = pair if len(pair) == 2 and self._are_pair(*pair) else pair[:1]
            yield group
            at += len(group)

    def _when(self, when: When) -> None:
        mask = self._bind(f"{when.result.name}_mask", self.text.value(when.mask))
        self.guards.append(mask)
        self._statements(when.body)
        value = self.text.value(when.value)
        self.guards.pop()
        self.origins = when.origins
        other = self.text.value(when.other)
        dims = mask.dims | value.dims | other.dims
        chosen = Value(f"tl.where({mask.text}, {value.text}, {other.text})", dims)
        self.text.temps[when.result.name] = self._bind(when.result.name, chosen)

    def _loop(self, loop: Loop) -> None:
        if self.unsynced & {load.buffer for load in loads_in((loop,))}:
            self._frame("tl.debug_barrier()")
            self.unsynced.clear()
        if loop.kind is LoopKind.BISECT:
            self._bisect(loop)
            return
        flat = flattened(loop) if loop.kind is not LoopKind.ORDERED else None
        if flat is None:
            self._sequential_loop(loop)
            return
        axes, body = flat
        row = self.blocks.rows[product(axis.size for axis in axes)]
        self.text.axes.update(coordinates_at(Index.of(row.axis), axes))
        self.row = row
        self.scanning = loop.kind is LoopKind.SCAN
        kept = [s.name for s in walk(body) if isinstance(s, Accumulate)]
        if self.scanning:
            for name in kept:
                self._start_scan(name)
        if row.cover is not Cover.ROLLED:
            self._statements(body)
        else:
            self._blockwise(row, body, () if self.scanning else kept)
        self.row, self.scanning = None, False

    def _sequential_loop(self, loop: Loop) -> None:
        """Print a loop that cannot be flattened, one iteration at a time."""
        name = loop.axis.name
        self._frame(f"for {name} in range(0, {self.text.size(loop.axis.size).text}):")
        self.text.axes.pop(loop.axis, None)
        self.text.positions[name] = Value(name)
        with self._inside():
            self._statements(loop.body)

    def _blockwise(self, row: Row, body: tuple[Stmt, ...], kept: Sequence[str]) -> None:
        """Print a loop over the blocks of a row.

        The accumulators `kept` start before the loop and are reduced to one value per row after it.
        """
        for name in kept:
            self._start(name, row)
        offset = f"{row.prefix}offset"
        end = self.text.size(row.extent).text
        self._frame(f"for {offset} in range(0, {end}, {row.block_name}):")
        with self._inside():
            self._row_index(row, f"{offset} + ")
            self._statements(body)
        for name in kept:
            self._finish(name, f"{name}_block")
