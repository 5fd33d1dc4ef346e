"""Run loop programs and schedules of the labs with NumPy: a small interpreter for a browser.

    program_with_numpy(program, inputs)       its nests in order
    schedule_with_numpy(schedule, inputs)     group after group; an inlined producer is its body

It has the operations of the labs' programs: float32, fixed sizes, no scans and no scatters.
`compiler/ir/interpret.py` is the whole interpreter, which needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from math import prod
from typing import Any, TypeAlias

import numpy

from inductor_lab.compiler.base.errors import NeedsTorch
from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Load, Masked, Op
from inductor_lab.compiler.ir.index import Atom, Axis, Index, Quotient, Remainder
from inductor_lab.compiler.ir.program import (
    BufferView,
    ExternCall,
    LoopProgram,
    Nest,
    Pointwise,
    Reduction,
)
from inductor_lab.compiler.schedule.schedule import Schedule

Array: TypeAlias = Any
"""A NumPy array."""

Producers: TypeAlias = Mapping[str, Pointwise]

OPERATIONS: Mapping[str, Callable[..., Array]] = {
    "add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "truediv": numpy.divide,
    "neg": numpy.negative, "exp": numpy.exp, "log": numpy.log, "sin": numpy.sin, "cos": numpy.cos,
    "sqrt": numpy.sqrt, "tanh": numpy.tanh, "abs": numpy.abs,
    "maximum": numpy.maximum, "minimum": numpy.minimum, "where": numpy.where,
    "lt": numpy.less, "le": numpy.less_equal, "gt": numpy.greater, "ge": numpy.greater_equal,
    "eq": numpy.equal, "ne": numpy.not_equal, "convert": lambda a: a,
    "rsqrt": lambda a: 1 / numpy.sqrt(a), "reciprocal": lambda a: 1 / a,
    "sigmoid": lambda a: 1 / (1 + numpy.exp(-a)), "fma": lambda a, b, c: a * b + c,
    "pow": numpy.power, "relu": lambda a: numpy.maximum(a, 0),
}  # fmt: skip
REDUCERS: Mapping[str, Callable[..., Array]] = {
    "sum": numpy.sum, "prod": numpy.prod, "max": numpy.max, "min": numpy.min,
    "any": numpy.any, "all": numpy.all,
}  # fmt: skip
CALLS: Mapping[str, Callable[..., Array]] = {
    "aten.mm.default": numpy.matmul, "aten.bmm.default": numpy.matmul,
}  # fmt: skip


def inputs_for(program: LoopProgram, seed: int = 0) -> list[Array]:
    """Random float32 arrays for the inputs of a program."""
    draw = numpy.random.default_rng(seed)
    sizes = [_sizes(program, name) for name in map(str, program.inputs)]
    return [draw.standard_normal(size, dtype=numpy.float32) for size in sizes]


def program_with_numpy(program: LoopProgram, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a program, one nest after the other.

    Raises NeedsTorch for what this interpreter does not have.
    """
    env = dict(zip(map(str, program.inputs), inputs, strict=True))
    for step in program.steps:
        if isinstance(step, ExternCall):
            _call(step, program, env)
        else:
            env[step.buffer] = _nest(step, env, {})
    return _outputs(program, env)


def schedule_with_numpy(schedule: Schedule, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a schedule, one kernel after the other.  What a kernel does not store is gone
    at its end.  Raises NeedsTorch as above."""
    program = schedule.program
    env = dict(zip(map(str, program.inputs), inputs, strict=True))
    for step in schedule.steps:
        if isinstance(step, ExternCall):
            _call(step, program, env)
            continue
        for group in step.parts:
            for nest in group.nests:
                env[nest.buffer] = _nest(nest, env, group.inlined)
            for nest in group.nests:
                if nest.buffer not in group.stored:
                    del env[nest.buffer]
    return _outputs(program, env)


def _call(call: ExternCall, program: LoopProgram, env: dict[str, Array]) -> None:
    function, name = CALLS.get(call.op), call.outputs[0]
    if function is None or name is None or call.bases:
        raise NeedsTorch
    env[name] = function(*(_view(arg, program, env) for arg in call.args))


def _outputs(program: LoopProgram, env: Mapping[str, Array]) -> list[Array]:
    return [_view(output, program, env) for output in program.outputs]


def _view(view: Any, program: LoopProgram, env: Mapping[str, Array]) -> Array:
    """A buffer, or a strided view of one."""
    if not isinstance(view, BufferView):
        raise NeedsTorch
    array = env[view.buffer]
    base = program.buffers[view.buffer].layout
    if view.layout == base:
        return array
    memory = numpy.zeros(prod(_numbers(base.size)), array.dtype)
    strides = [step * array.itemsize for step in _numbers(base.stride)]
    numpy.lib.stride_tricks.as_strided(memory, array.shape, strides)[...] = array
    start, *steps = _numbers((view.layout.offset, *view.layout.stride))
    steps = [step * array.itemsize for step in steps]
    return numpy.lib.stride_tricks.as_strided(memory[start:], _numbers(view.layout.size), steps)


def _sizes(program: LoopProgram, buffer: str) -> list[int]:
    return _numbers(program.buffers[buffer].layout.size)


def _numbers(sizes: Sequence[Any]) -> list[int]:
    if not all(isinstance(size, int) for size in sizes):
        raise NeedsTorch
    return list(sizes)


def _nest(nest: Nest, env: Mapping[str, Array], producers: Producers) -> Array:
    """All elements of a nest: a dimension for each axis, those of a reduction last."""
    if not isinstance(nest, Pointwise | Reduction):
        raise NeedsTorch
    axes = (*nest.axes, *(nest.reduce_axes if isinstance(nest, Reduction) else ()))
    sizes = _numbers([axis.size for axis in axes])
    values = numpy.broadcast_to(_Points(axes, env, producers).value(nest.body), sizes)
    if isinstance(nest, Reduction):
        if nest.kind not in REDUCERS:
            raise NeedsTorch
        return REDUCERS[nest.kind](values, axis=tuple(range(len(nest.axes), len(axes))))
    return values


class _Points:
    """The points of some axes, at which expressions are evaluated; each subtree once."""

    def __init__(
        self, axes: Sequence[Axis], env: Mapping[str, Array], producers: Producers
    ) -> None:
        self.env, self.producers = env, producers
        grid = numpy.indices(_numbers([axis.size for axis in axes]), sparse=True)
        self.places = dict(zip(axes, grid, strict=True))
        self.seen: dict[tuple[Expr, bool], Array] = {}

    def value(self, expr: Expr, masked: bool = False) -> Array:
        """The values of an expression; under a mask, an index out of range reads any value."""
        key = (expr, masked)
        if key not in self.seen:
            self.seen[key] = self._compute(expr, masked)
        return self.seen[key]

    def _compute(self, expr: Expr, masked: bool) -> Array:
        match expr:
            case Load(buffer, index) if buffer in self.producers:
                return self.value(self.producers[buffer].at(index), masked)
            case Load(buffer, index):
                array, places = self.env[buffer], map(self._index, index)
                if masked:
                    places = map(numpy.clip, places, repeat(0), [n - 1 for n in array.shape])
                return array[tuple(places)]
            case Const(value, dtype):
                return numpy.float32(value) if dtype.is_floating_point else value
            case IndexValue(index):
                return self._index(index)
            case Op(name, args) if name in OPERATIONS:
                return OPERATIONS[name](*(self.value(arg, masked) for arg in args))
            case Masked(mask, body, other):
                where = self.value(mask, masked)
                return numpy.where(where, self.value(body, True), self.value(other, masked))
            case _:
                raise NeedsTorch

    def _index(self, index: Index) -> Array:
        total = index.constant
        for atom, factor in index.terms:
            total = total + self._atom(atom) * factor
        return total

    def _atom(self, atom: Atom) -> Array:
        match atom:
            case Axis():
                return self.places[atom]
            case Quotient(dividend, divisor):
                return self._index(dividend) // divisor
            case Remainder(dividend, divisor):
                return self._index(dividend) % divisor
            case _:
                raise NeedsTorch
