"""Calls AOTAutograd.  One of the modules for torch's private names (`torch_names`).

`Around` has hooks for optional work: graphs that are cached on disk, and calls that skip
AOTAutograd's wrappers (`accelerate/first_call.py`).

Inductor: `compile_fx.py`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.torch_door.torch_api import aot_module_simplified, functorch_config
from inductor_lab.compiler.torch_door.torch_names import minor, missing, optional

_COUNTERS: Any = optional("torch._dynamo.utils.counters", {"aot_autograd": {"total": 0}})
_cache_dir = optional("torch._functorch._aot_autograd.autograd_cache.cache_dir")
_TracingContext = optional("torch._guards.TracingContext")
IS_WARM = not missing("warm graphs")
"""Can AOTAutograd cache compiled graphs on disk?"""

ADDS_OFFSET_OF_BASE = minor(torch.__version__) >= (2, 14)
"""AOTAutograd recreates a result that is a view of an input, from the storage offset of the tensor
that the graph returned.  Does it add that offset to the input's?"""

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]
PartitionFn = Callable[..., tuple[GraphModule, GraphModule]]

KEY = "inductor_lab_key"
"""The attribute of a captured graph with our part of its cache key; also the prefix of entry
names."""

SETTINGS = {"bundled_autograd_cache": True, "force_non_lazy_backward_lowering": True}
"""AOTAutograd's cache entries contain the backend's output instead of Inductor's cache key; and
backwards are compiled while the C++ compiler compiles their forwards."""


def cache_folder() -> str:
    """The folder in which AOTAutograd caches compiled graphs, with one subfolder per key; "" if it
    cannot."""
    if not IS_WARM:
        return ""
    try:
        return os.path.join(_cache_dir(), "aotautograd")
    except OSError:
        return ""


class Around:
    """Hooks around AOTAutograd's work on one graph; this base class does only what is necessary."""

    def watching(self, kind: str, compiler: Compiler) -> Any:
        """The compiler of one kind of graph, "forward", "backward" or "inference"."""
        if kind != "backward":
            return compiler
        # it may run while Dynamo traces a frame
        compiler = torch.compiler.disable(compiler)
        return lambda graph, given: torch.compiler.disable(compiler(graph, given))

    def entered(self, stack: ExitStack, forward: Any) -> Any:
        """Called before AOTAutograd, with a stack that is closed after it; returns the forward
        compiler to use."""
        return forward

    def call(self, wrapped: Callable[..., Any]) -> Callable[..., Any]:
        """The function that Dynamo's code calls, given the one that AOTAutograd returned."""
        return wrapped


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
    overlapping: bool = False,
    around: Around | None = None,
) -> Callable[..., Any]:
    """Functionalize and differentiate a captured graph, partition it, and call the compilers.

    Each compiler takes a GraphModule of ATen ops and fake example inputs, and returns a *boxed*
    function (see `torch_api.boxed`).  Without gradients only the inference compiler runs (default:
    the forward's).  With gradients the backward compiler runs right after the forward's, not at the
    first `.backward()`.  With `keep_input_writes`, writes to inputs are the last calls of the
    graph; otherwise AOTAutograd does them after the call.  If elements of results share memory
    (`overlapping`), gradients do not get the layout of the results, which would lose values.

    `around` has hooks for optional work.
    """
    flatten = optional("torch._dynamo.utils.flatten_graph_inputs")
    if flatten is not None and any(isinstance(given, list | tuple | dict) for given in inputs):
        # compiled autograd passes lists: flatten them and call this function again
        again = functools.partial(
            aot_autograd, fw_compiler=fw_compiler, bw_compiler=bw_compiler,
            partition_fn=partition_fn, decompositions=decompositions,
            inference_compiler=inference_compiler, keep_input_writes=keep_input_writes,
            overlapping=overlapping,
        )  # fmt: skip
        return flatten(module, inputs, again)  # type: ignore[no-any-return]
    _COUNTERS["aot_autograd"]["total"] += 1  # DistributedDataParallel's splitter reads it
    around = around or Around()
    first = around.watching("forward", _without_donation(fw_compiler))
    with ExitStack() as stack:
        stack.enter_context(functorch_config.patch(_known_settings(overlapping)))
        wrapped = aot_module_simplified(
            module, list(inputs), partition_fn=partition_fn,
            fw_compiler=around.entered(stack, first),
            bw_compiler=around.watching("backward", bw_compiler),
            inference_compiler=around.watching("inference", inference_compiler or fw_compiler),
            decompositions=dict(decompositions or {}),
            keep_inference_input_mutations=keep_input_writes,
        )  # fmt: skip
    return around.call(wrapped)


_proxy_mode = optional("torch.fx.experimental.proxy_tensor.get_proxy_mode")
_proxy_slot = optional("torch.fx.experimental.proxy_tensor.get_proxy_slot")
_track = optional("torch.fx.experimental.proxy_tensor.track_tensor_tree")
_untraced = optional("torch.fx.experimental.proxy_tensor.disable_proxy_modes_tracing")
_IS_KNOWN = not missing("copied nodes")


@dataclass(frozen=True, slots=True)
class Tracing:
    """The current trace, if torch exposes it; `tracer` is None if there is none."""

    tracer: Any

    @classmethod
    def now(cls) -> Tracing:
        """The innermost trace."""
        return cls(getattr(_proxy_mode() if _IS_KNOWN else None, "tracer", None))

    def node_of(self, tensor: torch.Tensor) -> Node | None:
        """The node of a tensor; None if it has none or is known to be a constant."""
        found = self.tracer and _proxy_slot(tensor, self.tracer, None)
        return found.proxy.node if found is not None and found.constant is None else None

    def tensor_of(self, node: Node, like: torch.Tensor) -> torch.Tensor:
        """A new tensor for a node of the graph, with the layout of another one."""
        with _untraced():
            size, stride = like.shape, like.stride()
            made = torch.empty_strided(size, stride, dtype=like.dtype, device=like.device)
        _track(made, self.tracer.proxy(node), constant=None, tracer=self.tracer)
        return made


def _without_donation(compiler: Compiler) -> Compiler:
    """Mark no saved tensor as donated to the backward.

    Our backwards do not write to saved tensors, so they may run twice (`retain_graph`).
    AOTAutograd's wrapper would reject that for donated tensors.  Their list is shared, so clearing
    it is enough.
    """

    def compile_forward(graph: GraphModule, given: Sequence[Any]) -> Callable[..., Any]:
        facts = getattr(_TracingContext and _TracingContext.try_get(), "fw_metadata", None)
        (getattr(facts, "bw_donated_idxs", None) or []).clear()
        return compiler(graph, given)

    return compile_forward


def _known_settings(overlapping: bool) -> dict[str, bool]:
    settings = {**SETTINGS, **({"guess_tangent_strides_as_outputs": False} if overlapping else {})}
    return {name: value for name, value in settings.items() if hasattr(functorch_config, name)}
