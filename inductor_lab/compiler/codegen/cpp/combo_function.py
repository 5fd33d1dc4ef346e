"""Prints a combo in C++: one function per distinct part, and one parallel region that calls them.

    static int part0(const float* in0, float* out0) {       // 2,359,296 elements, in each thread
        #pragma omp for simd nowait                         // threads share the loop
        ...
    extern "C" lab_only_calls int cpp_fused_mul_0(...) {
        #pragma omp parallel
        {
            part0(in0, out0);
            part0(in1, out1);
            #pragma omp single nowait                       // small parts: one thread runs them
            {
                part1(in2, out2);
                part2(in3, out3);
            }
        }

Parts with the same text share one function.  A hundred parameters with three different sizes need
three functions.  The function names start with the name of the combo, so they are unique in the
source.

Inductor: no combo kernels in `CppScheduling`; `codegen/triton_combo_kernel.py` for GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inductor_lab.compiler.codegen.cpp.function import (
    Function,
    PrintOptions,
    declaration,
    frame_function,
    print_function,
)
from inductor_lab.compiler.codegen.cpp.statements import STATUS
from inductor_lab.compiler.codegen.cpu.plan import GRAIN
from inductor_lab.compiler.codegen.kernel import Code, Kernel, Line, Parameter, heading, merged
from inductor_lab.compiler.codegen.parameters import kernel_parameters, with_lengths, with_symbols
from inductor_lab.compiler.codegen.tree.build import full_tree
from inductor_lab.compiler.codegen.tree.inline_temps import tidy
from inductor_lab.compiler.ir.program import Buffer
from inductor_lab.compiler.schedule.schedule import Group


def combo_kernel(
    group: Group, buffers: Mapping[str, Buffer], name: str, options: PrintOptions
) -> Kernel:
    """Return the kernel: the functions of the parts, then the C++ function of the combo."""
    trees = (tidy(full_tree(part, buffers)) for part in group.combined)
    parameters = kernel_parameters(tuple(stmt for tree in trees for stmt in tree), buffers)
    parts = [print_function(part, buffers, options, team=True) for part in group.combined]
    parameters = with_symbols(parameters, [part.work for part in parts])
    parameters = with_lengths(parameters, options.check_bounds)
    names: dict[tuple[str, ...], str] = {}
    lines: list[Line] = []
    for part in parts:
        names.setdefault(part.text, f"{name}_part{len(names)}")
    for text, function in names.items():
        alike = [part for part in parts if part.text == text]
        head, body = f"static int {function}({alike[0].arguments})", merged(p.lines for p in alike)
        lines += [*frame_function(head, body, alike[0].checked), Line("", statement=False)]
    calls = _Calls(parameters, parts, names, any(part.checked for part in parts))
    arguments = ", ".join(map(declaration, parameters))
    head = f'extern "C" lab_only_calls LAB_EXPORT int {name}({arguments})'
    lines += [Line(heading(group.origins), statement=False)]
    lines += frame_function(head, calls.lines(), calls.checked)
    device = buffers[group.nests[0].buffer].device
    return Kernel(name, "cpp", device, Code.of(lines), parameters, group, buffers)


@dataclass
class _Calls:
    """The body of the combo's function: which thread calls which part."""

    parameters: tuple[Parameter, ...]
    parts: list[Function]
    functions: Mapping[tuple[str, ...], str]
    checked: bool

    def lines(self) -> Iterator[Line]:
        work = sum((part.work for part in self.parts), 0)
        if isinstance(work, int) and work < GRAIN:
            yield from (self.call(part, 1) for part in self.parts)
            return
        status = f" reduction(| : {STATUS})" if self.checked else ""
        yield Line(f"    #pragma omp parallel{status}", statement=False)
        yield Line("    {", statement=False)
        for bundle in bundles(self.parts):
            if bundle[0].shared:
                yield self.call(bundle[0], 2)
                continue
            yield Line("        #pragma omp single nowait", statement=False)
            yield Line("        {", statement=False)
            yield from (self.call(part, 3) for part in bundle)
            yield Line("        }", statement=False)
        yield Line("    }", statement=False)

    def call(self, part: Function, depth: int) -> Line:
        given = {(p.buffer, p.symbol): p.name for p in self.parameters}
        function = self.functions[part.text]
        arguments = ", ".join(given[p.buffer, p.symbol] for p in part.parameters)
        status = f"{STATUS} |= " if self.checked else ""
        return Line("    " * depth + f"{status}{function}({arguments});", part.origins)


def bundles(parts: list[Function]) -> Iterator[list[Function]]:
    """Yield parallel parts one by one, then serial parts in bundles of at least `GRAIN` work."""
    yield from ([part] for part in parts if part.shared)
    bundle: list[Function] = []
    for part in parts:
        if not part.shared:
            bundle.append(part)
            work = sum((p.work for p in bundle), 0)
            if not isinstance(work, int) or work >= GRAIN:
                yield bundle
                bundle = []
    if bundle:
        yield bundle
