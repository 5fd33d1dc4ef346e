"""Measures which matrix products our own kernels should compute on a GPU: `mode="max-autotune"`.

A library multiplies faster, but its epilogue is a separate kernel, which reads all results from
memory.  Therefore the graph is lowered and scheduled twice: with the library call, and with a loop
nest instead (`lower/ops/matmul_nests.py`).  The steps that differ are run as in the graph, and the
faster version is used.

    addmm (8192, 768) x (768, 768) float16: ATen 0.025 ms, Triton 0.023 ms: Triton

Inductor: `select_algorithm.py`, which measures templates against the library.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.codegen.dedupe_kernels import text_key
from inductor_lab.compiler.codegen.generate import generate_kernels
from inductor_lab.compiler.codegen.kernel import Kernel
from inductor_lab.compiler.ir.match_matmul import DTYPES
from inductor_lab.compiler.ir.matmul_ops import COMMON
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternCall,
    written_by,
)
from inductor_lab.compiler.library_choice import Choice
from inductor_lab.compiler.lower.graph import lower_graph
from inductor_lab.compiler.lower.ops.matmul_nests import VIEWS, mark
from inductor_lab.compiler.rewrite.facts import RewriteFacts
from inductor_lab.compiler.rewrite.rewrites import Fired
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.schedule import Group, Schedule
from inductor_lab.compiler.torch_door.torch_api import without_modes


def wants_own_products(options: Options) -> bool:
    """Do the options allow our own kernels for matrix products?"""
    tuned = options.mode.startswith("max-autotune") and options.matmul == "measured"
    return options.matmul == "triton" or (tuned and options.target is None)


def matmul_nests(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Mark the products that are to be loop nests, after measuring if the options ask for it."""
    options = facts.options
    if not wants_own_products(options):
        return
    nodes = [node for node in module.graph.nodes if _fits(node, options)]
    if not nodes:
        return
    if options.matmul == "triton":
        ours = frozenset(node.name for node in nodes)
    else:
        alike: dict[Any, list[Node]] = {}
        for node in nodes:
            alike.setdefault(_question(node), []).append(node)
        ours, choices = _measured(alike.values(), options, partial(_scheduled, module, facts))
        facts.choices.extend(choices)
    mark(module, ours)
    for node in nodes:
        if node.name in ours:
            yield Fired("matmul_nests", node.name, node.name, facts.span_of(node))


def _scheduled(module: GraphModule, facts: RewriteFacts, ours: frozenset[str]) -> Schedule:
    """The schedule of a graph with these products as loop nests."""
    mark(module, ours)
    lower = partial(lower_graph, module, facts.name, facts.options)
    return schedule_program(
        lower(writes=facts.writes, trained=facts.trained), facts.options.fusion
    )


def _fits(node: Node, options: Options) -> bool:
    """Is it a product of 16-bit matrices with static sizes, for Triton?"""
    if str(node.target) not in COMMON or any(value != 1 for value in node.kwargs.values()):
        return False
    made = node.meta["val"]
    here = options.matmul == "triton" and (options.target or options.language == "triton")
    sizes = (n for given in (node, *node.all_input_nodes) for n in given.meta["val"].shape)
    fixed = all(isinstance(size, int) for size in sizes)
    return bool(made.is_cuda or here) and made.dtype in DTYPES and fixed


def _factors(node: Node) -> tuple[torch.Tensor, torch.Tensor]:
    at, given = COMMON[str(node.target)].first, list[Any](node.args)
    return given[at].meta["val"], given[at + 1].meta["val"]


def _question(node: Node) -> Any:
    """Return a key that is equal for products with equal operands and equal users."""
    factors = tuple((tuple(f.shape), tuple(f.stride()), f.dtype) for f in _factors(node))
    return node.target, factors, tuple(sorted(str(user.target) for user in _users(node)))


def _users(node: Node) -> Iterator[Node]:
    for user in node.users:
        yield from _users(user) if user.target in VIEWS else (user,)


def _measured(
    alike: Iterable[list[Node]], options: Options, scheduled: Callable[[frozenset[str]], Schedule]
) -> tuple[frozenset[str], tuple[Choice, ...]]:
    """Measure one of each set of equal products, and apply the choice to all of them."""
    ours, choices = frozenset[str](), []
    plan = _Plan.of(scheduled(ours), options)
    try:
        for nodes in alike:
            seconds = _seconds(plan, _Plan.of(scheduled(ours | {nodes[0].name}), options))
            if seconds is None:
                continue
            choices.append(_choice(nodes[0], seconds))
            if choices[-1].chosen == "Triton":
                ours |= {node.name for node in nodes}
                plan = _Plan.of(scheduled(ours), options)
    except torch.OutOfMemoryError:
        warnings.warn("not enough memory to measure matrix products", stacklevel=2)
    return ours, tuple(choices)


def _choice(node: Node, seconds: Mapping[str, float]) -> Choice:
    first, second = _factors(node)
    rows, terms, columns = first.shape[-2], first.shape[-1], second.shape[-1]
    batch = first.shape[0] if first.ndim == 3 else 1
    name, dtype = str(node.target).split(".")[1], str(first.dtype).removeprefix("torch.")
    return Choice(name, (batch * rows, terms, columns), dtype, tuple(seconds.items()))


@dataclass(frozen=True)
class _Plan:
    """The kernels and products of a schedule, in order, by their text and their FX nodes."""

    steps: Mapping[Any, Kernel | ExternCall]
    buffers: Mapping[str, Buffer]
    options: Options

    @staticmethod
    def of(schedule: Schedule, options: Options) -> _Plan:
        kernels = iter(generate_kernels(schedule, options))
        steps: dict[Any, Kernel | ExternCall] = {}
        for step in schedule.steps:
            if isinstance(step, Group):
                kernel = next(kernels)
                steps[text_key(kernel), step.origins] = kernel
            elif step.op in COMMON:
                steps[step.op, step.origins] = step
        return _Plan(steps, schedule.program.buffers, options)

    def without(self, other: _Plan) -> list[Kernel | ExternCall]:
        """Return the steps that another plan does not have."""
        return [step for key, step in self.steps.items() if key not in other.steps]


def _seconds(library: _Plan, own: _Plan) -> dict[str, float] | None:
    """Return the seconds of the steps that differ in two plans; None if they cannot run alone."""
    from inductor_lab.compiler.runtime.triton.tune_blocks import seconds_of_each

    differing = library.without(own), own.without(library)
    kernels = [step for steps in differing for step in steps if isinstance(step, Kernel)]
    alone = all(k.language == "triton" and "asserts" not in k.launch for k in kernels)
    if not kernels or not alone or any(p.symbol is not None for k in kernels for p in k.parameters):
        return None
    with without_modes(), torch.no_grad(), torch.cuda.device(kernels[0].device):
        runs = [_Run(plan, steps) for plan, steps in zip((library, own), differing, strict=True)]
        named = dict(zip(("ATen", "Triton"), runs, strict=True))
        return seconds_of_each(named, (), {name: run.warm for name, run in named.items()})


class _Run:
    """Runs some steps of a plan in order, on their own memory.

    `warm` writes the buffers that the graph would have computed just before, but not parameters.
    """

    def __init__(self, plan: _Plan, steps: Iterable[Kernel | ExternCall]) -> None:
        self.plan = plan
        self.made: dict[str, torch.Tensor] = {}
        self.calls = [self._kernel(s) if isinstance(s, Kernel) else self._call(s) for s in steps]
        computed = (BufferKind.COMPUTED, BufferKind.EXTERN)
        recent = (t for name, t in self.made.items() if plan.buffers[name].kind in computed)
        self.recent = [tensor for tensor in recent if tensor.is_floating_point()]

    def __call__(self) -> None:
        for call in self.calls:
            call()

    def warm(self) -> None:
        for tensor in self.recent:
            tensor.neg_()

    def _kernel(self, kernel: Kernel) -> Callable[[], object]:
        from inductor_lab.compiler.runtime.triton.tune_blocks import tuned_kernel

        names = [p.buffer for p in kernel.parameters if p.buffer is not None]
        return partial(tuned_kernel(kernel, self.plan.options), *map(self._tensor, names))

    def _call(self, call: ExternCall) -> Callable[[], object]:
        (out,) = written_by(call)
        given = [self._view(a) if isinstance(a, BufferView) else a for a in call.args]
        function = getattr(torch, call.op.split(".")[1])  # it takes `out=`
        return partial(function, *given, out=self._tensor(out))

    def _view(self, view: BufferView) -> torch.Tensor:
        layout = view.layout
        return self._tensor(view.buffer).as_strided(layout.size, layout.stride, layout.offset)

    def _tensor(self, name: str) -> torch.Tensor:
        """Return a tensor for a buffer: random floats, or zeros, which are valid positions."""
        if name not in self.made:
            buffer = self.plan.buffers[name]
            size, stride = buffer.layout.size, buffer.layout.stride
            made = torch.empty_strided(size, stride, dtype=buffer.dtype, device=buffer.device)
            self.made[name] = made.normal_() if buffer.dtype.is_floating_point else made.zero_()
        return self.made[name]
