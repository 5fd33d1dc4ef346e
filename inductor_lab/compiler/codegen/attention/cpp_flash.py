"""Attention as a C++ kernel that visits keys block by block and stores no score matrix.

The kernel calls the user functions for each block of scores (see `accelerate/flex_attention.py`).

    lab_flash<float, 64, 64, 128, 128> at(b, h, first, beyond);     a block of rows of a head
    at.look(query + ...);
    for (int64_t k = 0; k < shown_keys_counts[...]; k++) {          keys that the mask can show
        at.products(key + ...);
        bad |= cpp_flex_attention_shown_keys(at.scores, ...);       the user functions
        at.weigh(value + ...);
    }
    at.finish(out + ...);

Without lists of blocks, all keys are visited, or those that a causal call can see.  The user
functions are an ordinary pointwise group over one block of scores.  `lab_flash.h` has the other
parts.  The loops over batches, heads and rows are parallel.

Dao et al., FlashAttention (NeurIPS 2022); Dong et al., FlexAttention (MLSys 2025).
Inductor: `codegen/cpp_flex_attention_template.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from inductor_lab.compiler.codegen.attention.attention_call import Attention, Operand, Visit
from inductor_lab.compiler.codegen.cpp.cpp_ops import CTYPES
from inductor_lab.compiler.codegen.cpp.expressions import Writer
from inductor_lab.compiler.codegen.cpp.function import declaration, frame_function
from inductor_lab.compiler.codegen.cpp.printer import cpp_kernel
from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line, Parameter
from inductor_lab.compiler.codegen.parameters import with_symbols
from inductor_lab.compiler.ir.index import Size, is_int
from inductor_lab.compiler.ir.program import views_in

ROWS, COLUMNS = 64, 64
"""The queries and keys of a block.  Its scores fit in the L1 cache."""
FEW_ROWS = 16
MADE = ("out", "logs_rows", "tops_rows")
BEFORE = "keys_before"
"""The name of the visit of keys that all rows of a block see in a causal call."""
PLACES = 6
"""The number of position arguments of the user functions: batch, head, first row and column of the
block, last row and column."""
OF_THE_KERNEL = frozenset({"parts", "threads"})
"""The passes that distribute work over threads.  The kernel itself does this."""


def block_of(attention: Attention) -> tuple[int, int]:
    """Return the number of rows and columns of a block of scores.  Rows fill vector lanes."""
    lengths = (attention.query.shape[2], attention.sparse[0])
    few = any(isinstance(n, int) and n <= FEW_ROWS for n in lengths)
    return FEW_ROWS if few else ROWS, COLUMNS


def forward(
    name: str, attention: Attention, visits: tuple[Visit, ...],
    made: Mapping[str, Operand], device: str,
) -> Kernel:  # fmt: skip
    """Return the forward kernel.  Its results are those of these three that are in `made`:

    out         the result [B, Hq, M, Dv]
    logs_rows   for each row, the base-2 logarithm of the sum of its powers
    tops_rows   for each row, its largest score
    """
    call = attention
    lists = {name: tensor for visit in visits for name, tensor in visit.listed.items()}
    given = {f"in{n}": tensor for n, tensor in enumerate(call.given)}
    read = {"query": call.query, "key": call.key, "value": call.value, **lists, **given}
    inner = {visit.name: cpp_kernel(visit.inner.group, visit.inner.schedule.program.buffers,
                                    f"{name}_{visit.name}", off=OF_THE_KERNEL)
             for visit in visits}  # fmt: skip
    parameters = with_symbols(
        (*(Parameter(n, "in", n, tensor.dtype) for n, tensor in read.items()),
         *(Parameter(n, "out", n, tensor.dtype) for n, tensor in made.items())),
        [n for t in (*read.values(), *made.values()) for n in (*t.shape, *t.stride)],
        [p.symbol for kernel in inner.values() for p in kernel.parameters if p.symbol is not None],
    )  # fmt: skip
    write = _Lines(call, {**read, **made}, Writer(parameters))
    head = f'extern "C" LAB_EXPORT int {name}({", ".join(map(declaration, parameters))})'
    body = (Line(f"    {line}", call.origins) for line in write.body(visits, inner))
    lines = [line for kernel in inner.values() for line in kernel.code.lines]
    lines = [replace(line, origins=call.origins) for line in lines]
    first = visits[0].inner
    code = Code.of([*lines, *frame_function(head, body, checked=True)])
    return Kernel(
        name, "cpp", device, code, parameters, first.group, first.schedule.program.buffers
    )


@dataclass
class _Lines:
    """Prints the lines of the function; `tensors` are its arguments."""

    call: Attention
    tensors: dict[str, Operand]
    text: Writer

    def size(self, size: Size) -> str:
        return self.text.size(size)

    def index(self, name: str, *at: str) -> str:
        """Return the index of an element, given its positions in the first dimensions."""
        tensor = self.tensors[name]
        steps = zip(at, tensor.shape, tensor.stride, strict=False)
        parts = [position if is_int(stride, 1) else f"{self.size(stride)} * {position}"
                 for position, size, stride in steps if not is_int(size, 1)]  # fmt: skip
        return " + ".join(parts) or "0"

    def rows(self, name: str, *at: str) -> str:
        """Return the address of a block of rows, and the strides of its rows and columns."""
        strides = map(self.size, self.tensors[name].stride[2:])
        return ", ".join([f"{name} + {self.index(name, *at)}", *strides])

    def body(self, visits: tuple[Visit, ...], inner: dict[str, Kernel]) -> Iterator[str]:
        query, value, by = self.call.query, self.call.value, self.call.shared_by
        rows, columns = block_of(self.call)
        length, listed = self.size(query.shape[2]), self.call.sparse[0]
        numbers = f"{rows}, {columns}, {query.shape[3]}, {value.shape[3]}"
        out, *statistics = (self.rows(n, "b", "h", "first") for n in MADE if n in self.tensors)
        yield from (
            f"const int64_t listed = lab_minimum<int64_t>({listed}, {length});",
            f"const int64_t parts = (listed + {rows - 1}) / {rows};",
            f"const int64_t all_parts = ({length} + listed - 1) / listed * parts;",
            f"const int64_t heads = {query.shape[1]}, batch = {self.size(query.shape[0])};",
            "std::atomic<int64_t> next{0};",
            "#pragma omp parallel reduction(|: bad)",
            "for (int64_t task; (task = next++) < batch * heads * all_parts;) {",
            "    const int64_t b = task / all_parts / heads, h = task / all_parts % heads;",
            "    const int64_t part = task % all_parts;",
            f"    const int64_t block = part / parts, shared = {f'h / {by}' if by > 1 else 'h'};",
            f"    const int64_t first = listed * block + part % parts * {rows};",
            f"    const int64_t beyond = lab_minimum<int64_t>(listed * (block + 1), {length});",
            "    if (first >= beyond) continue;",
            f"    lab_flash<{CTYPES[query.dtype]}, {numbers}> at(b, h, first, beyond);",
            f"    at.look({self.rows('query', 'b', 'h', 'first')});",
        )
        for visit in visits:
            visited = self.listed if visit.lists else self.all
            yield from (f"    {line}" for line in visited(visit, inner[visit.name], columns))
        yield f"    at.finish({out});"
        if statistics:
            yield f"    at.statistics({', '.join(statistics)});"
        yield "}"

    def all(self, visit: Visit, inner: Kernel, columns: int) -> Iterator[str]:
        """Yield the loop over all keys that a block of rows can see, or over a part of them.

        A causal call has a loop for keys before all rows of the block, and one for the others.
        """
        length = self.size(self.call.key.shape[2])
        begin, end = "0", length
        if visit.name == BEFORE:
            end = f"lab_minimum<int64_t>(first / {columns} * {columns}, {length})"
        elif self.call.causal:
            begin = f"first / {columns} * {columns}"
            end = f"lab_minimum<int64_t>(first + at.rows, {length})"
        yield f"for (int64_t j = {begin}, end = {end}; j < end; j += {columns}) {{"
        yield from (f"    {line}" for line in self.block(visit, inner))
        yield "}"

    def block(self, visit: Visit, inner: Kernel) -> Iterator[str]:
        """Yield the use of a block of keys: from `j` up to `end`, or as many as a block has."""
        yield from (
            f"at.products({self.rows('key', 'b', 'shared')}, j, end);",
            f"bad |= {inner.name}({', '.join(self.arguments(visit, inner))});",
            f"at.weigh({self.rows('value', 'b', 'shared')});",
        )

    def listed(self, visit: Visit, inner: Kernel, columns: int) -> Iterator[str]:
        """Yield the loops over the keys that are listed for a block of rows."""
        (counts, _), (indices, which) = visit.listed.items()
        counts += f"[{self.index(counts, 'b', 'h', 'block')}]"
        indices += f"[{self.index(indices, 'b', 'h', 'block', 'k')}]"
        listed, length = self.call.sparse[1], self.size(self.call.key.shape[2])
        most = self.size(which.shape[3])
        yield from (
            f"for (int64_t k = 0; k < lab_minimum<int64_t>({counts}, {most}); k++) {{",
            f"    const int64_t begin = {listed} * lab_maximum<int64_t>({indices}, 0);",
            f"    const int64_t end = lab_minimum<int64_t>(begin + {listed}, {length});",
            f"    for (int64_t j = begin; j < end; j += {columns}) {{",
            *(f"        {line}" for line in self.block(visit, inner)),
            "    }",
            "}",
        )

    def arguments(self, visit: Visit, inner: Kernel) -> Iterator[str]:
        """Yield the arguments of the user functions: blocks, user tensors, results and symbols."""
        program = visit.inner.schedule.program
        names = [name for name in program.inputs if isinstance(name, str)]
        names += [view.buffer for view in views_in(program.outputs)]
        blocks, made = visit.inner.blocks, visit.inner.made
        given = (f"in{n}" for n in range(len(self.call.given)))
        texts = (*(f"at.{n}" for n in blocks), *given, *(f"at.{n}" for n in made))
        known = dict(zip(names, texts, strict=True))
        for p in inner.parameters:
            yield self.text.symbols[p.symbol] if p.buffer is None else known[p.buffer]
