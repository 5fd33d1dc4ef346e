"""One method for each bytecode instruction: on values of the graph they write nodes.

    LOAD_FAST x        [x]
    LOAD_CONST 1       [x, 1]
    BINARY_OP +        [add]          and the graph has a node  add = x + 1

The same methods run the instructions for real (`real=True`), which is what happens at a graph
break.  TorchDynamo: `symbolic_convert.py`, InstructionTranslator, which has a method for each too.
"""

from __future__ import annotations

import dis
import inspect
import operator
import types
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import fx

from inductor_lab.course.dynamo.values import (
    NULL,
    Break,
    Inputs,
    Method,
    Traced,
    mapped,
    traced_in,
)

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "@": operator.matmul,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift, "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul,
    "/=": operator.itruediv, "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow,
    "@=": operator.imatmul, "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
PURE = {len, range, min, max, abs, sum, isinstance, enumerate, zip, tuple, list, reversed, int,
        float, bool, round, slice}  # fmt: skip
"""Builtins that change nothing: they may run while capturing, on values that are no tensors."""
CARRIERS = {enumerate, zip, tuple, list, reversed, slice}
"""Builtins that carry their arguments on without looking at them."""
MAKERS = {torch.zeros, torch.ones, torch.full, torch.arange, torch.eye, torch.empty, torch.rand,
          torch.randn}  # fmt: skip
QUESTIONS = {"size", "dim", "numel", "stride", "is_contiguous", "is_floating_point", "is_tensor"}
"""Functions of tensors whose answers are no tensors and need no data."""


class Interpreter:
    """Runs one frame's instructions on `stack` and `locals`, from `place` on.

    inputs   wraps what comes from outside; None when the instructions run for real
    scope    L, G, C: what guards are about
    """

    def __init__(self, function: types.FunctionType, local: dict[str, Any], place: int = 0,
                 graph: fx.Graph | None = None, inputs: Inputs | None = None) -> None:  # fmt: skip
        self.function, self.code = function, function.__code__
        self.instructions = list(dis.get_instructions(self.code))
        self.at = {instruction.offset: n for n, instruction in enumerate(self.instructions)}
        self.locals, self.place, self.stack = local, place, list[Any]()
        self.graph, self.inputs, self.real = graph, inputs, graph is None
        self.keywords: tuple[str, ...] = ()
        self.returned: Any = NULL

    def run(self) -> None:
        """Until the function returns; a Break leaves everything as it was before the instruction
        that could not be captured."""
        while self.returned is NULL:
            self.step()

    def step(self) -> None:
        """One instruction."""
        instruction = self.instructions[self.place]
        stack, place, written = list(self.stack), self.place, len(self._nodes())
        self.place += 1
        try:
            HANDLERS[instruction.opname](self, instruction)
        except Exception as error:
            if self.graph is None:
                raise
            self.stack[:], self.place = stack, place
            for node in reversed(self._nodes()[written:]):
                self.graph.erase_node(node)
            if isinstance(error, Break):
                raise
            raise Break(f"{type(error).__name__}: {error}") from error

    def line(self) -> int:
        """The line of the user's code that is being run."""
        positions = self.instructions[self.place].positions
        return (positions and positions.lineno) or self.code.co_firstlineno

    def _nodes(self) -> list[fx.Node]:
        kept = [] if self.graph is None else list(self.graph.nodes)
        return [node for node in kept if node.op != "placeholder"]

    def push(self, *values: Any) -> None:
        self.stack.extend(values)

    def pop(self, count: int) -> list[Any]:
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    # ---- values ------------------------------------------------------------------------------

    def local(self, name: str) -> Any:
        value = self.locals[name]
        if isinstance(value, Outside):
            assert self.inputs is not None
            value = self.locals[name] = self.inputs.wrapped(value.value, value.source, name)
        return value

    def apply(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """An operation: done at once for plain values, written down for tensors of the graph."""
        if self.real or not any(traced_in([*args, *kwargs.values()])):
            return function(*args, **kwargs)
        return self.write("call_function", function, function, args, kwargs)

    def write(self, kind: str, target: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Find out on tensors without data what comes out; a node for it, if it is a tensor."""
        likes = mapped([list(args), list(kwargs.values())], _like)
        try:
            with torch.device("meta"):
                result = function(*likes[0], **dict(zip(kwargs, likes[1], strict=True)))
        except Exception as error:
            raise Break(f"{name_of(target)}: {str(error).splitlines()[0][:80]}") from error
        parts = result if isinstance(result, tuple | list) else [result]
        if not all(isinstance(part, torch.Tensor) for part in parts):
            if name_of(target) not in QUESTIONS:
                raise Break(f"{name_of(target)} does not return tensors")
            return result
        assert self.graph is not None
        nodes = mapped([list(args), list(kwargs.values())], _node)
        node = self.graph.create_node(
            kind, target, tuple(nodes[0]), dict(zip(kwargs, nodes[1], strict=True))
        )
        if isinstance(result, torch.Tensor):
            return Traced(node, result.to("meta"))
        items = [self.graph.call_function(operator.getitem, (node, n)) for n in range(len(parts))]
        return tuple(Traced(item, like) for item, like in zip(items, parts, strict=True))

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A call: a tensor operation, something pure, a function to look into, or a break."""
        if self.real:
            return function(*args, **kwargs)
        if isinstance(function, Method):
            name = function.name
            return self.write("call_method", name, getattr(torch.Tensor, name),
                              [function.owner, *args], kwargs)  # fmt: skip
        traced = any(traced_in([args, list(kwargs.values())]))
        if _is_tensor_function(function) and (traced or function in MAKERS):
            return self.write("call_function", function, function, args, kwargs)
        if function is len and traced and isinstance(args[0], Traced):
            return len(args[0].like)
        pure = isinstance(function, Hashable) and (function in PURE or _home(function) == "math")
        walks = any(isinstance(value, Traced) for value in args)
        if pure and (not traced or function in CARRIERS) and not walks:
            value = function(*args, **kwargs)
            return list(value) if isinstance(value, enumerate | zip | reversed) else value
        if isinstance(function, types.FunctionType) and not function.__module__.startswith("torch"):
            return self.inline(function, args, kwargs)
        raise Break(f"a call of {name_of(function)}")

    def inline(self, function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The body of a function of the user's, as if it stood here."""
        elsewhere = function.__globals__ is not self.function.__globals__
        if function.__closure__ or elsewhere or not knows(function):
            raise Break(f"{function.__name__} cannot be looked into")
        local = bound(function, args, kwargs)
        inner = Interpreter(function, local, graph=self.graph, inputs=self.inputs)
        inner.run()
        return inner.returned


NOT_PLAIN = inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE


class Outside:
    """A local that has not been read yet, and its source."""

    def __init__(self, value: Any, source: str) -> None:
        self.value, self.source = value, source


def bound(function: types.FunctionType, args: Any, kwargs: Any) -> dict[str, Any]:
    """The locals that a call starts with; raises TypeError as the call itself would."""
    given = inspect.signature(function).bind(*args, **kwargs)
    given.apply_defaults()
    return dict(given.arguments)


def knows(function: types.FunctionType) -> bool:
    """Are all of its instructions known here?"""
    plain = not function.__code__.co_flags & NOT_PLAIN
    names = {instruction.opname for instruction in dis.get_instructions(function)}
    return plain and not function.__code__.co_cellvars and names <= HANDLERS.keys()


def _like(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("meta")
    return value.like if isinstance(value, Traced) else value


def _node(value: Any) -> Any:
    return value.node if isinstance(value, Traced) else value


def name_of(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", repr(target))


def _home(function: Any) -> str | None:
    return getattr(function, "__module__", None)


def _is_tensor_function(function: Any) -> bool:
    """A function of torch's that computes tensors from tensors and does nothing else."""
    in_c = isinstance(function, types.BuiltinFunctionType)
    of_torch = in_c and getattr(torch, function.__name__, None) is function
    return of_torch or _home(function) in (
        "torch.nn.functional",
        "torch.functional",
        "torch._C._nn",
    )


Handler = Callable[[Interpreter, dis.Instruction], None]
HANDLERS: dict[str, Handler] = {}
"""By the name of the instruction, in Python 3.11 to 3.13; `instructions.py` fills it."""
