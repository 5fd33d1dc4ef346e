"""Prints the tree of a group as the body of a C++ function.

extern "C" LAB_EXPORT int cpp_fused_add_0(const float* in0, float* out0) {
    int64_t bad = 0;                       if the kernel has checks
    ...
    return (int)bad;
}
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

import torch

from inductor_lab.compiler.codegen.cpp.cpp_ops import CTYPES
from inductor_lab.compiler.codegen.cpp.expressions import Writer
from inductor_lab.compiler.codegen.cpp.statements import STATUS, Printer
from inductor_lab.compiler.codegen.cpu.passes import cpu_tree
from inductor_lab.compiler.codegen.kernel import Line, Parameter
from inductor_lab.compiler.codegen.parameters import with_lengths
from inductor_lab.compiler.ir.expr import Origins
from inductor_lab.compiler.ir.index import Size
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group


@dataclass(frozen=True)
class PrintOptions:
    """How groups are printed: the table of operations, and the passes that are `off`."""

    table: Mapping[str, str]
    off: Set[str]
    check_bounds: bool


@dataclass(frozen=True)
class Function:
    """The body and parameters of a function.

    `work` is the number of operations.  `shared` means that its loops run in parallel.  `checked`
    means that it checks indices or divisors.
    """

    lines: tuple[Line, ...]
    parameters: tuple[Parameter, ...]
    work: Size
    shared: bool
    checked: bool
    origins: Origins

    @property
    def arguments(self) -> str:
        return ", ".join(map(declaration, self.parameters))

    @property
    def text(self) -> tuple[str, ...]:
        """The declared parameters and the lines.  Functions with equal texts can be shared."""
        return (self.arguments, *(line.text for line in self.lines))


def print_function(
    group: Group,
    buffers: Mapping[str, Buffer],
    options: PrintOptions,
    *,
    results: Collection[str] = (),
    team: bool = False,
) -> Function:
    """Print the function of a group that is not a combo; see `cpu_tree`."""
    made = cpu_tree(group, buffers, results=results, off=options.off, team=team)
    printer = Printer(made.tree, Writer(made.parameters, options.table))
    printer.depth = 1
    printer.body(made.tree)
    parameters = with_lengths(made.parameters, options.check_bounds)
    shared, checked = made.plan.threads > 0, printer.checked
    return Function(
        tuple(printer.lines), parameters, made.plan.work, shared, checked, group.origins
    )


def frame_function(head: str, body: Iterable[Line], checked: bool) -> Iterator[Line]:
    """Yield the lines of a complete function: its head, the body and the return statement."""
    yield Line(f"{head} {{", statement=False)
    if checked:
        yield Line(f"    int64_t {STATUS} = 0;", statement=False)
    yield from body
    yield Line(f"    return (int){STATUS};" if checked else "    return 0;", statement=False)
    yield Line("}", statement=False)


def declaration(parameter: Parameter) -> str:
    """Return the C++ declaration of a parameter.

    Bools are read as bytes, because GCC compiles a ternary on a `bool` from memory to a branch.
    """
    if parameter.dtype is None:
        return f"int64_t {parameter.name}"
    element = CTYPES[parameter.dtype]
    if parameter.role == "in":
        dtype = torch.uint8 if parameter.dtype is torch.bool else parameter.dtype
        element = f"const {CTYPES[dtype]}"
    pointer = f"lab_checked<{element}>" if parameter.checked else f"{element}*"
    return f"{pointer} {parameter.name}"
