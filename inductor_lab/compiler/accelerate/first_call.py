"""What a first call is: AOTAutograd has a graph compiled, or finds it on disk, and what later calls
can leave out is learned meanwhile.

```
first call      Dynamo → AOTAutograd → our compilers, or a `Part` from disk (`warm_graphs.py`)
                         each tells `learn` of what it has: the code, and whether a call needs more
                         → AOTAutograd's wrapper is called
later calls     Dynamo → the host program (no gradient), or an `autograd.Function` of ours
                         (`bare_calls.py`), where a call does no more than that; else the wrapper
```

With gradients the second call is the first that knows AOTAutograd's own function, which ours
replaces.  Where AOTAutograd answers the first call with fake tensors, that one goes to the wrapper.
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
"""Kind of graph → what a call that does no more than that needs to know, if that is all."""


class FirstCall(Around):
    """What is left to do for one graph in a call, learned while AOTAutograd has it compiled or
    finds it on disk.

    key       what the graph must have been compiled with, to be taken from disk (`warm_key`); ""
              where it is compiled anew, and not kept
    found     is given the `remake` of a part that is taken from disk
    is_bare   may a call leave out AOTAutograd's wrappers?
    traces    the stack traces of the captured graph's nodes, by which a graph on disk finds its own
    facts     AOTAutograd's, if a call does no more than the compiled graph
    direct    the whole call without AOTAutograd's wrapper, once it is known to do the same
    pretends  whether AOTAutograd answers the first call with fake tensors: where the buckets of
              DistributedDataParallel cut a graph in pieces, each is to see the strides of the last
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
        self.pretends = bool(context) and context.fakify_first_call
        self.arguments = len(inputs)
        nodes = module.graph.nodes if self.key else ()
        self.traces: Sequence[str] = [node.stack_trace or "" for node in nodes]
        self.facts: Any = None
        self.forwards: tuple[bare_calls.Compiled, bare_calls.Trained] | None = None
        self.backwards: tuple[bare_calls.Compiled, bare_calls.Gradient] | None = None
        self.direct: Callable[..., Any] | None = None

    def entered(self, stack: ExitStack, forward: Any) -> Any:
        """With a key, AOTAutograd asks ours for it, and keeps what the compilers return."""
        if not self.key:
            return forward
        setattr(self.module, KEY, self.key)
        stack.enter_context(OUR_KEYS.set())
        stack.callback(FINDER.reset, FINDER.set(self))
        return _Serializable(Part, forward)

    def watching(self, kind: str, compiler: Compiler) -> Any:
        """The compiler of one kind of graph, from which we learn of what it has compiled."""

        def compile_and_learn(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
            compiled = compiler(graph, examples)
            if kind != "backward":
                self.facts = bare_calls.facts_if_bare(graph, self.arguments)
            known = None if self.facts is None else BARE[kind](graph, self.facts)
            call = compiled.call if isinstance(compiled, Part) else compiled
            self.learn(kind, call, known)
            if self.key and isinstance(compiled, Part):
                return compiled.kept_with(kind, known, self.traces)
            return call

        return super().watching(kind, compile_and_learn)

    def learn(self, kind: str, compiled: bare_calls.Compiled, known: Any) -> None:
        """A graph of this kind is compiled, or was found; `known` is what a call that does no more
        needs to know, None where it has more to do."""
        if known is None or (kind != "backward" and not self.plain):
            return
        if kind == "inference" and not self.gradients:
            self.direct = bare_calls.counting(lambda *args: compiled(list(args)), known)
        elif kind == "forward" and self.gradients:
            self.forwards = compiled, known
        elif kind == "backward":
            self.backwards = compiled, known

    def call(self, wrapped: Callable[..., Any]) -> Callable[..., Any]:
        """What Dynamo's code calls."""
        if not self.pretends:
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
            function = bare_calls.function_behind(results)
            if function is not None:  # several threads may come here; each finds the same
                self.direct = bare_calls.direct_call(*forwards, *backwards, function)
            return results

        return call


def _requires_grad(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and given.requires_grad
