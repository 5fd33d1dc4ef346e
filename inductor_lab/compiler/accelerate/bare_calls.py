"""Calls compiled graphs without AOTAutograd's wrappers if a graph does not need them.

AOTAutograd wraps each graph in a function that updates inputs, creates views, counts versions and
exits autocast, and wraps its gradient in another function.  If a graph needs none of this, Dynamo's
code calls the compiled graph directly.  With gradients, it calls an `autograd.Function` that only
saves tensors, and gives incoming gradients the layout that they had when they were traced.

The facts that this needs about a graph (`Trained`, `Gradient`) are stored on disk with the graph.
Inductor: always uses AOTAutograd's wrappers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule

from inductor_lab.compiler.accelerate.flex_definitions import DEFINITIONS
from inductor_lab.compiler.torch_door.torch_api import BackwardState, forward_results
from inductor_lab.compiler.torch_door.torch_names import missing, optional

_AOT = "torch._functorch._aot_autograd."
_PlainOutput = optional(_AOT + "descriptors.PlainAOTOutput")
_TangentInput = optional(_AOT + "descriptors.TangentAOTInput")
_OutputType = optional(_AOT + "schemas.OutputType")
_Subclass = optional(_AOT + "schemas.SubclassCreationMeta")
_Dispatch = optional(_AOT + "runtime_wrappers.AOTDispatchAutograd")
_TracingContext = optional("torch._guards.TracingContext")
_transformations = optional("torch._C._functorch.peek_interpreter_stack")
_saved_hooks = optional("torch._C._autograd._top_saved_tensors_default_hooks")
_any_autocast = optional("torch._C._is_any_autocast_enabled")
_is_wrapper = optional("torch.utils._python_dispatch.is_traceable_wrapper_subclass")
IS_BARE = not missing("bare calls")

Compiled = Callable[[list[Any]], tuple[Any, ...]]

NEW = (_OutputType.non_alias, _OutputType.unsafe_view_alias) if IS_BARE else ()
"""The kinds of results that are neither inputs nor views for the user."""
TWICE = "torch.compile with aot_autograd does not currently support double backward"
TRANSFORMED = (
    "a compiled backward cannot run inside torch.func.vmap, grad or vjp; use the transform inside "
    "the compiled function instead"
)
DETERMINISTIC = (
    "this backward was compiled without torch.use_deterministic_algorithms(True), but runs with it"
)


def is_plain_call(module: Any, inputs: Sequence[Any]) -> bool:
    """Does a call of a captured graph need nothing that only AOTAutograd's wrappers do?

    It needs them for wrapper subclasses, hooks for saved tensors, and autocast.  With a wrapper
    subclass, the graph and its facts are about the inner tensors.
    """
    if not (IS_BARE and isinstance(module, GraphModule)):
        return False
    results = [n.meta.get("example_value") for n in module.graph.output_node().all_input_nodes]
    wrapped = any(map(_is_wrapper, (*inputs, *results)))
    return not (wrapped or _saved_hooks(True) is not None or _any_autocast())


def autograd_function_of(results: Sequence[Any]) -> Any:
    """Return AOTAutograd's `autograd.Function` that computed these results, or None."""
    nodes = (getattr(result, "grad_fn", None) for result in results)
    functions = (getattr(type(node), "_forward_cls", None) for node in nodes)
    return next((function for function in functions if hasattr(function, "_aot_id")), None)


def facts_if_bare(graph: GraphModule, arguments: int) -> Any:
    """Return AOTAutograd's facts about the graph that it has just compiled, or None.

    None means that a call needs more than the compiled graph (and its gradient).  For such graphs,
    the wrappers update inputs, create views of inputs, wrap tensor subclasses, and check custom
    operators, which takes longer than a small kernel.
    """
    context = _TracingContext.try_get() if IS_BARE else None
    if context is None or context.fw_metadata is None or context.fakify_first_call:
        return None
    facts = context.fw_metadata
    subclasses = (*facts.subclass_inp_meta, *facts.subclass_fw_graph_out_meta)
    to_do = (
        facts.num_mutated_inp_runtime_indices, facts.num_outputs_aliased, facts.tokens,
        facts.num_intermediate_bases, facts.dynamic_outputs, facts.is_rng_op_functionalized,
        getattr(facts, "act_input_indices", ()), facts.grad_enabled_mutation is not None,
        any(isinstance(kind, _Subclass) for kind in subclasses),
    )  # fmt: skip
    called = (node.target for node in graph.graph.nodes if node.op == "call_function")
    known = all(
        getattr(target, "namespace", "aten") in ("aten", "prims") or target in DEFINITIONS
        for target in called
    )
    given = graph.graph.find_nodes(op="placeholder")
    hooks = any(isinstance(node.meta.get("val"), BackwardState) for node in given)
    known, same_arguments = known and not hooks, len(given) == arguments
    return facts if known and same_arguments and not any(to_do) else None


def written_by(facts: Any) -> tuple[int, ...]:
    """Return the positions of inputs that the graph writes to and autograd must notice."""
    return tuple(facts.mutated_graph_handled_indices_seen_by_autograd)


def counting_versions(call: Callable[..., Any], written: Sequence[int]) -> Callable[..., Any]:
    """Return a call that increments the version of each argument in `written`, as a write does."""
    if not written:
        return call

    def count_and_call(*args: Any) -> Any:
        torch.autograd.graph.increment_version([args[n] for n in written])
        return call(*args)

    return count_and_call


@dataclass(frozen=True)
class Trained:
    """A forward whose gradient needs only saved tensors.

    results    the number of values that are returned to the user; the others are saved
    constant   the positions of results without gradient
    views      the positions of results that torch must not treat as views of saved tensors
    written    the positions of inputs that it writes to
    """

    results: int
    constant: tuple[int, ...]
    views: tuple[int, ...]
    written: tuple[int, ...]

    @staticmethod
    def of(graph: GraphModule, facts: Any) -> Trained | None:
        """Return the facts about a forward, or None if its gradient needs more."""
        (output,) = graph.graph.find_nodes(op="output")
        results = len(forward_results(output))
        to_do = (
            facts.num_symints_saved_for_bw, facts.num_tensors_saved_with_no_vc_check,
            facts.num_opaque_objects_saved_for_bw, facts.num_graphsafe_rng_states,
            facts.indices_of_inputs_that_requires_grad_with_mutations_in_bw,
            facts.num_backward_tokens, results != len(facts.output_info),
            any(info.output_type not in NEW for info in facts.output_info),
        )  # fmt: skip
        if any(to_do):
            return None
        constant = [n for n, info in enumerate(facts.output_info) if not info.requires_grad]
        constant = [n for n in constant if issubclass(facts.output_info[n].raw_type, torch.Tensor)]
        views = tuple(facts.unsafe_view_out_indices)
        return Trained(results, tuple(constant), views, written_by(facts))


class Tangent(NamedTuple):
    """The gradient of one result: the position of the result, and its layout when it was traced.

    The layout has strides, or only a memory format (with symbolic sizes, and in torch 2.11).
    `meta` is AOTAutograd's description.
    """

    result: int
    layout: Any
    meta: Any

    def of(self, gradients: Sequence[Any]) -> Any:
        """Return this gradient from those of all results, with the layout that was traced."""
        given = gradients[self.result]
        if type(given) is torch.Tensor and self._fits(given):
            return given
        return _Dispatch.process_runtime_tangent(given, self.meta)[0]

    def _fits(self, given: torch.Tensor) -> bool:
        if self.layout is None or self.layout.memory_format is None:
            return self.layout is not None and given.stride() == self.layout.stride
        return given.is_contiguous(memory_format=self.layout.memory_format)


@dataclass(frozen=True)
class Gradient:
    """The backward of a `Trained` forward.

    tangents       the gradients that it takes
    ends           the positions of forward inputs without gradient, at which autograd must stop
    deterministic  whether it was compiled with deterministic algorithms only
    """

    tangents: tuple[Tangent, ...]
    ends: tuple[int, ...]
    deterministic: bool

    @staticmethod
    def of(graph: GraphModule, facts: Any) -> Gradient | None:
        """Return the facts about a backward, or None if it takes other inputs."""
        given = [node.meta.get("desc") for node in graph.graph.find_nodes(op="placeholder")]
        wanted = [desc.output for desc in given if isinstance(desc, _TangentInput)]
        metas = facts.subclass_tangent_meta
        if len(wanted) != len(metas) or not all(isinstance(w, _PlainOutput) for w in wanted):
            return None
        tangents = tuple(
            Tangent(output.idx, meta.memory_format, meta)
            for output, meta in zip(wanted, metas, strict=True)
        )
        (output,) = graph.graph.find_nodes(op="output")
        if len(output.args[0]) != len(facts.input_info):
            return None  # the tokens of operators with effects come after the gradients
        infos = zip(output.args[0], facts.input_info, strict=True)
        ends = tuple(n for n, (grad, i) in enumerate(infos) if grad is None and not i.is_leaf)
        return Gradient(tangents, ends, facts.deterministic)


def direct_call(
    forward: Compiled, trained: Trained, backward: Compiled, gradient: Gradient, function: Any
) -> Callable[..., Any]:
    """Return the complete call; `function` is AOTAutograd's `autograd.Function` for both graphs."""
    apply = _bare_function(forward, trained, backward, gradient, function).apply
    ends = gradient.ends
    call = functools.partial(_detached, apply, ends) if ends else apply
    return counting_versions(call, trained.written)


def _detached(apply: Callable[..., Any], ends: Sequence[int], *args: Any) -> Any:
    given = list(args)
    for n in ends:
        if isinstance(given[n], torch.Tensor):
            given[n] = given[n].detach()
    return apply(*given)


def _bare_function(
    compiled_forward: Compiled, trained: Trained,
    compiled_backward: Compiled, gradient: Gradient, function: Any,
) -> Any:  # fmt: skip
    """Return forward and backward as an `autograd.Function` that does only what they need.

    It is a subclass of AOTAutograd's function, so that compiled autograd can handle it.
    """
    results, constant, views = trained.results, trained.constant, trained.views
    tangents, deterministic = gradient.tangents, gradient.deterministic

    class CompiledFunction(function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            values = compiled_forward(list(args))
            ctx.save_for_backward(*[t.detach() if t._is_view() else t for t in values[results:]])
            own = tuple(values[:results])
            if views:
                own = tuple(_no_view(t) if n in views else t for n, t in enumerate(own))
            if constant:
                ctx.mark_non_differentiable(*[own[n] for n in constant])
                ctx._materialize_non_diff_grads = False
            return own

        @staticmethod
        @torch.compiler.disable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, *given: Any) -> Any:
            gradients = given[0] if given and type(given[0]) is list else list(given)
            if _transformations() is not None:
                raise RuntimeError(TRANSFORMED)
            if not deterministic and torch.are_deterministic_algorithms_enabled():
                raise RuntimeError(DETERMINISTIC)
            values = [*ctx.saved_tensors, *(tangent.of(gradients) for tangent in tangents)]
            gradients.clear()
            ctx.maybe_clear_saved_tensors()
            if torch.is_grad_enabled():
                root = torch.empty(0, requires_grad=True)
                return _OnlyOnce.apply(compiled_backward, root, *values)  # type: ignore[no-untyped-call]
            return tuple(compiled_backward(values))

    context: Any = CompiledFunction._backward_cls
    context.symints = context.opaque_objects = context._tensors_no_vc_check = ()
    return CompiledFunction


def _no_view(given: torch.Tensor) -> Any:
    return torch.ops.aten._unsafe_view(given, given.shape)


class _OnlyOnce(torch.autograd.Function):
    """Gradients that cannot be differentiated: a double backward raises an error."""

    @staticmethod
    def forward(ctx: Any, compiled: Compiled, root: torch.Tensor, *values: Any) -> Any:
        return tuple(compiled(list(values)))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(TWICE)
