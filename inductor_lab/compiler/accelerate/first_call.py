"""Learns in the first call of a graph what later calls can skip.

```
first call      Dynamo → AOTAutograd → our compilers, or a `Part` from disk (`warm_graphs.py`)
                         each calls `learn` with its code, and whether a call needs more
                         → AOTAutograd's wrapper is called
later calls     Dynamo → the host program (no gradient), or our `autograd.Function`
                         (`bare_calls.py`), if a call needs no more; otherwise the wrapper
```

With gradients, AOTAutograd's own function is known only after the first call.  Our function then
replaces it.  If AOTAutograd runs the first call on fake tensors, that call uses the wrapper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch.fx import GraphModule

from inductor_lab.compiler.accelerate import bare_calls
from inductor_lab.compiler.accelerate.warm_graphs import FINDER, OUR_KEYS, Part
from inductor_lab.compiler.torch_door.torch_aot import IS_WARM, KEY, Around, Compiler
from inductor_lab.compiler.torch_door.torch_names import optional

_TracingContext = optional("torch._guards.TracingContext")
_Serializable = optional("torch._functorch._aot_autograd.schemas.SerializableAOTDispatchCompiler")

BARE: dict[str, Callable[[GraphModule, Any], Any]] = {
    "inference": lambda graph, facts: bare_calls.written_by(facts),
    "forward": bare_calls.Trained.of,
    "backward": bare_calls.Gradient.of,
}
"""Maps a kind of graph to the function that returns the facts for a bare call, or None."""


class FirstCall(Around):
    """Learns what a call of one graph must do, while AOTAutograd compiles it or loads it from disk.

    key       the key of the graph on disk (`warm_key`); "" if it is not stored on disk
    found     called with the `remake` of a part that was loaded from disk
    is_bare   whether a call can skip AOTAutograd's wrappers
    traces    the stack traces of the captured graph's nodes, for a graph from disk
    facts     AOTAutograd's facts if a call needs only the compiled graph
    direct    the complete call without AOTAutograd's wrapper, once it is known to be equivalent
    is_fake   whether AOTAutograd runs the first call on fake tensors.  It does if the buckets of
              DistributedDataParallel split a graph, so that each piece sees the strides of the last
    """

    def __init__(
        self, module: GraphModule, inputs: Sequence[Any], key: str = "",
        found: Callable[[Any], None] = lambda remake: None, is_bare: bool = True,
    ) -> None:  # fmt: skip
        self.module, self.found = module, found
        self.key = key if IS_WARM and isinstance(module, GraphModule) else ""
        self.gradients = torch.is_grad_enabled() and any(map(_requires_grad, inputs))
        self.plain = is_bare and bare_calls.is_plain_call(module, inputs)
        context = _TracingContext and _TracingContext.try_get()
        self.is_fake = bool(context) and context.fakify_first_call
        self.arguments = len(inputs)
        nodes = module.graph.nodes if self.key else ()
        self.traces: Sequence[str] = [node.stack_trace or "" for node in nodes]
        self.facts: Any = None
        self.forwards: tuple[bare_calls.Compiled, bare_calls.Trained] | None = None
        self.backwards: tuple[bare_calls.Compiled, bare_calls.Gradient] | None = None
        self.direct: Callable[..., Any] | None = None

    def entered(self, stack: ExitStack, forward: Any) -> Any:
        """With a key, make AOTAutograd use it, and store the results of the compilers on disk."""
        if not self.key:
            return forward
        setattr(self.module, KEY, self.key)
        stack.enter_context(OUR_KEYS.set())
        stack.callback(FINDER.reset, FINDER.set(self))
        return _Serializable(Part, forward)

    def watching(self, kind: str, compiler: Compiler) -> Any:
        """Return the compiler for one kind of graph, wrapped to learn about what it compiles."""

        def compile_and_learn(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
            compiled = compiler(graph, examples)
            if kind != "backward":
                self.facts = bare_calls.facts_if_bare(graph, self.arguments)
            known = None if self.facts is None else BARE[kind](graph, self.facts)
            call = compiled.call if isinstance(compiled, Part) else compiled
            self.learn(kind, call, known)
            if self.key and isinstance(compiled, Part):
                return compiled.with_context(kind, known, self.traces)
            return call

        return super().watching(kind, compile_and_learn)

    def learn(self, kind: str, compiled: bare_calls.Compiled, known: Any) -> None:
        """Record a graph that was compiled or found on disk.

        `known` has the facts for a bare call, or is None if a call needs more.
        """
        if known is None or (kind != "backward" and not self.plain):
            return
        if kind == "inference" and not self.gradients:
            self.direct = bare_calls.counting_versions(lambda *args: compiled(list(args)), known)
        elif kind == "forward" and self.gradients:
            self.forwards = compiled, known
        elif kind == "backward":
            self.backwards = compiled, known

    def call(self, wrapped: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that Dynamo's code calls."""
        if not self.is_fake:
            return self._shortest(wrapped)
        first, then = iter([wrapped]), self._shortest(wrapped)
        return lambda *args: next(first, then)(*args)

    def _shortest(self, wrapped: Callable[..., Any]) -> Callable[..., Any]:
        forwards, backwards = self.forwards, self.backwards
        if forwards is None or backwards is None:
            return self.direct or wrapped

        def call(*args: Any) -> Any:
            if self.direct is not None:
                return self.direct(*args)
            results = wrapped(*args)
            function = bare_calls.autograd_function_of(results)
            if function is not None:  # several threads can get here, with the same result
                self.direct = bare_calls.direct_call(*forwards, *backwards, function)
            return results

        return call


def _requires_grad(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and given.requires_grad
