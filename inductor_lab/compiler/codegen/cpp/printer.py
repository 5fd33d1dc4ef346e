"""C++ for the CPU: a group as one function, a graph's functions as one source.

    cpu_tree     the loops and what is computed in them, made fast (`codegen/cpu/passes.py`)
    Printer      the lines (`codegen/cpp/statements.py`)
    framed       the function around them (`codegen/cpp/function.py`)

Inductor: `codegen/cpp.py`, `CppScheduling` and `KernelGroup`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from inductor_lab.compiler.codegen.cpp.combo_function import combo_kernel
from inductor_lab.compiler.codegen.cpp.cpp_ops import CPP_OPS
from inductor_lab.compiler.codegen.cpp.function import Making, framed, printed
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
    """The C++ function of a group; `results` are buffers that no other step of the graph reads,
    `off` the passes that are left out.

    It takes the addresses of the buffers (with their lengths, if it is to `check_bounds`) and the
    values of the symbols (int64).  It returns 0, or what went wrong: `cpp_statements.OUTSIDE`
    (nothing out of range is read) and `BY_ZERO`.
    """
    making = Making(table, off, check_bounds)
    if group.combined:
        return combo_kernel(group, buffers, name, making)
    made = printed(group, buffers, making, results=results)
    lines = [Line(heading(group.origins), statement=False)] if group.origins else []
    head = f'extern "C" LAB_EXPORT int {name}({made.arguments})'
    lines += framed(head, made.lines, made.checked)
    device = buffers[group.nests[0].buffer].device
    return Kernel(name, "cpp", device, Code.of(lines), made.parameters, group, buffers)


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
