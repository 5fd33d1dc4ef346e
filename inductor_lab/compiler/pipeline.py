"""The table of contents of the compiler: the phases as named steps, in order.

Inductor: `compile_fx.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch.fx import GraphModule

from inductor_lab.compiler import accelerators
from inductor_lab.compiler.accelerators import effective_options
from inductor_lab.compiler.autograd.graphs import JointGraph, Partition
from inductor_lab.compiler.autograd.joint import joint_graph, unify_gradient_symbols
from inductor_lab.compiler.autograd.partition import partition
from inductor_lab.compiler.base.errors import CompilerDefect, LabError, NotReplayed, Stumbled
from inductor_lab.compiler.base.garbage import no_collection
from inductor_lab.compiler.base.observer import Observer, Stopwatch
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.capture.capture import AsCaptured
from inductor_lab.compiler.capture.eager import eager_cost, snapshot_input
from inductor_lab.compiler.capture.eager_cost import EagerCost
from inductor_lab.compiler.capture.eager_fallback import (
    refused,
    warn_eager_fallback,
    why_as_captured,
)
from inductor_lab.compiler.capture.eager_rules import captured, where_storage_begins
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.compiler.capture.fx_to_record import fx_graph
from inductor_lab.compiler.capture.lost_writes import loses_writes
from inductor_lab.compiler.capture.memory import may_overlap
from inductor_lab.compiler.capture.refused_writes import refused_write, with_lines
from inductor_lab.compiler.codegen.cpu.display_trees import kernel_trees
from inductor_lab.compiler.codegen.generate import generate_kernels
from inductor_lab.compiler.codegen.host.host_program import host_program
from inductor_lab.compiler.lower.builder import source_line
from inductor_lab.compiler.lower.graph import lower_graph
from inductor_lab.compiler.lower.input_writes import extract_writes, may_write_inputs
from inductor_lab.compiler.overrides import PHASES_GIVEN, changed_at_run_time, definitions
from inductor_lab.compiler.records import CompiledGraph, CompiledPart, PassStep
from inductor_lab.compiler.rewrite.captured.addcmul import restore_addcmul
from inductor_lab.compiler.rewrite.captured.attention_masks import simplify_masks
from inductor_lab.compiler.rewrite.captured.idle_dropout import remove_idle_dropout
from inductor_lab.compiler.rewrite.captured.own_functions import replace_functions
from inductor_lab.compiler.rewrite.decompose.find_decomposed import decompositions_of
from inductor_lab.compiler.rewrite.decompose.trace_reuse import Repeats
from inductor_lab.compiler.rewrite.passes import rewrite
from inductor_lab.compiler.runtime.cuda_graphs import check_required, with_cuda_graphs
from inductor_lab.compiler.runtime.executable import build_executable
from inductor_lab.compiler.runtime.prestart import before_lowering
from inductor_lab.compiler.runtime.rank_failures import report_failure
from inductor_lab.compiler.schedule.fusion.fuse import ScheduleFacts
from inductor_lab.compiler.schedule.passes import schedule_program
from inductor_lab.compiler.schedule.schedule import Schedule
from inductor_lab.compiler.schedule.user_schedule import schedule_from_groups
from inductor_lab.compiler.torch_door import torch_aot, torch_api
from inductor_lab.compiler.torch_door.pending_writes import skip_function

T = TypeVar("T")


@dataclass
class History:
    """The results of the passes of one stage, if they are kept: those that differ as text."""

    keep: bool
    steps: list[PassStep] = field(default_factory=list)

    @property
    def result(self) -> tuple[PassStep, ...]:
        """The first form, and the result of each pass that changed it."""
        texts = [str(step.result) for step in self.steps]
        return tuple(
            step for step, text, before in zip(self.steps, texts, ["", *texts], strict=False)
            if text != before
        )  # fmt: skip

    @property
    def add(self) -> Callable[[str, Any], object] | None:
        """Called with the name and the result of each pass; None if nothing is kept."""
        if not self.keep:
            return None
        return lambda name, result: self.steps.append(PassStep(name, result))


@dataclass
class GraphCompiler:
    """Compiles one captured graph; AOTAutograd calls its methods as partitioner and compilers.

    With `keep`, every stage is stored as data for `result()`.  Without, only executable code is
    created.  `number` is the position of the graph among those of a call.  `parameters` has the
    positions of trained parameters among its inputs.  A `trained` graph has a forward and a
    backward.  `as_captured` says why the graph is not compiled, or is None.
    """

    options: Options
    observer: Observer = field(default_factory=Observer)
    keep: bool = False
    number: int = 0
    captured: FxGraph | None = None
    eager: EagerCost | None = None
    inputs: tuple[Any, ...] = ()
    parameters: frozenset[int] = frozenset()
    joint: JointGraph | None = None
    split: Partition | None = None
    trained: bool = False
    as_captured: AsCaptured | None = None
    parts: dict[str, CompiledPart] = field(default_factory=dict)

    @no_collection()
    def compile(self, module: GraphModule, inputs: Sequence[Any], name: str) -> Callable[..., Any]:
        """Compile a captured graph to a function with the signature of the graph.

        A graph without a correct functional form runs in eager mode, and so does a graph with a
        write that raises in eager mode.  A function whose writes TorchDynamo loses is skipped.
        """
        if lost := loses_writes(module):
            self.as_captured = lost
            warn_eager_fallback(lost)
            raise skip_function(str(lost))
        restore_addcmul(module)
        if refused_write(module) is not None:
            return with_lines(module)
        self.as_captured = why_as_captured(module, inputs)
        if self.as_captured is None:
            try:
                return self._compiled(module, inputs, name)
            except Exception as error:
                self.as_captured = refused(error)
                if self.as_captured is None:
                    raise
        if self.options.require_cuda_graphs:
            raise NotReplayed("a graph has no CUDA graph", todo=str(self.as_captured))
        warn_eager_fallback(self.as_captured)
        return module.forward

    def _compiled(
        self, module: GraphModule, inputs: Sequence[Any], name: str
    ) -> Callable[..., Any]:
        before_lowering(self.options.mode, inputs)
        accelerators.work_ahead(inputs, self.options)
        if self.keep:
            original = torch_api.copy_of(module)
            self.captured = self._phase("captured", lambda: fx_graph(original, name))
            self.eager = self._phase("eager", lambda: eager_cost(module, inputs))
            self.inputs = tuple(map(snapshot_input, inputs))
        remove_idle_dropout(module)
        replace_functions(module)
        if "masks" not in self.options.rewrites_off:
            simplify_masks(module)
        trained = (isinstance(x, torch.nn.Parameter) and x.requires_grad for x in inputs)
        self.parameters = frozenset(n for n, yes in enumerate(trained) if yes)
        off = effective_options(self.options).accelerators_off
        key = "" if self.keep or "warm_graphs" in off else self._key()
        results = captured(module.graph.output_node().all_input_nodes)
        return where_storage_begins(module, torch_aot.aot_autograd(
            module, inputs,
            fw_compiler=lambda m, i: self.compile_part(m, "forward"),
            bw_compiler=lambda m, i: self.compile_part(m, "backward"),
            partition_fn=self.partition,
            decompositions=Repeats(self._definitions()).definitions,
            keep_input_writes=may_write_inputs(inputs), overlapping=any(map(may_overlap, results)),
            around=accelerators.around(module, inputs, key, self._found, "bare_calls" not in off),
        ))  # fmt: skip

    def _definitions(self) -> dict[Any, Any]:
        """Return the decompositions; `fallback_random` excludes operators that are random."""
        eagers = self.options.fallback_random
        known = definitions().items()
        return {op: made for op, made in known if not (eagers and torch_api.is_random(op))}

    def _key(self) -> str:
        """Return the key of the graph on disk; "" if it must not be stored."""
        return accelerators.warm_key(self.options, self.parameters, changed_at_run_time())

    def _found(self, remake: partial[Any]) -> None:
        """Report a part that another process has compiled to the observer."""
        _, kernels, host, _ = remake.args
        self._phase("codegen of a part on disk", lambda: kernels)
        self._phase("host of a part on disk", lambda: host)

    def partition(self, module: Any, inputs: Any, *, num_fwd_outputs: int, **more: Any) -> Any:
        """Partition the joint graph; this is AOTAutograd's `partition_fn`."""
        self.trained = True
        unify_gradient_symbols(module)
        accelerators.edit_joint(module, self.options)
        if self.keep:
            self.joint = joint_graph(module, num_fwd_outputs, earlier=self.captured)
        forward, backward, self.split = self._phase(
            "partition",
            lambda: partition(
                module, inputs, num_fwd_outputs=num_fwd_outputs, describe=self.keep,
                memory_budget=self.options.memory_budget, chosen_by=PHASES_GIVEN.get("partition"),
                earlier=self.joint.graph if self.joint else None, **more,
            ),
        )  # fmt: skip
        return forward, backward

    @no_collection()
    def compile_part(self, module: GraphModule, name: str) -> Callable[..., Any]:
        """ATen graph → rewrites → loops → schedule → kernels → host program → running code.

        `accelerators.LISTS` has the passes of each stage.
        """
        options, eager = self._options_of(name), self._uncompiled(module)
        module, writes = extract_writes(module)
        rewrites, loops, schedule = None, History(self.keep), History(self.keep)

        def phase(step: str, run: Callable[..., T], *given: Any, **named: Any) -> T:
            work = module if rewrites is None else rewrites.module
            return self._phase(f"{name}.{step}", lambda: run(*given, **named), work)

        known: dict[str, Any] = {"writes": writes, "trained": self.trained}
        to_rewrite = partial(rewrite, record=self.keep, parameters=self._packed(module, options))
        rewrites = phase("rewrite", to_rewrite, module, name, options, **known)
        lower = partial(lower_graph, changed=loops.add, **known)
        program = phase("lower", lower, rewrites.module, name, options)
        check_required(program, options)
        facts = ScheduleFacts(options, options.fusion, self.trained)
        planned = phase("schedule", _scheduler(), program, options.fusion, facts, schedule.add)
        kernels = phase("codegen", generate_kernels, planned, options)
        host = phase("host", host_program, planned, kernels, options)
        traces = {n.name: n.stack_trace or "" for n in rewrites.module.graph.nodes}
        accelerators.before_load(planned, options)
        load = partial(build_executable, planned, kernels, host, options, traces)
        executable = call = None
        if not options.target:
            executable = phase("load", load, not self.keep, eager)
            call = accelerators.shortened(executable, planned, kernels, options, traces)
        if self.keep:
            before = self.joint.graph if self.joint is not None else self.captured
            self.parts[name] = CompiledPart(
                name=name, graph=fx_graph(module, name, earlier=before),
                decompositions=decompositions_of(module), rewrites=rewrites, loops=program,
                schedule=planned, libraries=(*rewrites.choices, *facts.choices), kernels=kernels,
                host=host, executable=executable, trees=kernel_trees(planned, kernels, options),
                loop_steps=loops.result, schedule_steps=schedule.result,
                host_in_runs=getattr(call, "host_in_runs", None),
            )  # fmt: skip
        if call is None:
            return eager  # type: ignore[no-any-return]  # with a target it is there
        built_from = None if program.callees else (planned, kernels, host, options)
        call = with_cuda_graphs(call, program, options)
        return accelerators.kept(call, built_from, traces)  # type: ignore[no-any-return]

    def _options_of(self, name: str) -> Options:
        """The options that hold for one part."""
        options = effective_options(self.options)
        return replace(options, fusion=options.fusion.within(f"g{self.number}.{name}"))

    def _packed(self, module: GraphModule, options: Options) -> frozenset[str]:
        """The inputs that are parameters whose packed form may be kept."""
        packs = options.pack_weights and not self.trained
        return torch_api.inputs_among(module.graph, self.parameters) if packs else frozenset()

    def _uncompiled(self, module: GraphModule) -> Any:
        """Return the current graph as a function for eager mode, or None if it cannot be needed.

        It is needed to compile for another machine's GPU, and if errors are suppressed.  Passes
        edit the graph in place unless they keep a record, so it is copied.
        """
        if not (self.keep or self.options.target or torch_api.suppresses_errors()):
            return None
        return torch_api.boxed((module if self.keep else torch_api.copy_of(module)).forward)

    def result(self) -> CompiledGraph:
        """Return everything that was stored."""
        assert self.captured is not None, "result() needs keep=True and a finished compile()"
        return CompiledGraph(
            captured=self.captured, joint=self.joint, partition=self._partition_with_eager(),
            forward=self.parts["forward"], backward=self.parts.get("backward"),
            eager=self.eager, inputs=self.inputs,
            seconds=dict(self.observer.seconds) if isinstance(self.observer, Stopwatch) else {},
        )  # fmt: skip

    def _partition_with_eager(self) -> Partition | None:
        """Return the partition with the bytes that autograd saves in eager mode, if known."""
        if self.split is None or self.eager is None:
            return self.split
        return replace(self.split, bytes_if_all_saved=self.eager.kept_without_inputs)

    def _phase(self, name: str, run: Callable[[], T], module: GraphModule | None = None) -> T:
        """Run a phase; `module` has the nodes that an error can refer to."""
        self.observer.entered(name)
        result = None
        try:
            result = run()
            return result
        except Exception as error:
            reported = error if isinstance(error, LabError) else _defect(name, error, module)
            report_failure(reported)
            if reported is error:
                raise
            raise reported from (error.__cause__ or error)
        finally:
            self.observer.left(name, result)


def _scheduler() -> Callable[..., Schedule]:
    """The scheduler: ours, or with the user's function that groups the nests."""
    mine = PHASES_GIVEN.get("schedule")
    return partial(schedule_from_groups, mine) if mine else schedule_program


def _defect(phase: str, error: Exception, module: GraphModule | None) -> CompilerDefect:
    """Return an error that names the operators at which a phase failed, and the user's lines."""
    if not isinstance(error, Stumbled):
        return CompilerDefect(phase, error)
    nodes = [n for n in module.graph.nodes if n.name in error.nodes] if module else []
    ops = ", ".join(dict.fromkeys(str(node.target) for node in nodes))
    lines = dict.fromkeys(filter(None, map(source_line, nodes)))
    return CompilerDefect(phase, error.__cause__ or error, ops, "\n  ".join(lines))
