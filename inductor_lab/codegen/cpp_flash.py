"""Attention as a C++ kernel that goes through keys block by block and keeps no matrix of scores, with
the user's functions in its midst (`accelerate/flex_attention.py` says what is computed).

    lab_flash<float, 64, 64, 128, 128> at(b, h, first, beyond);     some rows of one head
    at.look(query + ...);
    for (int64_t k = 0; k < shown_keys_counts[...]; k++) {          keys that the mask may show
        at.products(key + ...);
        bad |= cpp_flex_attention_shown_keys(at.scores, ...);       what the user's functions make
        at.weigh(value + ...);
    }
    at.finish(out + ...);

The user's functions are a pointwise group as any other, of one block of scores; `lab_flash.h` has
the rest.  Threads share batches, heads and rows.

Dao et al., FlashAttention (NeurIPS 2022); Dong et al., FlexAttention (MLSys 2025).
Inductor: `codegen/cpp_flex_attention_template.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from inductor_lab.codegen.attention import Attention, Operand, Visit
from inductor_lab.codegen.cpp import cpp_kernel
from inductor_lab.codegen.cpp_function import declared, framed
from inductor_lab.codegen.cpp_ops import CTYPES
from inductor_lab.codegen.cpp_text import Writer
from inductor_lab.codegen.kernel import Code, Kernel, Line, Parameter
from inductor_lab.codegen.parameters import with_symbols
from inductor_lab.ir.index import Size, is_int
from inductor_lab.ir.program import views_in

ROWS, COLUMNS = 64, 64
"""Queries and keys at a time: their scores stay in the first cache."""
FEW_ROWS = 16
PLACES = 6
"""Where a block of scores is, as the user's functions are told it: batch, head, first row and column,
last row and column of all that there are."""
OF_THE_KERNEL = frozenset({"parts", "threads"})
"""Passes that share work among threads, which the kernel has done."""


def block_of(attention: Attention) -> tuple[int, int]:
    """How many rows and columns of scores are at hand; rows fill vector lanes."""
    rows = attention.query.shape[2]
    return FEW_ROWS if isinstance(rows, int) and rows <= FEW_ROWS else ROWS, COLUMNS


def forward(
    name: str, attention: Attention, visits: tuple[Visit, ...],
    made: tuple[Operand, Operand, Operand], device: str,
) -> Kernel:  # fmt: skip
    """The result [B, Hq, M, Dv]; of each row the logarithm to base 2 of the sum of its powers, and
    its largest score."""
    call = attention
    lists = {f"{visit.name}_{part}": getattr(visit, part)
             for visit in visits for part in ("counts", "indices")}  # fmt: skip
    given = {f"in{n}": tensor for n, tensor in enumerate(call.given)}
    read = {"query": call.query, "key": call.key, "value": call.value, **lists, **given}
    written = dict(zip(("out", "logs_rows", "tops_rows"), made, strict=True))
    inner = {visit.name: cpp_kernel(visit.inner.group, visit.inner.schedule.program.buffers,
                                    f"{name}_{visit.name}", off=OF_THE_KERNEL)
             for visit in visits}  # fmt: skip
    parameters = with_symbols(
        (*(Parameter(n, "in", n, tensor.dtype) for n, tensor in read.items()),
         *(Parameter(n, "out", n, tensor.dtype) for n, tensor in written.items())),
        [n for t in (*read.values(), *made) for n in (*t.shape, *t.stride)],
        [p.symbol for kernel in inner.values() for p in kernel.parameters if p.symbol is not None],
    )  # fmt: skip
    write = _Lines(call, read | written, Writer(parameters))
    head = f'extern "C" LAB_EXPORT int {name}({", ".join(map(declared, parameters))})'
    body = (Line(f"    {line}", call.origins) for line in write.body(visits, inner))
    lines = [line for kernel in inner.values() for line in kernel.code.lines]
    lines = [replace(line, origins=call.origins) for line in lines]
    first = visits[0].inner
    code = Code.of([*lines, *framed(head, body, checked=True)])
    return Kernel(
        name, "cpp", device, code, parameters, first.group, first.schedule.program.buffers
    )


@dataclass
class _Lines:
    """The lines of the function, which is given `tensors`."""

    call: Attention
    tensors: dict[str, Operand]
    text: Writer

    def size(self, size: Size) -> str:
        return self.text.size(size)

    def place(self, name: str, *at: str) -> str:
        """The address of an element, given its positions in the first dimensions."""
        tensor = self.tensors[name]
        steps = zip(at, tensor.shape, tensor.stride, strict=False)
        return " + ".join([name, *(f"{self.size(stride)} * {position}"
                                   for position, size, stride in steps
                                   if not is_int(size, 1))])  # fmt: skip

    def strides(self, name: str) -> str:
        """Those of a tensor's rows, and of numbers in a row."""
        return ", ".join(map(self.size, self.tensors[name].stride[2:]))

    def body(self, visits: tuple[Visit, ...], inner: dict[str, Kernel]) -> Iterator[str]:
        query, value, shared = self.call.query, self.call.value, self.call.shared_by
        rows, columns = block_of(self.call)
        length, listed = self.size(query.shape[2]), self.call.sparse[0]
        whole = f"lab_minimum<int64_t>({listed}, {length})"
        numbers = f"{rows}, {columns}, {query.shape[3]}, {value.shape[3]}"
        yield from (
            f"const int64_t block_rows = {whole}, parts = (block_rows + {rows - 1}) / {rows};",
            f"const int64_t all_parts = ({length} + block_rows - 1) / block_rows * parts;",
            "#pragma omp parallel for collapse(3) schedule(dynamic) reduction(|: bad)",
            f"for (int64_t b = 0; b < {self.size(query.shape[0])}; b++)",
            f"for (int64_t h = 0; h < {query.shape[1]}; h++)",
            "for (int64_t part = 0; part < all_parts; part++) {",
            f"    const int64_t block = part / parts, shared = h / {shared};",
            f"    const int64_t first = block_rows * block + part % parts * {rows};",
            f"    const int64_t beyond = lab_minimum<int64_t>(block_rows * (block + 1), {length});",
            "    if (first >= beyond) continue;",
            f"    lab_flash<{CTYPES[query.dtype]}, {numbers}> at(b, h, first, beyond);",
            f"    at.look({self.place('query', 'b', 'h', 'first')}, {self.strides('query')});",
        )
        for visit in visits:
            for line in self.visited(visit, inner[visit.name], columns):
                yield f"    {line}"
        logs, tops = (self.place(name, "b", "h", "first") for name in ("logs_rows", "tops_rows"))
        yield from (
            f"    at.finish({self.place('out', 'b', 'h', 'first')}, {self.strides('out')},",
            f"              {logs}, {self.strides('logs_rows')}, {tops}, {self.strides('tops_rows')});",
            "}",
        )

    def visited(self, visit: Visit, inner: Kernel, columns: int) -> Iterator[str]:
        """The loops over keys that are listed for a block of rows."""
        counts = self.place(f"{visit.name}_counts", "b", "h", "block")
        indices = self.place(f"{visit.name}_indices", "b", "h", "block", "k")
        listed, length = self.call.sparse[1], self.size(self.call.key.shape[2])
        most = self.size(visit.indices.shape[3])
        yield from (
            f"for (int64_t k = 0; k < lab_minimum<int64_t>(*({counts}), {most}); k++) {{",
            f"    const int64_t begin = {listed} * lab_maximum<int64_t>(*({indices}), 0);",
            f"    const int64_t end = lab_minimum<int64_t>(begin + {listed}, {length});",
            f"    for (int64_t j = begin; j < end; j += {columns}) {{",
            f"        at.products({self.place('key', 'b', 'shared')}, {self.strides('key')}, j, end);",
            f"        bad |= {inner.name}({', '.join(self.arguments(visit, inner))});",
            f"        at.weigh({self.place('value', 'b', 'shared')}, {self.strides('value')});",
            "    }",
            "}",
        )

    def arguments(self, visit: Visit, inner: Kernel) -> Iterator[str]:
        """What the user's functions are given: what is at hand, and tensors of the user's."""
        program = visit.inner.schedule.program
        names = [name for name in program.inputs if isinstance(name, str)]
        blocks = [f"at.{block}" for block in visit.inner.blocks]
        known = dict(zip(names, [*blocks, *(f"in{n}" for n in range(len(names)))], strict=False))
        made = (f"at.{name}" for name in visit.inner.made)
        known |= {view.buffer: name for view, name in zip(views_in(program.outputs), made)}
        for p in inner.parameters:
            yield self.text.symbols[p.symbol] if p.buffer is None else known[p.buffer]
