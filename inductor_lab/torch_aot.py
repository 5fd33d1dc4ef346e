"""The way through AOTAutograd, and what is left of it in a call.

With `torch_api` the only door to torch's private modules: when a torch release moves something,
only these two change.

AOTAutograd puts a wrapper around each graph that gives inputs their new values, makes views, counts
versions and leaves autocast, and another one around its gradient.  Where a graph needs none of it,
Dynamo's code calls the compiled graph itself, or with gradients an `autograd.Function` that does
what is left: save tensors, and lay out the gradients that come back as they were traced.

Inductor: keeps AOTAutograd's wrappers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch._dynamo.utils import flatten_graph_inputs
from torch._functorch._aot_autograd.descriptors import PlainAOTOutput, TangentAOTInput
from torch._functorch._aot_autograd.runtime_wrappers import AOTDispatchAutograd
from torch._functorch._aot_autograd.schemas import OutputType, SubclassCreationMeta
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import TracingContext
from torch.fx import GraphModule

from inductor_lab.torch_api import given_back

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]
PartitionFn = Callable[..., tuple[GraphModule, GraphModule]]
Compiled = Callable[[list[Any]], tuple[Any, ...]]

NEW = (OutputType.non_alias, OutputType.unsafe_view_alias)
"""Results that are neither inputs nor views of anything, as far as the person can tell."""
TWICE = "torch.compile with aot_autograd does not currently support double backward"
TRANSFORMED = (
    "a compiled backward cannot run within torch.func.vmap, grad or vjp; transform inside of the "
    "compiled function instead"
)
DETERMINISTIC = (
    "this backward was compiled without torch.use_deterministic_algorithms(True), and runs with it"
)


def aot_autograd(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    fw_compiler: Compiler,
    bw_compiler: Compiler,
    partition_fn: PartitionFn,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    inference_compiler: Compiler | None = None,
    keep_input_writes: bool = False,
) -> Callable[..., Any]:
    """Functionalize and differentiate a captured graph, partition it, and call the compilers.

    Each compiler takes a GraphModule of ATen ops and fake example inputs, and returns a *boxed*
    function (see `torch_api.boxed`).  Without gradients only the inference compiler runs (default:
    the forward's).  The backward compiler is called ahead, right after the forward's, for graphs
    with symbolic sizes, and otherwise at the first `.backward()`.  With `keep_input_writes`, writes
    to inputs are the last calls of the graph; without, AOTAutograd makes them after the call.
    """
    if any(isinstance(given, list | tuple | dict) for given in inputs):
        # compiled autograd gives lists: they are laid flat, and we are called again
        again = functools.partial(
            aot_autograd,
            fw_compiler=fw_compiler,
            bw_compiler=bw_compiler,
            partition_fn=partition_fn,
            decompositions=decompositions,
            inference_compiler=inference_compiler,
            keep_input_writes=keep_input_writes,
        )
        return flatten_graph_inputs(module, inputs, again)
    around = _Around(inputs, isinstance(module, GraphModule))

    def inference(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        compiled = (inference_compiler or fw_compiler)(graph, examples)
        around.inference(graph, compiled)
        return compiled

    def forward(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        compiled = fw_compiler(graph, examples)
        around.forward(graph, compiled)
        return compiled

    def backward(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        # it may be compiled, and called, in the middle of a frame that Dynamo looks at
        compiled = torch._dynamo.disable(bw_compiler)(graph, examples)
        around.backward(graph, compiled)
        return torch._dynamo.disable(compiled)

    wrapped = aot_module_simplified(
        module,
        list(inputs),
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        partition_fn=partition_fn,
        decompositions=dict(decompositions or {}),
        keep_inference_input_mutations=keep_input_writes,
    )
    return around.call(wrapped)


class _Around:
    """What is left to do around one graph in a call, learned while AOTAutograd has it compiled.

    direct    the whole call without AOTAutograd's wrapper, once it is known to do the same
    """

    def __init__(self, inputs: Sequence[Any], plain: bool) -> None:
        self.arguments = len(inputs)
        self.gradients = torch.is_grad_enabled() and any(map(_requires_grad, inputs))
        hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
        self.plain = plain and hooks is None and not torch._C._is_any_autocast_enabled()
        self.trained: _Trained | None = None
        self.compiled_backward: tuple[GraphModule, Compiled] | None = None
        self.function: Any = None
        self.direct: Callable[..., Any] | None = None

    def inference(self, graph: GraphModule, compiled: Compiled) -> None:
        """A graph without gradients is compiled."""
        if self.plain and not self.gradients and _facts_if_bare(graph, self.arguments):
            self.direct = lambda *args: compiled(list(args))

    def forward(self, graph: GraphModule, compiled: Compiled) -> None:
        """The forward of a graph with gradients is compiled."""
        facts = _facts_if_bare(graph, self.arguments) if self.plain and self.gradients else None
        if facts is not None:
            self.trained = _Trained.of(graph, compiled, facts)

    def backward(self, graph: GraphModule, compiled: Compiled) -> None:
        """Its backward is compiled, ahead or after the first call."""
        if self.trained is not None:
            self.compiled_backward = graph, compiled
            self.settle()

    def settle(self) -> None:
        """With gradients, the call has to wait for the backward and for the first results."""
        if self.trained and self.compiled_backward and self.function:
            self.direct = self.trained.call(*self.compiled_backward, self.function)
            self.trained = self.compiled_backward = None

    def call(self, wrapped: Callable[..., Any]) -> Callable[..., Any]:
        """What Dynamo's code calls."""
        if self.trained is None:
            return self.direct or wrapped

        def call(*args: Any) -> Any:
            if self.direct is not None:
                return self.direct(*args)
            results = wrapped(*args)
            if self.function is None:
                self.function = _function_behind(results)
                self.settle()
            return results

        return call


def _function_behind(results: Sequence[Any]) -> Any:
    """AOTAutograd's `autograd.Function` that gave these results; None if it cannot be found."""
    nodes = (getattr(result, "grad_fn", None) for result in results)
    functions = (getattr(type(node), "_forward_cls", None) for node in nodes)
    return next((function for function in functions if hasattr(function, "_aot_id")), None)


def _requires_grad(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and given.requires_grad


def _facts_if_bare(graph: GraphModule, arguments: int) -> Any:
    """AOTAutograd's facts of the graph that it has compiled just now, if the compiled graph (and
    its gradient) is all there is to do in a call; else None.

    What is done around others takes longer than a small kernel: inputs get their new values,
    outputs become views of inputs, versions are counted, tensor subclasses wrapped, custom
    operators watched.
    """
    context = TracingContext.try_get()
    facts = context.fw_metadata if context is not None else None
    if facts is None or context.fakify_first_call:
        return None
    subclasses = (*facts.subclass_inp_meta, *facts.subclass_fw_graph_out_meta)
    to_do = (
        facts.num_mutated_inp_runtime_indices,
        facts.mutated_graph_handled_indices_seen_by_autograd,
        facts.num_outputs_aliased,
        facts.num_intermediate_bases,
        facts.dynamic_outputs,
        facts.is_rng_op_functionalized,
        facts.tokens,
        facts.grad_enabled_mutation is not None,
        getattr(facts, "act_input_indices", ()),
        any(isinstance(kind, SubclassCreationMeta) for kind in subclasses),
    )
    known = all(
        node.op != "call_function" or getattr(node.target, "namespace", "aten") in ("aten", "prims")
        for node in graph.graph.nodes
    )
    same_arguments = len(graph.graph.find_nodes(op="placeholder")) == arguments
    return facts if known and same_arguments and not any(to_do) else None


@dataclass(frozen=True)
class _Trained:
    """The forward of a graph whose gradient needs nothing but saved tensors.

    results    how many of its values are the person's; the others are saved
    constant   those without gradient
    views      those that torch must not know to be views of what is saved
    """

    compiled: Compiled
    facts: Any
    results: int
    constant: tuple[int, ...]
    views: tuple[int, ...]

    @staticmethod
    def of(graph: GraphModule, compiled: Compiled, facts: Any) -> _Trained | None:
        """None where AOTAutograd does more than that."""
        (output,) = graph.graph.find_nodes(op="output")
        results = len(given_back(output))
        to_do = (
            facts.num_symints_saved_for_bw,
            facts.num_tensors_saved_with_no_vc_check,
            facts.num_opaque_objects_saved_for_bw,
            facts.num_graphsafe_rng_states,
            facts.num_backward_tokens,
            facts.indices_of_inputs_that_requires_grad_with_mutations_in_bw,
            results != len(facts.output_info),
            any(info.output_type not in NEW for info in facts.output_info),
        )
        if any(to_do):
            return None
        constant = [n for n, info in enumerate(facts.output_info) if not info.requires_grad]
        constant = [n for n in constant if issubclass(facts.output_info[n].raw_type, torch.Tensor)]
        views = tuple(facts.unsafe_view_out_indices)
        return _Trained(compiled, facts, results, tuple(constant), views)

    def call(
        self, graph: GraphModule, backward: Compiled, function: Any
    ) -> Callable[..., Any] | None:
        """The whole call, given its backward, and the function that AOTAutograd has made of both;
        None where that is a special one."""
        given = [node.meta.get("desc") for node in graph.graph.find_nodes(op="placeholder")]
        wanted = [desc.output for desc in given if isinstance(desc, TangentAOTInput)]
        metas = self.facts.subclass_tangent_meta
        if len(wanted) != len(metas) or not all(isinstance(w, PlainAOTOutput) for w in wanted):
            return None
        tangents = [
            _Tangent(output.idx, meta.memory_format, meta)
            for output, meta in zip(wanted, metas, strict=True)
        ]
        apply = _bare_function(self, backward, tangents, function).apply
        (output,) = graph.graph.find_nodes(op="output")
        infos = zip(output.args[0], self.facts.input_info, strict=True)
        # autograd must not go on to inputs that get no gradient
        ends = [n for n, (grad, i) in enumerate(infos) if grad is None and not i.is_leaf]
        return functools.partial(_detached, apply, ends) if ends else apply


def _detached(apply: Callable[..., Any], ends: Sequence[int], *args: Any) -> Any:
    given = list(args)
    for n in ends:
        if isinstance(given[n], torch.Tensor):
            given[n] = given[n].detach()
    return apply(*given)


class _Tangent(NamedTuple):
    """The gradient of one result: the result's place, and how it was laid out when it was traced.

    That is told by strides, or (with symbolic sizes, and in torch 2.11) by a memory format alone.
    `meta` is what AOTAutograd knows.
    """

    result: int
    layout: Any
    meta: Any

    def of(self, gradients: Sequence[Any]) -> Any:
        """Among the gradients of all results, and laid out as it was traced."""
        given = gradients[self.result]
        if type(given) is torch.Tensor and self._fits(given):
            return given
        return AOTDispatchAutograd.process_runtime_tangent(given, self.meta)[0]

    def _fits(self, given: torch.Tensor) -> bool:
        if self.layout is None or self.layout.memory_format is None:
            return self.layout is not None and given.stride() == self.layout.stride
        return given.is_contiguous(memory_format=self.layout.memory_format)


def _bare_function(
    trained: _Trained, compiled_backward: Compiled, tangents: Sequence[_Tangent], function: Any
) -> Any:
    """Forward and backward as one function of autograd's, which does no more than these need.

    It is AOTAutograd's function otherwise, so that compiled autograd knows what to do with it.
    """
    compiled_forward, results = trained.compiled, trained.results
    constant, views = trained.constant, trained.views
    deterministic = trained.facts.deterministic

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
        @torch._dynamo.disable
        def backward(ctx: Any, *given: Any) -> Any:
            gradients = given[0] if given and type(given[0]) is list else list(given)
            if torch._C._functorch.peek_interpreter_stack() is not None:
                raise RuntimeError(TRANSFORMED)
            if not deterministic and torch.are_deterministic_algorithms_enabled():
                raise RuntimeError(DETERMINISTIC)
            values = [*ctx.saved_tensors, *(tangent.of(gradients) for tangent in tangents)]
            gradients.clear()
            ctx.maybe_clear_saved_tensors()
            if torch.is_grad_enabled():
                root = torch.empty(0, requires_grad=True)
                return _OnlyOnce.apply(compiled_backward, root, *values)
            return tuple(compiled_backward(values))

    context: Any = CompiledFunction._backward_cls
    context.symints = context.opaque_objects = context._tensors_no_vc_check = ()
    return CompiledFunction


def _no_view(given: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._unsafe_view(given, given.shape)


class _OnlyOnce(torch.autograd.Function):
    """Gradients that are a function of something, and cannot be differentiated: an error says so,
    where zeros would be wrong."""

    @staticmethod
    def forward(ctx: Any, compiled: Compiled, root: torch.Tensor, *values: Any) -> Any:
        return tuple(compiled(list(values)))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(TWICE)
