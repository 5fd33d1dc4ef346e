"""C++ for the CPU: a group as one function, a graph's functions as one source.

    full_tree       the loops and what is computed in them
    keep_rows       what one loop over a row keeps for the next
    split_loops     loops without masks where their bounds are known
    share_columns   what windows that overlap have in common
    plan_of         which loop is threaded and which is SIMD
    RowScans, Columns   the lines

Inductor: `codegen/cpp.py`, `CppScheduling` and `KernelGroup`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from inductor_lab.codegen.build import full_tree
from inductor_lab.codegen.cpp_columns import Columns
from inductor_lab.codegen.cpp_combo import combo_kernel, declared
from inductor_lab.codegen.cpp_halves import rounded_as_floats
from inductor_lab.codegen.cpp_header import header_lines
from inductor_lab.codegen.cpp_ops import CPP_OPS
from inductor_lab.codegen.cpp_scans import RowScans
from inductor_lab.codegen.cpp_statements import STATUS, Statements
from inductor_lab.codegen.cpp_text import Writer
from inductor_lab.codegen.cpu_plan import CpuPlan, Simd, plan_of, point_loops, tiled_axes
from inductor_lab.codegen.kernel import Code, Kernel, Line, heading, merged
from inductor_lab.codegen.parameters import kernel_parameters, tree_loads
from inductor_lab.codegen.row_cache import Row, keep_in_result, keep_rows
from inductor_lab.codegen.split_loops import split_loops
from inductor_lab.codegen.tidy import tidy
from inductor_lab.codegen.tree import Loop, LoopKind, Stmt
from inductor_lab.codegen.windows import share_columns
from inductor_lab.ir.index import product
from inductor_lab.ir.program import Buffer
from inductor_lab.schedule.result import Group

STREAMED_BYTES = 16_000_000
"""Of a result, from which on it is written past the caches."""


def cpp_kernel(
    group: Group,
    buffers: Mapping[str, Buffer],
    name: str,
    table: Mapping[str, str] = CPP_OPS,
    results: Collection[str] = (),
) -> Kernel:
    """The C++ function of a group; `results` are buffers that no other step of the graph reads.

    It takes the addresses of the buffers and the values of the symbols (int64).  It returns 0, or
    what went wrong: `cpp_statements.OUTSIDE` (nothing out of range is read) and `BY_ZERO`.
    """
    if group.combined:
        return combo_kernel(group, buffers, name, table, _printer)
    full = full_tree(group, buffers)
    tree = tidy(full)
    parameters = kernel_parameters(tree, buffers)
    plan = replace(plan_of(tree), streamed=_streamed(tree, buffers, results))
    printer = _printer(full, tree, Writer(parameters, table), plan)
    arguments = ", ".join(map(declared, parameters))
    if group.origins:
        printer.line(heading(group.origins))
    with printer.block(f'extern "C" LAB_EXPORT int {name}({arguments})'):
        if printer.checked:
            printer.line(f"int64_t {STATUS} = 0;")
        printer.whole()
        printer.line(f"return (int){STATUS};" if printer.checked else "return 0;")
    device = buffers[group.nests[0].buffer].device
    code = Code.of(printer.lines)
    return Kernel(name, "cpp", device, code, parameters, group, buffers)


def translation_unit(kernels: Sequence[Kernel]) -> Code:
    """One source for all kernels of a graph: what they need of our headers, then the functions.

    Kernels of one name are one function; its lines come from the nodes of all of them.
    """
    lines: list[Line] = []
    for twins in by_name(kernels).values():
        lines.append(Line("", statement=False))
        lines += merged(kernel.code.lines for kernel in twins)
    header = header_lines(line.text for line in lines)
    return Code.of([Line(text, statement=False) for text in header] + lines)


def by_name(kernels: Iterable[Kernel]) -> dict[str, list[Kernel]]:
    """The kernels that share each function."""
    found: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        found.setdefault(kernel.name, []).append(kernel)
    return found


def _printer(
    full: tuple[Stmt, ...], tree: tuple[Stmt, ...], writer: Writer, plan: CpuPlan
) -> Statements:
    """`tree` is the full one, tidy."""
    if plan.simd is Simd.COLUMNS:
        return Columns(rounded_as_floats(tree), writer, plan)
    if plan.simd is Simd.INNER and not plan.inner_threads:
        kept, rows = _with_rows(full, plan.streamed)
        return RowScans(rounded_as_floats(tidy(kept)), writer, plan, rows)
    if plan.simd is Simd.POINTS and not tiled_axes(point_loops(tree)):
        split, rows = share_columns(split_loops(full, plan.threads), plan.threads)
        tree = tree if split == full else tidy(split)
        return RowScans(rounded_as_floats(tree), writer, plan, rows)
    return RowScans(rounded_as_floats(tree), writer, plan)


def _streamed(
    tree: tuple[Stmt, ...], buffers: Mapping[str, Buffer], results: Collection[str]
) -> frozenset[str]:
    """Results so large that they leave the caches before anybody reads them."""
    read = {load.buffer for load in tree_loads(tree)}
    sizes = {name: product(buffers[name].layout.size) for name in results if name not in read}
    return frozenset(
        name
        for name, size in sizes.items()
        if isinstance(size, int) and size * buffers[name].dtype.itemsize >= STREAMED_BYTES
    )


def _with_rows(
    body: tuple[Stmt, ...], streamed: Collection[str]
) -> tuple[tuple[Stmt, ...], tuple[Row, ...]]:
    """`keep_rows`, and `keep_in_result`, for the body of the innermost point loop."""
    for position, stmt in enumerate(body):
        if isinstance(stmt, Loop) and stmt.kind is LoopKind.PARALLEL:
            inside, rows = _with_rows(stmt.body, streamed)
            new = replace(stmt, body=inside)
            return (*body[:position], new, *body[position + 1 :]), rows
    kept, rows = keep_rows(body)
    return keep_in_result(kept, streamed), rows
