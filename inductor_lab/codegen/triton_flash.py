"""Attention as Triton kernels that go through keys block by block and keep no matrix of scores,
with the user's functions in their midst (`accelerate/flex_attention.py` says what is computed).

    for step in range(0, count):                        blocks of keys that the mask may show
        scores = tl.dot(queries, keys)
        seen = ...                                      what the user's functions make of them
        top = lab.maximum(largest, lab.row_max(seen))
        powers = tl.exp2(seen - top)
        shrink = tl.exp2(largest - top)                 all before is scaled to the largest so far
        total = total * shrink + lab.row_sum(powers)
        sums = sums * shrink + tl.dot(powers, values)
        largest = top

A backward computes the scores anew: one kernel goes through the keys of each block of queries, and
one through the queries of each block of keys.

Dao et al., FlashAttention (NeurIPS 2022); Dong et al., FlexAttention (MLSys 2025).
Inductor: `kernel/flex/templates/`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from inductor_lab.codegen.kernel import Code, Kernel, Line, Parameter
from inductor_lab.codegen.triton_blocks import power_of_2
from inductor_lab.codegen.triton_ops import TRITON_TYPES
from inductor_lab.codegen.triton_text import Value, signature
from inductor_lab.codegen.triton_within import Surroundings, Within
from inductor_lab.ir.expr import Origins
from inductor_lab.ir.program import views_in
from inductor_lab.schedule.result import Group, Schedule

LOG2_E = 1 / math.log(2)
ROW, COLUMN = frozenset("x"), frozenset("r")
NEVER = 'float("-inf")'


@dataclass(frozen=True)
class Inner:
    """What the user's functions make of scores: a program of one pointwise group.

    Its first inputs are blocks, by the names that a kernel has for them, and then come tensors that
    the kernel is given; its results become the variables `made`.
    """

    schedule: Schedule
    blocks: tuple[str, ...]
    made: tuple[str, ...]

    @property
    def group(self) -> Group:
        (group,) = self.schedule.groups
        return group


@dataclass(frozen=True)
class Visit:
    """The blocks of keys that each block of queries visits, or the other way round: how many
    (`counts[B, H, blocks]`), which (`indices[B, H, blocks, most]`), and what is done there."""

    name: str
    counts: Tensor
    indices: Tensor
    inner: Inner


@dataclass(frozen=True)
class Tile:
    """How many queries and keys a program has at a time, and how it is run."""

    rows: int
    columns: int
    warps: int
    stages: int


@dataclass(frozen=True)
class Attention:
    """What a call is given: fake tensors of fixed sizes, of which `given` are read by the user's
    functions.  `sparse` are the lengths of the blocks in lists, of queries and of keys; `exact` if
    lists were made for just as many queries and keys."""

    query: Tensor
    key: Tensor
    value: Tensor
    given: tuple[Tensor, ...]
    sparse: tuple[int, int]
    exact: bool
    origins: Origins

    @property
    def length(self) -> dict[str, int]:
        return {"rows": self.query.shape[2], "columns": self.key.shape[2]}

    @property
    def shared_by(self) -> int:
        """Heads of queries that share one of keys."""
        return self.query.shape[1] // self.key.shape[1]


@dataclass
class Writer:
    """The lines of one kernel."""

    attention: Attention
    tile: Tile
    visits: tuple[Visit, ...]
    lines: list[Line] = field(default_factory=list)
    indent: int = 1
    asserts: bool = False

    # ---- lines -------------------------------------------------------------------------------

    def line(self, *texts: str) -> None:
        for text in texts:
            self.lines.append(Line("    " * self.indent + text, self.attention.origins))

    @contextmanager
    def loop(self, heading: str) -> Iterator[None]:
        self.line(heading)
        self.indent += 1
        yield
        self.indent -= 1

    def kernel(self, name: str, device: str, programs: int, tensors: Sequence[tuple[str, Any]],
               made: Sequence[tuple[str, Any]]) -> Kernel:  # fmt: skip
        """The lines as a kernel of so many programs, that is given some tensors, then lists of
        blocks and what functions read, then the results."""
        lists = [(f"{v.name}_{part}", getattr(v, part))
                 for v in self.visits for part in ("counts", "indices")]  # fmt: skip
        given = [(f"in{n}", tensor) for n, tensor in enumerate(self.attention.given)]
        read = [Parameter(n, "in", n, t.dtype) for n, t in (*tensors, *lists, *given)]
        parameters = (*read, *(Parameter(n, "out", n, t.dtype) for n, t in made))
        heading = ["@triton.jit", *signature(name, [p.name for p in parameters])]
        code = Code.of([*(Line(text, statement=False) for text in heading), *self.lines])
        launch: dict[str, Any] = {"constants": {}, "num_warps": self.tile.warps}
        launch |= {"num_stages": self.tile.stages, "parts": ((programs, 1),)}
        launch |= {"asserts": True} if self.asserts else {}
        first = self.visits[0].inner
        return Kernel(name, "triton", device, code, parameters, first.group,
                      first.schedule.program.buffers, launch)  # fmt: skip

    # ---- blocks ------------------------------------------------------------------------------

    def blocks(self, along: str) -> int:
        return -(-self.attention.length[along] // self.block(along))

    def block(self, along: str) -> int:
        return self.tile.rows if along == "rows" else self.tile.columns

    def listed(self, along: str) -> tuple[int, int]:
        """The length of a block of the lists, and how many of ours it has."""
        rows, columns = self.attention.sparse
        length = rows if along == "rows" else columns
        whole = min(length, self.attention.length[along])
        return length, -(-whole // self.block(along))

    def open(self, along: str, visited: bool) -> bool:
        """Can a block reach beyond the end?"""
        length, step = self.attention.length[along], self.block(along)
        listed, _ = self.listed(along)
        beyond = not self.attention.exact or (listed < length and length % listed)
        return bool(length % step or (visited and beyond))

    def widths(self) -> None:
        for name, tensor in (("d", self.attention.query), ("e", self.attention.value)):
            self.line(f"{name} = tl.arange(0, {_padded(tensor.shape[3])})")

    def place(self, pointer: str, tensor: Tensor, *at: str) -> str:
        """The address of elements, given their positions in all dimensions."""
        steps = zip(at, tensor.shape, tensor.stride(), strict=True)
        terms = [_times(position, stride) for position, size, stride in steps if size > 1]
        return " + ".join([pointer, *terms])

    def matrix(self, pointer: str, tensor: Tensor, head: str, along: str, width: str,
               visited: bool, turned: bool = False) -> tuple[str, str]:  # fmt: skip
        """The address of a block of rows of a tensor [B, H, length, width], and its mask."""
        down, across = ("[None, :]", "[:, None]") if turned else ("[:, None]", "[None, :]")
        place = self.place(pointer, tensor, "b", head, along + down, width + across)
        masks = []
        if self.open(along, visited):
            masks.append(f"({along}{down} < {self.attention.length[along]})")
        if _padded(tensor.shape[3]) != tensor.shape[3]:
            masks.append(f"({width}{across} < {tensor.shape[3]})")
        return place, " & ".join(masks)

    def load(self, name: str, *what: Any, **how: Any) -> None:
        place, mask = self.matrix(*what, **how)
        self.line(f"{name} = tl.load({place}{f', mask={mask}, other=0.0' if mask else ''})")

    def store(self, value: str, *what: Any) -> None:
        place, mask = self.matrix(*what)
        self.line(f"tl.store({place}, {value}{f', mask={mask}' if mask else ''})")

    def vector(self, pointer: str, tensor: Tensor, visited: bool = False) -> tuple[str, str]:
        """The address of one number for each row of the queries, and its mask."""
        mask = f", i < {self.attention.length['rows']}" if self.open("rows", visited) else ""
        return self.place(pointer, tensor, "b", "h", "i"), mask

    def load_vector(self, pointer: str, tensor: Tensor, visited: bool = False) -> str:
        return f"tl.load({''.join(self.vector(pointer, tensor, visited))})"

    def store_vector(self, pointer: str, tensor: Tensor, value: str) -> None:
        place, mask = self.vector(pointer, tensor)
        self.line(f"tl.store({place}, {value}{mask})")

    # ---- what is done in a block --------------------------------------------------------------

    @contextmanager
    def visiting(self, visit: Visit, along: str, block: str) -> Iterator[None]:
        """A loop over the listed blocks of keys or queries."""
        listed, parts = self.listed(along)
        counts = self.place(f"{visit.name}_counts", visit.counts, "b", "h", block)
        step = "step" if parts == 1 else f"step // {parts}"
        indices = self.place(f"{visit.name}_indices", visit.indices, "b", "h", block, step)
        self.line(f"count = tl.minimum(tl.load({counts}), {visit.indices.shape[3]})")
        last = (self.attention.length[along] - 1) // listed + (not self.attention.exact)
        with self.loop(f"for step in range(0, {_times('count', parts)}):"):
            self.line(f"block = tl.minimum(tl.maximum(tl.load({indices}), 0), {last})")
            self.line(f"first = {_times('block', listed)}")
            start = f"first + step % {parts} * {self.block(along)}" if parts > 1 else "first"
            self.line(f"{along} = {start} + tl.arange(0, {self.block(along)})")
            yield

    def inner(self, visit: Visit, visited: str) -> None:
        """What the user's functions make of the blocks at hand; 0 or never beyond the end."""
        inner, masks = visit.inner, {}
        for letter, at, along in (("x", "i", "rows"), ("r", "j", "columns")):
            if self.open(along, along == visited):
                test = f"({at} < {self.attention.length[along]})"
                masks[letter] = Value(test, frozenset(letter))
        program = inner.schedule.program
        names = [str(name) for name in program.inputs]
        dims = {"logs": ROW, "inner": ROW}
        blocks = {name: Value(block, dims.get(block, ROW | COLUMN))
                  for name, block in zip(names, inner.blocks, strict=False)}  # fmt: skip
        pointers = {name: f"in{n}" for n, name in enumerate(names[len(blocks) :])}
        views = views_in(program.outputs)
        results = {v.buffer: name for v, name in zip(views, inner.made, strict=True)}
        lengths = {"x": self.tile.rows, "r": self.tile.columns}
        if visited == "rows":
            lengths = dict(reversed(lengths.items()))
        places = (Value("b"), Value("h"), Value("i", ROW), Value("j", COLUMN))
        given = Surroundings(places, blocks, pointers, results, lengths, masks)
        printer = Within(inner.group, program.buffers, given)
        printed = printer.printed(self.indent)
        self.asserts |= printer.asserts
        self.lines += [replace(line, origins=self.attention.origins) for line in printed]

    def dot(self, a: str, b: str, onto: str = "") -> str:
        exact = ', input_precision="ieee"' if self.attention.query.dtype.itemsize == 4 else ""
        return f"tl.dot({a}, {b}{f', {onto}' if onto else ''}{exact})"

    def rounded(self, name: str) -> str:
        return f"{name}.to(tl.{TRITON_TYPES[self.attention.query.dtype]})"


def forward(
    name: str, attention: Attention, tile: Tile, visits: tuple[Visit, ...],
    made: tuple[Tensor, Tensor, Tensor], device: str,
) -> Kernel:  # fmt: skip
    """The result [B, Hq, M, Dv]; of each row the logarithm to base 2 of the sum of its powers, and
    its largest score."""
    write, call = Writer(attention, tile, visits), attention
    width = _padded(call.value.shape[3])
    _points(write, "rows", call.query.shape[1])
    write.widths()
    write.line("i = rows[:, None]")
    write.load("queries", "query", call.query, "h", "rows", "d", False)
    write.line(
        f"largest = tl.full([{tile.rows}, 1], {NEVER}, tl.float32)",
        f"total = tl.full([{tile.rows}, 1], 0.0, tl.float32)",
        f"sums = tl.full([{tile.rows}, {width}], 0.0, tl.float32)",
    )
    for visit in visits:
        with write.visiting(visit, "columns", _block(write, "rows")):
            write.line("j = columns[None, :]")
            write.load("keys", "key", call.key, _shared(call), "columns", "d", True, True)
            write.line(f"scores = {write.dot('queries', 'keys')}")
            write.inner(visit, "columns")
            if write.open("columns", True):
                write.line(f"seen = tl.where(j < {call.length['columns']}, seen, {NEVER})")
            write.line(
                f"seen = seen * {LOG2_E}",
                "top = lab.maximum(largest, lab.row_max(seen))",
                f"shift = tl.where(top == {NEVER}, 0.0, top)",
                "powers = tl.exp2(seen - shift)",
                "shrink = tl.exp2(largest - shift)",
                "total = total * shrink + lab.row_sum(powers)",
            )
            write.load("values", "value", call.value, _shared(call), "columns", "e", True)
            onto = write.dot(write.rounded("powers"), "values", "sums * shrink")
            write.line(f"sums = {onto}", "largest = top")
    result, logs, tops = made
    write.line("result = sums / tl.where(total == 0.0, 1.0, total)")
    write.store("result", "out", result, "h", "rows", "e", False)
    write.line(f"logs = tl.where(largest == {NEVER}, 0.0, largest) + tl.log2(total)")
    write.store_vector("logs_rows", logs, "logs")
    write.store_vector("tops_rows", tops, "largest")
    return write.kernel(
        name, device, write.blocks("rows") * call.query.shape[0] * call.query.shape[1],
        [("query", call.query), ("key", call.key), ("value", call.value)],
        [("out", result), ("logs_rows", logs), ("tops_rows", tops)],
    )  # fmt: skip


def of_queries(
    name: str, attention: Attention, tile: Tile, visits: tuple[Visit, ...],
    known: Sequence[tuple[str, Tensor]], made: tuple[Tensor, Tensor], device: str,
) -> Kernel:  # fmt: skip
    """The gradient of the queries, and `inner[B, Hq, M]`, the sum of each row of the result times
    its gradient.  `known` are `result`, `grad`, `logs_rows`, and perhaps `grad_logs`."""
    write, call, named = Writer(attention, tile, visits), attention, dict(known)
    of_query, inner = made
    _points(write, "rows", call.query.shape[1])
    write.widths()
    write.line("i = rows[:, None]")
    write.load("queries", "query", call.query, "h", "rows", "d", False)
    write.load("grads", "grad", named["grad"], "h", "rows", "e", False)
    write.load("results", "result", named["result"], "h", "rows", "e", False)
    write.line("inner = lab.row_sum(results.to(tl.float32) * grads.to(tl.float32))")
    if "grad_logs" in named:
        write.line(f"inner -= {write.load_vector('grad_logs', named['grad_logs'])} * {LOG2_E}")
    write.store_vector("inner_rows", inner, "inner")
    write.line(f"logs = {write.load_vector('logs_rows', named['logs_rows'])}")
    width = _padded(call.query.shape[3])
    write.line(f"of_query = tl.full([{tile.rows}, {width}], 0.0, tl.float32)")
    for visit in visits:
        with write.visiting(visit, "columns", _block(write, "rows")):
            write.line("j = columns[None, :]")
            write.load("keys", "key", call.key, _shared(call), "columns", "d", True, True)
            write.load("values", "value", call.value, _shared(call), "columns", "e", True, True)
            write.line(f"scores = {write.dot('queries', 'keys')}")
            write.line(f"of_weights = {write.dot('grads', 'values')}")
            write.inner(visit, "columns")
            if write.open("columns", True):
                write.line(f"slopes = tl.where(j < {call.length['columns']}, slopes, 0.0)")
            onto = write.dot(write.rounded("slopes"), "tl.trans(keys)", "of_query")
            write.line(f"of_query = {onto}")
    write.store("of_query", "of_query_out", of_query, "h", "rows", "d", False)
    return write.kernel(
        name, device, write.blocks("rows") * call.query.shape[0] * call.query.shape[1],
        [("query", call.query), ("key", call.key), ("value", call.value), *known],
        [("of_query_out", of_query), ("inner_rows", inner)],
    )  # fmt: skip


def of_keys(
    name: str, attention: Attention, tile: Tile, visits: tuple[Visit, ...],
    known: Sequence[tuple[str, Tensor]], made: tuple[Tensor, Tensor], device: str,
) -> Kernel:  # fmt: skip
    """The gradients of keys and values.  `known` are `grad`, `logs_rows` and `inner_rows`."""
    write, call, named = Writer(attention, tile, visits), attention, dict(known)
    of_key, of_value = made
    heads = call.key.shape[1]
    _points(write, "columns", heads, "shared")
    write.widths()
    write.line("j = columns[:, None]")
    write.load("keys", "key", call.key, "shared", "columns", "d", False)
    write.load("values", "value", call.value, "shared", "columns", "e", False)
    for kind, tensor in (("of_key", call.query), ("of_value", call.value)):
        shape = f"[{tile.columns}, {_padded(tensor.shape[3])}]"
        write.line(f"{kind} = tl.full({shape}, 0.0, tl.float32)")
    first = _times("shared", call.shared_by)
    with write.loop(f"for h in range({first}, {first} + {call.shared_by}):"):
        for visit in visits:
            with write.visiting(visit, "rows", _block(write, "columns")):
                write.line("i = rows[None, :]")
                write.load("queries", "query", call.query, "h", "rows", "d", True, True)
                write.load("grads", "grad", named["grad"], "h", "rows", "e", True, True)
                write.line(f"logs = {write.load_vector('logs_rows', named['logs_rows'], True)}")
                write.line(f"inner = {write.load_vector('inner_rows', named['inner_rows'], True)}")
                write.line(f"scores = {write.dot('keys', 'queries')}")
                write.line(f"of_weights = {write.dot('values', 'grads')}")
                write.inner(visit, "rows")
                if write.open("rows", True):
                    inside = f"i < {call.length['rows']}"
                    write.line(f"weights = tl.where({inside}, weights, 0.0)",
                               f"slopes = tl.where({inside}, slopes, 0.0)")  # fmt: skip
                onto = write.dot(write.rounded("weights"), "tl.trans(grads)", "of_value")
                write.line(f"of_value = {onto}")
                onto = write.dot(write.rounded("slopes"), "tl.trans(queries)", "of_key")
                write.line(f"of_key = {onto}")
    write.store("of_key", "of_key_out", of_key, "shared", "columns", "d", False)
    write.store("of_value", "of_value_out", of_value, "shared", "columns", "e", False)
    return write.kernel(
        name, device, write.blocks("columns") * call.query.shape[0] * heads,
        [("query", call.query), ("key", call.key), ("value", call.value), *known],
        [("of_key_out", of_key), ("of_value_out", of_value)],
    )  # fmt: skip


def _points(write: Writer, along: str, heads: int, head: str = "h") -> None:
    """What this program computes: a block of one head of one of the batch."""
    blocks, step = write.blocks(along), write.block(along)
    write.line("program = tl.program_id(0)")
    write.line(f"part = program % {blocks}")
    write.line(f"{head} = program // {blocks} % {heads}", f"b = program // {blocks * heads}")
    write.line(f"{along} = part * {step} + tl.arange(0, {step})")


def _block(write: Writer, along: str) -> str:
    """Which block of the lists the program's own is part of."""
    listed, _ = write.listed(along)
    return f"part * {write.block(along)} // {listed}"


def _shared(call: Attention) -> str:
    """The head of keys that a head of queries looks at."""
    return "h" if call.shared_by == 1 else f"h // {call.shared_by}"


def _padded(width: int) -> int:
    """Products of blocks need powers of two of at least 16."""
    return max(power_of_2(width), 16)


def _times(text: str, factor: int) -> str:
    return text if factor == 1 else f"{factor} * ({text})" if " " in text else f"{factor} * {text}"
