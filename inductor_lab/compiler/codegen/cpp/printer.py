"""Prints C++ for the CPU: one function for each group, and one source for each graph.

    cpu_tree     builds the loop tree and runs the passes over it (`codegen/cpu/passes.py`)
    Printer      prints the tree as lines (`codegen/cpp/statements.py`)
    frame_function       puts the lines into a function (`codegen/cpp/function.py`)

Inductor: `codegen/cpp.py`, `CppScheduling` and `KernelGroup`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from inductor_lab.compiler.codegen.cpp.combo_function import combo_kernel
from inductor_lab.compiler.codegen.cpp.cpp_ops import CPP_OPS
from inductor_lab.compiler.codegen.cpp.function import PrintOptions, frame_function, print_function
from inductor_lab.compiler.codegen.cpp.header import header_lines
from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line, heading, merged
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group


def cpp_kernel(
    group: Group,
    buffers: Mapping[str, Buffer],
    name: str,
    table: Mapping[str, str] = CPP_OPS,
    results: Collection[str] = (),
    off: Set[str] = frozenset(),
    check_bounds: bool = False,
) -> Kernel:
    """Return the C++ function of a group.

    `results` are buffers that no other step of the graph reads.  `off` has the names of passes to
    leave out.

    The function takes the addresses of the buffers (with their lengths if `check_bounds` is set)
    and the values of the symbols (int64).  It returns 0, or the bits of what went wrong:
    `statements.OUTSIDE` (nothing out of range is read) and `statements.BY_ZERO`.
    """
    options = PrintOptions(table, off, check_bounds)
    if group.combined:
        return combo_kernel(group, buffers, name, options)
    made = print_function(group, buffers, options, results=results)
    lines = [Line(heading(group.origins), statement=False)] if group.origins else []
    head = f'extern "C" LAB_EXPORT int {name}({made.arguments})'
    lines += frame_function(head, made.lines, made.checked)
    device = buffers[group.nests[0].buffer].device
    return Kernel(name, "cpp", device, Code.of(lines), made.parameters, group, buffers)


def translation_unit(kernels: Sequence[Kernel]) -> Code:
    """Return one source for all kernels of a graph: header entries, then the functions.

    Kernels with the same name share a function.  Its lines have the origins of all of them.
    """
    lines: list[Line] = []
    for twins in by_name(kernels).values():
        lines.append(Line("", statement=False))
        lines += merged(kernel.code.lines for kernel in twins)
    header = header_lines(line.text for line in lines)
    return Code.of([Line(text, statement=False) for text in header] + lines)


def by_name(kernels: Iterable[Kernel]) -> dict[str, list[Kernel]]:
    """Group kernels by name.  Kernels with the same name share one function."""
    found: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        found.setdefault(kernel.name, []).append(kernel)
    return found
