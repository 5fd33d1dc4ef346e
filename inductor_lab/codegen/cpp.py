"""C++ for the CPU: a group as one function, a graph's functions as one source.

    cpu_tree     the loops and what is computed in them, made fast (`codegen/cpu/passes.py`)
    Printer      the lines (`codegen/cpp_statements.py`)

Inductor: `codegen/cpp.py`, `CppScheduling` and `KernelGroup`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from inductor_lab.codegen.cpp_combo import combo_kernel, declared
from inductor_lab.codegen.cpp_header import header_lines
from inductor_lab.codegen.cpp_ops import CPP_OPS
from inductor_lab.codegen.cpp_statements import STATUS, Printer
from inductor_lab.codegen.cpp_text import Writer
from inductor_lab.codegen.cpu.passes import cpu_tree
from inductor_lab.codegen.kernel import Code, Kernel, Line, heading, merged
from inductor_lab.codegen.parameters import with_lengths
from inductor_lab.ir.program import Buffer
from inductor_lab.schedule.result import Group


def cpp_kernel(
    group: Group,
    buffers: Mapping[str, Buffer],
    name: str,
    table: Mapping[str, str] = CPP_OPS,
    results: Collection[str] = (),
    off: Set[str] = frozenset(),
    check_bounds: bool = False,
) -> Kernel:
    """The C++ function of a group; `results` are buffers that no other step of the graph reads,
    `off` the passes that are left out.

    It takes the addresses of the buffers (with their lengths, if it is to `check_bounds`) and the
    values of the symbols (int64).  It returns 0, or what went wrong: `cpp_statements.OUTSIDE`
    (nothing out of range is read) and `BY_ZERO`.
    """
    if group.combined:
        return combo_kernel(group, buffers, name, table, off, check_bounds)
    made = cpu_tree(group, buffers, results=results, off=off)
    printer = Printer(made.tree, Writer(made.parameters, table))
    parameters = with_lengths(made.parameters, check_bounds)
    arguments = ", ".join(map(declared, parameters))
    if group.origins:
        printer.line(heading(group.origins))
    with printer.block(f'extern "C" LAB_EXPORT int {name}({arguments})'):
        if printer.checked:
            printer.line(f"int64_t {STATUS} = 0;")
        printer.whole()
        printer.line(f"return (int){STATUS};" if printer.checked else "return 0;")
    device = buffers[group.nests[0].buffer].device
    return Kernel(name, "cpp", device, Code.of(printer.lines), parameters, group, buffers)


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
