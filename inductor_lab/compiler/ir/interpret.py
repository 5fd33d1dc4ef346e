"""Run loop nests with torch: the meaning of a program, without generated code.

An axis becomes a dimension: every value has one dimension for each axis of the nest, of length 1 if
it does not depend on that axis.  A load at affine indices is a strided view of the buffer, so it
costs nothing; other loads gather.

Inductor: `ir.py` has no interpreter; the nearest is `LoopBody.__call__` with a handler installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import sympy
import torch

from inductor_lab.compiler.ir.expr import Const, Expr, IndexValue, Load, Masked, Op, SizeValue, Temp
from inductor_lab.compiler.ir.higher_order import PREFIX, call_higher_order
from inductor_lab.compiler.ir.index import Atom, Axis, Gathered, Index, Quotient, Size
from inductor_lab.compiler.ir.ops_torch import (
    OPERATIONS,
    REDUCERS,
    SCANNERS,
    nonzero_divisor,
    scatter_into,
)
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferView,
    Callee,
    ExternArg,
    ExternCall,
    LoopProgram,
    Nest,
    Output,
    Reduction,
    Scan,
    Scatter,
    Step,
)

Symbols = Mapping[sympy.Symbol, Any]
"""The value of each symbol of the graph in this run."""

NO_SYMBOLS: Symbols = {}

Env = Mapping[str, torch.Tensor]
"""Buffers by name, each with its logical sizes (any strides are allowed)."""


def concrete(size: Size, symbols: Symbols) -> int:
    """The value of a size in this run."""
    return size if isinstance(size, int) else int(size.subs(_numbers(symbols)))


def _numbers(symbols: Symbols) -> Symbols:
    """Without symbols of jagged dimensions (`torch.jagged`), whose values are not numbers."""
    return {symbol: n for symbol, n in symbols.items() if not isinstance(n, torch.SymInt)}


class _Place:
    """The context in which a body is evaluated: the axes, their sizes, and the buffers.

    `seen` maps the identity of a subtree to its value, so that a shared subtree is computed once.
    """

    def __init__(
        self, axes: Sequence[Axis], env: Env, symbols: Symbols, device: torch.device
    ) -> None:
        self.env, self.symbols, self.device = env, symbols, device
        self.position = {axis: d for d, axis in enumerate(axes)}
        self.sizes = [concrete(axis.size, symbols) for axis in axes]
        self.seen: dict[tuple[int, bool], torch.Tensor] = {}

    def value(self, expr: Expr, masked: bool = False) -> torch.Tensor:
        """The values of `expr`; under a mask, an index out of range reads any value and raises no
        error."""
        key = (id(expr), masked)
        if key not in self.seen:
            self.seen[key] = self._compute(expr, masked)
        return self.seen[key]

    def _compute(self, expr: Expr, masked: bool) -> torch.Tensor:
        match expr:
            case Load(buffer, index):
                return self._load(self.env[buffer], index, masked)
            case Const(value, dtype):
                return self._scalar(value, dtype)
            case SizeValue(size, dtype):
                return self._scalar(concrete(size, self.symbols), dtype)
            case IndexValue(index, dtype):
                place = self._index(index, masked)
                return self._scalar(place, dtype) if isinstance(place, int) else place.to(dtype)
            case Op(name, args, dtype):
                values = [self.value(arg, masked) for arg in args]
                if masked:
                    values = nonzero_divisor(name, values)
                return OPERATIONS[name](dtype, *values)
            case Masked(mask, body, other):
                where = self.value(mask, masked)
                return torch.where(where, self.value(body, True), self.value(other, masked))
            case Temp(name):
                return self.env[name]

    def _scalar(self, value: float, dtype: torch.dtype) -> torch.Tensor:
        wide = torch.int64 if isinstance(value, int) and not dtype.is_floating_point else None
        tensor = torch.tensor(value, dtype=wide or dtype, device=self.device)
        return tensor.to(dtype).reshape([1] * len(self.sizes))

    def _load(self, tensor: torch.Tensor, index: tuple[Index, ...], masked: bool) -> torch.Tensor:
        view = self._strided(tensor, index)
        if view is not None:
            return view
        places = [self._index(i, masked) for i in index]
        found = []
        for place, length in zip(places, tensor.shape, strict=True):
            at = place if isinstance(place, torch.Tensor) else self._scalar(place, torch.int64)
            at = at.to(tensor.device)
            if masked:
                at = at.clamp(0, max(length - 1, 0))
            found.append(at if masked else _checked(at, length))
        if masked and tensor.numel() == 0:
            return tensor.new_zeros([1] * len(self.sizes)).to(self.device)
        return tensor[tuple(found)].to(self.device)

    def _strided(self, tensor: torch.Tensor, index: tuple[Index, ...]) -> torch.Tensor | None:
        """A view, if every index is affine and in range, and no stride is negative; otherwise
        None."""
        strides = [0] * len(self.sizes)
        offset = tensor.storage_offset()
        for i, length, stride in zip(index, tensor.shape, tensor.stride(), strict=True):
            low = high = concrete(i.constant, self.symbols)
            offset += low * stride
            for atom, factor in i.terms:
                if not isinstance(atom, Axis):
                    return None
                step, d = concrete(factor, self.symbols), self.position[atom]
                strides[d] += step * stride
                reach = step * (self.sizes[d] - 1)
                low, high = low + min(reach, 0), high + max(reach, 0)
            if low < 0 or high >= length:
                return None
        if any(stride < 0 for stride in strides) or 0 in self.sizes:
            return None
        sizes = [n if s else 1 for n, s in zip(self.sizes, strides, strict=True)]
        return tensor.as_strided(sizes, strides, offset).to(self.device)

    def _index(self, index: Index, masked: bool) -> int | torch.Tensor:
        total: int | torch.Tensor = concrete(index.constant, self.symbols)
        for atom, factor in index.terms:
            total = total + self._atom(atom, masked) * concrete(factor, self.symbols)
        return total

    def _atom(self, atom: Atom, masked: bool) -> int | torch.Tensor:
        if isinstance(atom, Axis):
            d = self.position[atom]
            shape = [1] * len(self.sizes)
            shape[d] = self.sizes[d]
            return torch.arange(self.sizes[d], device=self.device).reshape(shape)
        if isinstance(atom, Gathered):
            place = self.value(atom.value, masked).to(torch.int64)
            return place if masked else _checked(place, concrete(atom.size, self.symbols))
        divisor = concrete(atom.divisor, self.symbols)
        dividend = self._index(atom.dividend, masked)
        return dividend // divisor if isinstance(atom, Quotient) else dividend % divisor


def _checked(place: torch.Tensor, length: int) -> torch.Tensor:
    if place.numel() and (int(place.min()) < 0 or int(place.max()) >= length):
        raise IndexError(f"index out of range in a dimension of size {length}")
    return place


def evaluate(
    expr: Expr,
    axes: Sequence[Axis],
    env: Env,
    symbols: Symbols = NO_SYMBOLS,
    device: torch.device | str | None = None,
) -> torch.Tensor:
    """The values of `expr` over all points of `axes`.

    The result has one dimension for each axis, of length 1 if the value does not depend on it.
    `env` holds the buffers that are loaded; `device` is needed if there are no loads.
    """
    place = torch.device(device) if device is not None else _device_of(expr, env)
    with torch.no_grad():
        return _Place(axes, env, symbols, place).value(expr)


def _device_of(expr: Expr, env: Env) -> torch.device:
    """The device of a body's data; if CPU scalars and GPU tensors are mixed, it is the GPU."""
    found = [env[load.buffer] for load in expr.loads() if load.buffer in env]
    found.sort(key=lambda tensor: (tensor.device.type == "cpu", -tensor.dim()))
    return found[0].device if found else torch.device("cpu")


def run_nest(
    nest: Nest, env: Env, symbols: Symbols = NO_SYMBOLS, device: torch.device | str | None = None
) -> torch.Tensor:
    """All elements of the nest's buffer, in the dtype of its body (int64 for positions).

    `stored` converts them to the buffer's dtype and strides.
    """
    axes = (*nest.axes, *nest.reduce_axes)
    if isinstance(nest, Scatter):
        return _run_scatter(nest, env, symbols, device)
    if isinstance(nest, Reduction) and nest.kind == "bisect":
        return _bisect(nest, env, symbols, device)
    values = evaluate(nest.body, axes, env, symbols, device)
    sizes = [concrete(axis.size, symbols) for axis in axes]
    rank = len(nest.axes)
    if isinstance(nest, Reduction):
        along = prod(sizes[rank:])
        spread = values.expand([*values.shape[:rank], *sizes[rank:]])
        values = REDUCERS[nest.kind](spread.reshape([*values.shape[:rank], along]))
    elif isinstance(nest, Scan):
        values = SCANNERS[nest.kind](values.expand(sizes), axes.index(nest.axis))
    return values.expand(sizes[:rank])


def _run_scatter(
    nest: Scatter, env: Env, symbols: Symbols, device: torch.device | str | None
) -> torch.Tensor:
    """A copy of the base in which the values are stored, point after point."""
    result = env[nest.base].clone(memory_format=torch.contiguous_format)
    sizes = [concrete(axis.size, symbols) for axis in nest.axes]
    if 0 in sizes:
        return result
    flat = torch.zeros([1] * len(sizes), dtype=torch.int64, device=result.device)
    for index, length in zip(nest.index, result.shape, strict=True):
        place = evaluate(IndexValue(index, torch.int64), nest.axes, env, symbols, result.device)
        flat = flat * length + _checked(place, length)
    values = evaluate(nest.body, nest.axes, env, symbols, device).expand(sizes).flatten()
    scatter_into(result.view(-1), flat.expand(sizes).flatten(), values, nest.kind)
    return result


def _bisect(
    nest: Reduction, env: Env, symbols: Symbols, device: torch.device | str | None
) -> torch.Tensor:
    """The binary search for all points at once: each step evaluates the body at the middle of each
    range."""
    (axis,) = nest.reduce_axes
    middle = Temp("middle", torch.int64)
    body = nest.body.substitute({axis: Index.of(Gathered(middle, axis.size))})
    size = concrete(axis.size, symbols)
    low = torch.zeros([concrete(a.size, symbols) for a in nest.axes], dtype=torch.int64)
    low = low.to(device or _device_of(body, env))
    high = torch.full_like(low, size)
    for _ in range(size.bit_length()):
        at = low + (high - low) // 2
        tested = {**env, middle.name: at.clamp(max=size - 1)}
        holds = evaluate(body, nest.axes, tested, symbols, low.device)
        low, high = (
            torch.where((low < high) & ~holds, at + 1, low),
            torch.where((low < high) & holds, at, high),
        )
    return low


def stored(values: torch.Tensor, buffer: Buffer, symbols: Symbols = NO_SYMBOLS) -> torch.Tensor:
    """The values in the buffer's dtype, sizes and strides.

    If elements of the buffer share memory (it was an expanded input), their values are the same.
    """
    found = empty_for(buffer, symbols, values.device)
    once = tuple(slice(None if step else 1) for step in found.stride())
    found[once].copy_(values[once])
    return found


def empty_for(buffer: Buffer, symbols: Symbols, device: torch.device | str = "cpu") -> torch.Tensor:
    """New memory with the buffer's layout."""
    size = [concrete(s, symbols) for s in buffer.layout.size]
    stride = [concrete(s, symbols) for s in buffer.layout.stride]
    offset = concrete(buffer.layout.offset, symbols)
    reach = sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    room = offset + reach + 1 if prod(size) else offset
    memory = torch.zeros(room, dtype=buffer.dtype, device=device)
    return memory.as_strided(size, stride, offset)


def _laid_out(values: torch.Tensor, buffer: Buffer, symbols: Symbols) -> torch.Tensor:
    """The tensor itself if it already has the buffer's layout, otherwise a copy with that
    layout."""
    if values.layout is not torch.strided or values.is_quantized:
        return values
    planned = [concrete(s, symbols) for s in buffer.layout.stride]
    relevant = [d for d, n in enumerate(values.shape) if n > 1]
    same = all(values.stride(d) == planned[d] for d in relevant) or values.numel() == 0
    if same and values.dtype == buffer.dtype:
        return values
    return stored(values, buffer, symbols)


def view_of(
    view: BufferView, tensor: torch.Tensor, buffer: Buffer, symbols: Symbols
) -> torch.Tensor:
    """The strided view of a buffer's storage that `view` describes (all of a sparse tensor)."""
    if tensor.layout is not torch.strided:
        return tensor
    size = [concrete(s, symbols) for s in view.layout.size]
    stride = [concrete(s, symbols) for s in view.layout.stride]
    start = tensor.storage_offset() - concrete(buffer.layout.offset, symbols)
    return tensor.as_strided(size, stride, start + concrete(view.layout.offset, symbols))


def bind_symbols(program: LoopProgram, inputs: Sequence[Any]) -> dict[sympy.Symbol, Any]:
    """The values of the program's symbols, from int arguments and from sizes of tensors."""
    symbols: dict[sympy.Symbol, Any] = {}
    for declared, given in zip(program.inputs, inputs, strict=True):
        if isinstance(declared, sympy.Symbol):
            number = isinstance(given, int | float | torch.SymInt | torch.SymFloat)
            ragged = isinstance(given, torch.SymInt) and given.node.is_nested_int()
            symbols[declared] = int(given) if number and not ragged else given
        elif isinstance(declared, str) and isinstance(given, torch.Tensor):
            _bind_sizes(program.buffers[declared], given, symbols)
    return symbols


def _bind_sizes(buffer: Buffer, tensor: torch.Tensor, symbols: dict[sympy.Symbol, Any]) -> None:
    for size, length in zip(buffer.layout.size, tensor.shape, strict=True):
        if isinstance(size, sympy.Symbol):
            symbols.setdefault(size, int(length))


class Run:
    """One run of a program: the buffers that exist so far, and the real device of each planned
    one."""

    def __init__(self, program: LoopProgram, inputs: Sequence[Any]) -> None:
        self.program = program
        self.symbols = bind_symbols(program, inputs)
        self.env: dict[str, torch.Tensor] = {}
        self.devices: dict[str, torch.device] = {}
        for declared, given in zip(program.inputs, inputs, strict=True):
            if isinstance(declared, str) and given is not None:
                buffer = program.buffers[declared]
                self.devices.setdefault(buffer.device, given.device)
                self.env[declared] = _laid_out(given.detach(), buffer, self.symbols)
        for name, tensor in program.constants.items():
            self.env[name] = tensor.detach().to(self.device(program.buffers[name].device))

    def device(self, planned: str) -> torch.device:
        """The planned device, or the one of the given inputs if that is another."""
        return self.devices.get(planned) or torch.device(planned)

    def call(self, call: ExternCall) -> None:
        """Run a call; it writes to copies of the buffers that it overwrites."""
        operator = find_operator(call.op)
        given = {base: self.env[base] for _, base in call.bases}
        for base, tensor in given.items():
            self.env[base] = stored(tensor, self.program.buffers[base], self.symbols)
        continued = tuple(self.env[base] for _, base in call.bases)
        args = tuple(self.argument(a) for a in call.args)
        kwargs = {name: self.argument(value) for name, value in call.kwargs}
        if call.op.startswith(PREFIX):
            results = call_higher_order(operator, args, kwargs)
        else:
            results = operator(*args, **kwargs)
        results = results if isinstance(results, tuple | list) else (results,)
        if continued:
            returned = len(call.outputs) - len(continued)
            results = (*results[:returned], *continued)
        self.env.update(given)
        numbers = call.numbers or (None,) * len(results)
        for name, number, result in zip(call.outputs, numbers, results, strict=True):
            if number is not None:
                self.symbols[number] = result if isinstance(result, float) else int(result)
            if name is not None and result is not None:
                buffer = self.program.buffers[name]
                _bind_sizes(buffer, result, self.symbols)
                self.env[name] = _laid_out(result, buffer, self.symbols)

    def argument(self, argument: ExternArg) -> Any:
        match argument:
            case BufferView(name):
                return view_of(argument, self.env[name], self.program.buffers[name], self.symbols)
            case Callee(name):
                given = self.program.callees.get(name)
                return self.symbols[sympy.Symbol(name)] if given is None else given
            case tuple():
                return tuple(self.argument(item) for item in argument)
            case sympy.Basic():
                found: Any = argument.subs(_numbers(self.symbols))
                if not isinstance(argument, sympy.Expr):
                    return bool(found)
                return int(found) if argument.is_integer else float(found)
            case torch.device():
                return self.device(str(argument))
            case _:
                return argument

    def output(self, output: Output) -> Any:
        return self.argument(output)


def find_operator(name: str) -> Any:
    """The torch operator with this qualified name: `"aten.mm.default"`."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


def run_program(program: LoopProgram, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Run the nests and calls in order on real tensors; see `LoopProgram.run`."""
    with torch.no_grad():
        run = Run(program, inputs)
        for step in program.steps:
            run_step(run, step)
        return tuple(run.output(output) for output in program.outputs)


def run_step(run: Run, step: Step) -> None:
    """Run one nest or call and store its results among the buffers of the run."""
    if isinstance(step, ExternCall):
        run.call(step)
    else:
        buffer = run.program.buffers[step.buffer]
        values = run_nest(step, run.env, run.symbols, run.device(buffer.device))
        run.env[step.buffer] = stored(values, buffer, run.symbols)
