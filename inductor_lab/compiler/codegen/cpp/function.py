"""A C++ function: the lines of a group's tree, and the function that they stand in.

    extern "C" LAB_EXPORT int cpp_fused_add_0(const float* in0, float* out0) {
        int64_t bad = 0;                       where something is checked
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
class Making:
    """How groups are written: with the table of operations, without the passes that are `off`."""

    table: Mapping[str, str]
    off: Set[str]
    check_bounds: bool


@dataclass(frozen=True)
class Function:
    """A group as lines, what they are given, and whether they look at indices and divisors.

    `work` counts its operations; it is `shared` if threads share its loops.
    """

    lines: tuple[Line, ...]
    parameters: tuple[Parameter, ...]
    work: Size
    shared: bool
    checked: bool
    origins: Origins

    @property
    def arguments(self) -> str:
        return ", ".join(map(declared, self.parameters))

    @property
    def text(self) -> tuple[str, ...]:
        """What makes two of them one function: their arguments, with types, and their lines."""
        return (self.arguments, *(line.text for line in self.lines))


def printed(
    group: Group,
    buffers: Mapping[str, Buffer],
    making: Making,
    *,
    results: Collection[str] = (),
    team: bool = False,
) -> Function:
    """The function of a group that is no combo; see `cpu_tree`."""
    made = cpu_tree(group, buffers, results=results, off=making.off, team=team)
    printer = Printer(made.tree, Writer(made.parameters, making.table))
    printer.depth = 1
    printer.body(made.tree)
    parameters = with_lengths(made.parameters, making.check_bounds)
    shared, checked = made.plan.threads > 0, printer.checked
    return Function(
        tuple(printer.lines), parameters, made.plan.work, shared, checked, group.origins
    )


def framed(head: str, body: Iterable[Line], checked: bool) -> Iterator[Line]:
    """The lines in the frame of a function."""
    yield Line(f"{head} {{", statement=False)
    if checked:
        yield Line(f"    int64_t {STATUS} = 0;", statement=False)
    yield from body
    yield Line(f"    return (int){STATUS};" if checked else "    return 0;", statement=False)
    yield Line("}", statement=False)


def declared(parameter: Parameter) -> str:
    """A parameter as C++ declares it.

    Bools are read as bytes: GCC turns a choice by a `bool` from memory into a branch.
    """
    if parameter.dtype is None:
        return f"int64_t {parameter.name}"
    element = CTYPES[parameter.dtype]
    if parameter.role == "in":
        dtype = torch.uint8 if parameter.dtype is torch.bool else parameter.dtype
        element = f"const {CTYPES[dtype]}"
    pointer = f"lab_checked<{element}>" if parameter.checked else f"{element}*"
    return f"{pointer} {parameter.name}"
