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

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

import torch

from inductor_lab.codegen.build import full_tree
from inductor_lab.codegen.cpp_ops import CTYPES
from inductor_lab.codegen.cpp_statements import STATUS, Printer
from inductor_lab.codegen.cpp_text import Writer
from inductor_lab.codegen.cpu.passes import cpu_tree
from inductor_lab.codegen.cpu.plan import GRAIN
from inductor_lab.codegen.kernel import Code, Kernel, Line, Parameter, heading, merged
from inductor_lab.codegen.parameters import kernel_parameters, with_lengths, with_symbols
from inductor_lab.codegen.tidy import tidy
from inductor_lab.ir.expr import Origins
from inductor_lab.ir.index import Size
from inductor_lab.ir.program import Buffer
from inductor_lab.schedule.result import Group


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
    off: Set[str],
    check_bounds: bool = False,
) -> Kernel:
    """The C++ function of a combo, after the functions of its parts."""
    trees = (tidy(full_tree(part, buffers)) for part in group.combined)
    parameters = kernel_parameters(tuple(stmt for tree in trees for stmt in tree), buffers)
    parts = [_part(part, buffers, table, off, check_bounds) for part in group.combined]
    parameters = with_symbols(parameters, [part.work for part in parts])
    parameters = with_lengths(parameters, check_bounds)
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
    group: Group,
    buffers: Mapping[str, Buffer],
    table: Mapping[str, str],
    off: Set[str],
    check_bounds: bool,
) -> Part:
    made = cpu_tree(group, buffers, off=off, team=True)
    printer = Printer(made.tree, Writer(made.parameters, table))
    printer.depth = 1
    printer.whole()
    plan = made.plan
    shared, lines = plan.threads > 0, tuple(printer.lines)
    parameters = with_lengths(made.parameters, check_bounds)
    return Part(lines, parameters, plan.work, shared, printer.checked, group.origins)


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
    element = CTYPES[parameter.dtype]
    if parameter.role == "in":
        dtype = torch.uint8 if parameter.dtype is torch.bool else parameter.dtype
        element = f"const {CTYPES[dtype]}"
    pointer = f"lab_checked<{element}>" if parameter.checked else f"{element}*"
    return f"{pointer} {parameter.name}"
