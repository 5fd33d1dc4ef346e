"""A captured function: guards are asked, a graph runs, Python does what the graph cannot.

    def f(x):                       f(x), the first time    capture graph 0 up to the print, run it,
        y = x + 1                                           print for real, capture graph 1, run it
        print("here")               f(x), the next time     guards of graph 0 hold: run it, print,
        return y * 2                                        guards of graph 1 hold: run it

TorchDynamo writes new bytecode that does the same, so that no interpreter is needed between graphs:
`eval_frame.py`, `resume_execution.py`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from inductor_lab.course.dynamo.interpreter import (
    BINARY,
    Interpreter,
    Outside,
    bound,
    knows,
    name_of,
)
from inductor_lab.course.dynamo.values import NULL, Break, Guards, Inputs, Traced, mapped, traced_in

Backend = Callable[[fx.GraphModule, list[Any]], Callable[..., Sequence[Any]]]
LIMIT = 8
"""Graphs for one place of a function; TorchDynamo's `recompile_limit`."""


@dataclass(eq=False)
class Entry:
    """One capture: valid while its guards hold.

    inputs       the graph's inputs, and the texts that fetch them
    outputs      tensors that the graph makes, in the order it returns them
    state        locals and stack at the end, or the result, in terms of the graph's tensors
    unread       locals that were not read: they stay unchanged
    end          place in the bytecode of the instruction that broke the graph
    broken       line and reason of the break that ends the graph; "" at the function's end
    """

    module: fx.GraphModule
    run: Callable[..., Sequence[Any]]
    guards: Guards
    inputs: dict[Traced, str]
    outputs: list[Traced]
    state: Any
    unread: tuple[str, ...]
    end: int
    broken: str


@dataclass(eq=False)
class Captured:
    """A function whose graphs are captured as it is called; `print` shows them.

    entries     by the place in the bytecode where they begin
    recompiles  guards that did not hold, in the order they were found
    """

    function: types.FunctionType
    backend: Backend
    entries: dict[int, list[Entry]] = field(default_factory=dict)
    recompiles: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[Entry]:
        return [entry for found in self.entries.values() for entry in found]

    @property
    def graphs(self) -> list[fx.GraphModule]:
        """The graphs that compute something, in the order of their capture."""
        return [entry.module for entry in self.all if _computes(entry.module)]

    @property
    def guards(self) -> list[str]:
        return [condition for entry in self.all for condition in entry.guards.conditions]

    @property
    def breaks(self) -> list[str]:
        return [entry.broken for entry in self.all if entry.broken]

    def __repr__(self) -> str:
        found = {"graph": len(self.graphs), "guard": len(self.guards), "break": len(self.breaks)}
        counts = (f"{n} {noun}{'s' * (n != 1)}" for noun, n in found.items())
        return f"Captured({self.function.__name__}: {', '.join(counts)})"

    def __str__(self) -> str:
        lines = [repr(self)]
        for number, entry in enumerate(self.all):
            lines += [f"== graph {number}", *(f"  guard  {c}" for c in entry.guards.conditions)]
            lines += [f"  {_line(node)}" for node in entry.module.graph.nodes]
            lines += [f"  break at {entry.broken}"] if entry.broken else []
        return "\n".join([*lines, *(f"recompiled: not {guard}" for guard in self.recompiles)])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not knows(self.function):
            return self.function(*args, **kwargs)
        frame = Interpreter(self.function, bound(self.function, args, kwargs))
        while frame.returned is NULL:
            entry = self._entry(frame)
            if entry is None:  # too many graphs for this place
                frame.run()
            else:
                self._run(entry, frame)
        return frame.returned

    def _scope(self, frame: Interpreter) -> dict[str, Any]:
        return {"L": frame.locals, "G": self.function.__globals__}

    def _entry(self, frame: Interpreter) -> Entry | None:
        """The first capture whose guards hold, or a new one; None at the limit."""
        known, scope = self.entries.setdefault(frame.place, []), self._scope(frame)
        for entry in known:
            if entry.guards.first_failed(scope) is None:
                return entry
        if len(known) >= LIMIT:
            return None
        if known:
            self.recompiles.append(known[-1].guards.first_failed(scope) or "")
        known.append(self._captured(frame))
        return known[-1]

    def _captured(self, start: Interpreter) -> Entry:
        """Write down one graph, from here to the next break or the return."""
        graph, guards = fx.Graph(), Guards()
        inputs = Inputs(graph, guards)
        local = {name: Outside(v, f"L[{name!r}]") for name, v in start.locals.items()}
        frame = Interpreter(self.function, local, start.place, graph, inputs)
        broken = ""
        try:
            frame.run()
        except Break as reason:
            broken = f"line {frame.line()}: {reason}"
        unread = tuple(name for name, v in frame.locals.items() if isinstance(v, Outside))
        read = {name: v for name, v in frame.locals.items() if name not in unread}
        state = [list(read), list(read.values()), frame.stack] if broken else [frame.returned]
        outputs = [v for v in traced_in(state) if v not in inputs.sources]
        graph.output(tuple(traced.node for traced in outputs))
        module = _tidied(fx.GraphModule(torch.nn.Module(), graph))
        examples = [eval(text, self._scope(start)) for text in inputs.sources.values()]
        run = self.backend(module, examples) if _computes(module) else module.forward
        return Entry(
            module, run, guards, inputs.sources, outputs, state, unread, frame.place, broken
        )

    def _run(self, entry: Entry, frame: Interpreter) -> None:
        """The graph on this call's tensors; then, if it was broken, Python to the statement's end.

        A statement inside a loop ends with the loop: the iterator lies on the stack.
        """
        scope = self._scope(frame)
        made = {traced: eval(text, scope) for traced, text in entry.inputs.items()}
        made.update(zip(entry.outputs, entry.run(*made.values()), strict=True))
        state = mapped(entry.state, lambda v: made[v] if isinstance(v, Traced) else v)
        if not entry.broken:
            (frame.returned,) = state
            return
        names, values, frame.stack = state
        kept = {name: frame.locals[name] for name in entry.unread}
        frame.locals, frame.place = kept | dict(zip(names, values, strict=True)), entry.end
        frame.step()
        while frame.returned is NULL and frame.stack:
            frame.step()


def capture(function: Callable[..., Any], backend: Backend | None = None) -> Captured:
    """Capture a function's graphs as it is called.

    `backend(module, example_inputs)` returns what runs a graph; without one it runs in eager mode.
    Raises TypeError for what is no plain Python function.
    """
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"a plain Python function is needed, not a {type(function).__name__}")
    return Captured(function, backend or (lambda module, inputs: module.forward))


def _tidied(module: fx.GraphModule) -> fx.GraphModule:
    """Without unused nodes; nodes that write to their arguments stay."""
    module.graph.eliminate_dead_code(is_impure_node=_writes)
    module.recompile()
    return module


def _writes(node: fx.Node) -> bool:
    """Does it write to an argument (`add_`, `x += 1`)?"""
    name = name_of(node.target)
    return node.op in ("placeholder", "output") or name.endswith("_") or name in WRITING


WRITING = {BINARY[symbol].__name__ for symbol in BINARY if symbol[:-1] in BINARY}


def _computes(module: fx.GraphModule) -> bool:
    return any(node.op not in ("placeholder", "output") for node in module.graph.nodes)


def _line(node: fx.Node) -> str:
    if node.op == "placeholder":
        return f"{node.name} is an input"
    if node.op == "output":
        return f"return {node.args[0]}"
    args = [*map(str, node.args), *(f"{key}={value}" for key, value in node.kwargs.items())]
    if node.op == "call_method":
        return f"{node.name} = {args[0]}.{node.target}({', '.join(args[1:])})"
    return f"{node.name} = {name_of(node.target)}({', '.join(args)})"
