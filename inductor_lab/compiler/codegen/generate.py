"""Generate a kernel for each group: choose the language, and let equal groups share a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

from inductor_lab.compiler.base.errors import working_on
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.base.passes import switched_off
from inductor_lab.compiler.codegen.cpp.printer import cpp_kernel
from inductor_lab.compiler.codegen.cpu.passes import PASSES
from inductor_lab.compiler.codegen.dedupe_kernels import Twins, share_equal_texts
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.codegen.parameters import with_lengths
from inductor_lab.compiler.ir.program import Buffer, ExternCall, read_by, views_in
from inductor_lab.compiler.schedule.schedule import Group, Schedule


def generate_kernels(schedule: Schedule, options: Options) -> tuple[Kernel, ...]:
    """One kernel for each group, in execution order; equal kernels share one name.

    C++ for groups on the CPU; Triton for GPUs, for `options.target`, and if `options.language` is
    "triton".
    """
    buffers, results = schedule.program.buffers, results_of(schedule)
    printed = partial(_kernel, buffers=buffers, options=options, results=results)
    twins, kernels = Twins(buffers, results), []
    for group in schedule.groups:
        with working_on(group.origins):
            start = perf_counter()
            kernel = twins.kernel(group, printed)
            kernels.append(replace(kernel, seconds=perf_counter() - start))
    return tuple(share_equal_texts(kernels))


def results_of(schedule: Schedule) -> frozenset[str]:
    """Results of the graph that only the step that computes them reads.

    New values of inputs are excluded: their destination is already in the caches.
    """
    program = schedule.program
    found = {view.buffer for view in views_in(program.returned)}
    found -= {view.buffer for _, value in program.written_inputs for view in views_in(value)}
    for step in schedule.steps:
        nests = step.nests if isinstance(step, Group) else (step,)
        found -= {b for nest in nests for b in read_by(nest)} - {
            nest.buffer for nest in nests if not isinstance(nest, ExternCall)
        }
    return frozenset(found)


def _kernel(
    group: Group, buffers: Mapping[str, Buffer], options: Options, results: frozenset[str]
) -> Kernel:
    device = buffers[group.nests[0].buffer].device
    if _language(device, options) == "cpp":
        off, own = switched_off(PASSES, options.passes_off), results & group.stored
        make = partial(cpp_kernel, results=own, off=off, check_bounds=options.check_bounds)
        return make(group, buffers, f"cpp_{group.name}")
    target = options.target.split(":")[0] if options.target else device
    kernel = triton_kernel(group, buffers, f"triton_{group.name}", device=target)
    return replace(kernel, parameters=with_lengths(kernel.parameters, options.check_bounds))


def triton_kernel(*args: Any, **kwargs: Any) -> Kernel:
    """The kernel in Triton.  The printer is imported on first use: a CPU does not need it."""
    from inductor_lab.compiler.codegen.triton import printer

    return printer.triton_kernel(*args, **kwargs)


def _language(device: str, options: Options) -> str:
    if options.target is not None:
        return "triton"
    return options.language or ("cpp" if device == "cpu" else "triton")
