"""Calls the hooks of the available accelerators.

This is the only file of the compiler that imports `accelerate/`.  Without that folder, everything
still compiles, but to slower programs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch.fx import GraphModule

from inductor_lab.compiler.accelerator import Accelerator
from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.base.passes import Pass, add_before, optional
from inductor_lab.compiler.codegen.cpu import passes as cpu
from inductor_lab.compiler.codegen.host.host_program import HELPERS
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.lower.passes import pass_list
from inductor_lab.compiler.rewrite import passes as rewrite
from inductor_lab.compiler.runtime.executable import Executable
from inductor_lab.compiler.runtime.toolchain.background_compile import BackgroundValue
from inductor_lab.compiler.schedule import passes as schedule
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.torch_door.torch_aot import Around
from inductor_lab.compiler.torch_door.torch_names import missing

ACCELERATORS: tuple[Accelerator, ...]
try:
    from inductor_lab.compiler.accelerate.registration import ACCELERATORS
except ModuleNotFoundError as error:
    if error.name not in (f"{__package__}.accelerate", f"{__package__}.accelerate.registration"):
        raise
    ACCELERATORS = ()

NAMES = (
    "attention", "bare_calls", "convolutions", "libraries", "matmul_kernels", "packed_weights",
    "pool", "step_runs", "warm_graphs",
)  # fmt: skip
"""The values of `accelerators_off`; including accelerators that were deleted."""

LISTS: dict[str, dict[str, Pass]] = {
    "rewrite": rewrite.PASSES,
    "lower": pass_list.PASSES,
    "schedule": schedule.PASSES,
    "codegen": cpu.PASSES,
}
"""The passes of each stage, by name, in the order in which they run."""

for _one in ACCELERATORS:
    HELPERS.update(_one.helpers)
    for _added in _one.passes:
        add_before(LISTS[_added.level], _added.step, _added.before)


def effective_options(options: Options) -> Options:
    """Return the options with all disabled accelerators in `accelerators_off`.

    Other options that would enable them are turned off too.  An accelerator is disabled if
    `options.accelerators_off` names it, if torch lacks a name that it needs (`torch_names.toml`),
    or if it was deleted.  Raises BadOption for an unknown name
    here and in `passes_off`.
    """
    asked = options.accelerators_off
    BadOption.refuse_unknown("accelerators_off", asked, (*NAMES, "all"))
    known = sorted(name for table in LISTS.values() for name in optional(table))
    BadOption.refuse_unknown("passes_off", options.passes_off, (*known, "all"))
    there = {one.name for one in ACCELERATORS if not (one.needs and missing(one.needs))}
    off = {*NAMES} if "all" in asked else {*asked, *NAMES} - (there - {*asked})
    added = {one.step.name for each in ACCELERATORS if each.name in off for one in each.passes}
    return replace(
        options,
        accelerators_off=tuple(sorted(off)),
        matmul="aten" if "libraries" in off else options.matmul,
        memory_pool=0.0 if "pool" in off else options.memory_pool,
        pack_weights=options.pack_weights and "packed_weights" not in off,
        passes_off=tuple(sorted({*options.passes_off, *added})),
    )


_STARTED: set[tuple[Callable[..., Any], tuple[Any, ...]]] = set()


def work_ahead(inputs: Sequence[Any], options: Options) -> None:
    """Let a thread compile what accelerators need for a graph, once per process."""
    options = effective_options(options)
    hooks = (one.ahead for one in ACCELERATORS if one.name not in options.accelerators_off)
    wanted = (job for ahead in hooks if ahead for job in ahead(inputs, options))
    jobs = [job for job in wanted if job not in _STARTED]
    if jobs:
        _STARTED.update(jobs)
        BackgroundValue(lambda: [function(*given) for function, given in jobs])


def edit_joint(module: GraphModule, options: Options) -> None:
    """Let accelerators edit a joint graph before it is partitioned."""
    options = effective_options(options)
    for one in ACCELERATORS:
        if one.joint and one.name not in options.accelerators_off:
            one.joint(module, frozenset((*options.rewrites_off, *options.passes_off)))


def before_load(planned: Schedule, options: Options) -> None:
    for one in ACCELERATORS:
        if one.before_load:
            one.before_load(planned, options)


def shortened(
    executable: Executable, planned: Schedule, kernels: Sequence[Kernel], options: Options,
    traces: Mapping[str, str],
) -> Any:  # fmt: skip
    """Return the call of an executable, or one that does the same with less Python."""
    for one in ACCELERATORS:
        if one.shorten and one.name not in options.accelerators_off:
            return one.shorten(executable, planned, kernels, options, traces)
    return executable.call


def warm_key(options: Options, parameters: Collection[int], changed: str | None) -> str:
    """Return the key of a graph on disk; "" if it must not be stored."""
    keys = [one.key(options, parameters, changed) for one in ACCELERATORS
            if one.key and changed is not None]  # fmt: skip
    return "".join(keys)


def around(
    module: GraphModule, inputs: Sequence[Any], key: str, found: Any, is_bare: bool
) -> Around:
    """Return the context for AOTAutograd's work on one graph."""
    for one in ACCELERATORS:
        if one.around:
            made: Around = one.around(module, inputs, key, found, is_bare)
            return made
    return Around()


def release_memory() -> int:
    """Return memory that compiled functions keep to the system; return its size in bytes.

    Live tensors stay valid.  The next calls allocate new memory, and pack their weights again.
    """
    return sum(one.release() for one in ACCELERATORS if one.release)


def pooled_memory() -> dict[int, bool]:
    """Return the blocks of memory that are kept for later calls: address → is it free now?"""
    found: dict[int, bool] = {}
    for one in ACCELERATORS:
        if one.pooled:
            found |= one.pooled()
    return found


def kept(call: Any, built_from: tuple[Any, ...] | None, traces: Any) -> Any:
    """Return a compiled call, in a form that AOTAutograd can store on disk if possible."""
    for one in ACCELERATORS:
        if one.keep:
            return one.keep(call, built_from, traces)
    return call
