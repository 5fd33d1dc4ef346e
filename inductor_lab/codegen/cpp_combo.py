"""A combo in C++: one function for each kind of part, and one parallel region that calls them all.

    static int part0(const float* in0, float* out0) {       // 2,359,296 elements, in each thread
        #pragma omp for simd nowait                         // its share of them
        ...
    extern "C" lab_only_calls int cpp_fused_mul_0(...) {
        #pragma omp parallel
        {
            part0(in0, out0);
            part0(in1, out1);
            #pragma omp single nowait                       // small ones: for whoever comes first
            {
                part1(in2, out2);
                part2(in3, out3);
            }
        }

Parts with the same text are one function, so a hundred parameters of a few sizes take a few
functions.

Inductor: `CppScheduling` has none; `codegen/triton_combo_kernel.py` for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from inductor_lab.codegen.build import full_tree
from inductor_lab.codegen.cpp_ops import CTYPES
from inductor_lab.codegen.cpp_statements import STATUS, Statements
from inductor_lab.codegen.cpp_text import Writer
from inductor_lab.codegen.cpu_plan import GRAIN, CpuPlan, team_plan_of
from inductor_lab.codegen.kernel import Code, Kernel, Line, Parameter, heading, merged
from inductor_lab.codegen.parameters import kernel_parameters
from inductor_lab.codegen.tidy import tidy
from inductor_lab.codegen.tree import Stmt
from inductor_lab.ir.expr import Origins
from inductor_lab.ir.index import Size
from inductor_lab.ir.program import Buffer
from inductor_lab.schedule.result import Group

Printer = Callable[[tuple[Stmt, ...], tuple[Stmt, ...], Writer, CpuPlan], Statements]
"""How the statements of a tree, which is given in full and tidy, are printed."""


@dataclass(frozen=True)
class Part:
    """One part: its function, whose name is still open, and what it is called with."""

    lines: tuple[Line, ...]
    parameters: tuple[Parameter, ...]
    work: Size
    shared: bool
    checked: bool
    origins: Origins

    @property
    def text(self) -> tuple[str, ...]:
        """What makes two parts one function: their arguments, with their types, and their lines."""
        return (*map(declared, self.parameters), *(line.text for line in self.lines))


def combo_kernel(
    group: Group,
    buffers: Mapping[str, Buffer],
    name: str,
    table: Mapping[str, str],
    printer_of: Printer,
) -> Kernel:
    """The C++ function of a combo, after the functions of its parts."""
    fulls = [full_tree(part, buffers) for part in group.combined]
    trees = [tidy(full) for full in fulls]
    tree = tuple(stmt for tree in trees for stmt in tree)
    parameters = kernel_parameters(tree, buffers)
    parts = [
        _part(full, tree, buffers, table, printer_of, part.origins)
        for full, tree, part in zip(fulls, trees, group.combined, strict=True)
    ]
    names: dict[tuple[str, ...], str] = {}
    lines: list[Line] = []
    for part in parts:
        names.setdefault(part.text, f"part{len(names)}_{name.rpartition('_')[2]}")
    for text, function in names.items():
        alike = [part for part in parts if part.text == text]
        lines += _function(function, alike)
    lines += _Calls(name, parameters, parts, names, group.origins).lines()
    device = buffers[group.nests[0].buffer].device
    return Kernel(name, "cpp", device, Code.of(lines), parameters, group, buffers)


def _part(
    full: tuple[Stmt, ...],
    tree: tuple[Stmt, ...],
    buffers: Mapping[str, Buffer],
    table: Mapping[str, str],
    printer_of: Printer,
    origins: Origins,
) -> Part:
    parameters = kernel_parameters(tree, buffers)
    plan = team_plan_of(tree)
    printer = printer_of(full, tree, Writer(parameters, table), plan)
    printer.depth = 1
    printer.whole()
    shared = plan.threads > 0
    return Part(
        tuple(printer.lines), parameters, plan.work, shared, printer.checked, origins
    )


def _function(name: str, alike: list[Part]) -> Iterator[Line]:
    """One function for parts of one text; its lines come from the nodes of all of them."""
    first = alike[0]
    arguments = ", ".join(map(declared, first.parameters))
    yield Line(f"static int {name}({arguments}) {{", statement=False)
    if first.checked:
        yield Line(f"    int64_t {STATUS} = 0;", statement=False)
    yield from merged(part.lines for part in alike)
    yield Line(f"    return (int){STATUS};" if first.checked else "    return 0;", statement=False)
    yield Line("}", statement=False)
    yield Line("", statement=False)


@dataclass
class _Calls:
    """The function of the combo: which thread calls which part."""

    name: str
    parameters: tuple[Parameter, ...]
    parts: list[Part]
    functions: Mapping[tuple[str, ...], str]
    origins: Origins

    def lines(self) -> list[Line]:
        arguments = ", ".join(map(declared, self.parameters))
        checked = any(part.checked for part in self.parts)
        start = [Line(heading(self.origins), statement=False)]
        head = f'extern "C" lab_only_calls LAB_EXPORT int {self.name}({arguments}) {{'
        start += [Line(head, statement=False)]
        if checked:
            start += [Line(f"    int64_t {STATUS} = 0;", statement=False)]
        end = [Line(f"    return (int){STATUS};" if checked else "    return 0;", statement=False)]
        return [*start, *self.body(checked), *end, Line("}", statement=False)]

    def body(self, checked: bool) -> Iterator[Line]:
        work = sum((part.work for part in self.parts), 0)
        if isinstance(work, int) and work < GRAIN:
            yield from (self.call(part, 1, checked) for part in self.parts)
            return
        status = f" reduction(| : {STATUS})" if checked else ""
        yield Line(f"    #pragma omp parallel{status}", statement=False)
        yield Line("    {", statement=False)
        for bundle in bundles(self.parts):
            if bundle[0].shared:
                yield self.call(bundle[0], 2, checked)
                continue
            yield Line("        #pragma omp single nowait", statement=False)
            yield Line("        {", statement=False)
            yield from (self.call(part, 3, checked) for part in bundle)
            yield Line("        }", statement=False)
        yield Line("    }", statement=False)

    def call(self, part: Part, depth: int, checked: bool) -> Line:
        given = {(p.buffer, p.symbol): p.name for p in self.parameters}
        function = self.functions[part.text]
        arguments = ", ".join(given[p.buffer, p.symbol] for p in part.parameters)
        status = f"{STATUS} |= " if checked else ""
        return Line("    " * depth + f"{status}{function}({arguments});", part.origins)


def bundles(parts: list[Part]) -> Iterator[list[Part]]:
    """Parts that threads share, one by one and first; then the others, so many at a time that it
    is worth a thread's while."""
    yield from ([part] for part in parts if part.shared)
    bundle: list[Part] = []
    for part in parts:
        if not part.shared:
            bundle.append(part)
            work = sum((p.work for p in bundle), 0)
            if not isinstance(work, int) or work >= GRAIN:
                yield bundle
                bundle = []
    if bundle:
        yield bundle


def declared(parameter: Parameter) -> str:
    """A parameter as C++ declares it.

    Bools are read as bytes: GCC turns a choice by a `bool` from memory into a branch.
    """
    if parameter.dtype is None:
        return f"int64_t {parameter.name}"
    if parameter.role == "in":
        dtype = torch.uint8 if parameter.dtype is torch.bool else parameter.dtype
        return f"const {CTYPES[dtype]}* {parameter.name}"
    return f"{CTYPES[parameter.dtype]}* {parameter.name}"
