"""The loop IR as text: one entry for each step, first its axes and dtype, then its computation.

```
buf0[i0, i1] : u8 cpu  i0<8390, i1<8      # neg  <- x1
  = neg(x1[0, i1])
```

Every line has the FX nodes it came from, so that a viewer can link lines without parsing them.

Inductor: `ir.py`, `__str__` of the nodes, as seen in `ir_pre_fusion.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import zip_longest

import sympy

from inductor_lab.compiler.ir.expr import (
    NO_ORIGINS,
    Const,
    Expr,
    IndexValue,
    Load,
    Masked,
    Op,
    Origins,
    SizeValue,
    Temp,
)
from inductor_lab.compiler.ir.index import (
    Atom,
    Axis,
    Gathered,
    Index,
    Quotient,
    Remainder,
    Size,
    is_int,
)
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternArg,
    ExternCall,
    Layout,
    LoopProgram,
    Nest,
    Output,
    Reduction,
    Scan,
    Scatter,
    Step,
    read_by,
)
from inductor_lab.compiler.torch_door.torch_types import torch

TextLine = tuple[str, Origins]
"""One line and the FX nodes it came from."""

COMMENT_COLUMN = 42
"""The column of `# ops` comments, if the line is short enough."""

_SHORT = {torch.bool: "b8", torch.bfloat16: "bf16", torch.complex64: "c64"}
_FAMILIES = {"float": "f", "int": "i", "uint": "u", "complex": "c"}


def dtype_text(dtype: torch.dtype) -> str:
    """The short name of a dtype: `f32`, `bf16`, `i64`, `u8`, `b8` (bool).

    >>> dtype_text(torch.float32)
    'f32'
    """
    if dtype in _SHORT:
        return _SHORT[dtype]
    long = str(dtype).removeprefix("torch.")
    family = re.match(r"[a-z]+", long)
    if family is None or family[0] not in _FAMILIES:
        return long
    return _FAMILIES[family[0]] + long[family.end() :]


def size_text(size: Size) -> str:
    """A size: `128`, `s0`, `4*s0 + 1`, `4*(s0//2)`."""
    return re.sub(r"\(\(([^()]*)\)\)", r"(\1)", str(size))


def sizes_text(sizes: Iterable[Size]) -> str:
    """Sizes in brackets: `[128, s0]`."""
    return f"[{', '.join(map(size_text, sizes))}]"


def index_text(index: Index) -> str:
    """An index as arithmetic: `512*i0 + i1`, `i0//8`, `ids[i0]`; `0` if it is empty.

    >>> index_text((Index.of(Axis("i0", 4)) * 8 + 3) // 2)
    '4*i0 + 1'
    """
    parts = [_term_text(atom, factor) for atom, factor in index.terms]
    if not is_int(index.constant, 0) or not parts:
        parts.append(_sum_operand(index.constant))
    return " + ".join(parts).replace("+ -", "- ")


def _sum_operand(size: Size) -> str:
    return f"({size_text(size)})" if isinstance(size, sympy.Add) else size_text(size)


def _term_text(atom: Atom, factor: Size) -> str:
    text = _atom_text(atom)
    if is_int(factor, 1):
        return text
    if is_int(factor, -1):
        return f"-{text}"
    if isinstance(atom, Quotient | Remainder):
        text = f"({text})"
    return f"{_sum_operand(factor)}*{text}"


def _atom_text(atom: Atom) -> str:
    match atom:
        case Axis(name):
            return name
        case Gathered(value):
            return expr_text(value)
        case Quotient(dividend, divisor):
            return f"{_operand(dividend)}//{_divisor(divisor)}"
        case Remainder(dividend, divisor):
            return f"{_operand(dividend)}%{_divisor(divisor)}"


def _operand(index: Index) -> str:
    text = index_text(index)
    return text if index.as_axis() else f"({text})"


def _divisor(size: Size) -> str:
    return str(size) if isinstance(size, int) or size.is_Atom else f"({size})"


def expr_text(expr: Expr) -> str:
    """An expression as nested calls: `add(x[i0, i1], 1.0)`.

    A conversion is written as a call of the dtype, `f32(x[i0])`, and so are sizes and positions
    that are used as numbers: `f32(512)`, `i64(i0 + 1)`.
    """
    match expr:
        case Load(buffer, index):
            return f"{buffer}[{', '.join(map(index_text, index))}]"
        case Const(value):
            return repr(value)
        case SizeValue(size, dtype):
            return f"{dtype_text(dtype)}({size_text(size)})"
        case IndexValue(index, dtype):
            return f"{dtype_text(dtype)}({index_text(index)})"
        case Op("convert", (value,), dtype):
            return f"{dtype_text(dtype)}({expr_text(value)})"
        case Op("bitcast", (value,), dtype):
            return f"bitcast_{dtype_text(dtype)}({expr_text(value)})"
        case Op(name, args):
            return f"{name}({', '.join(map(expr_text, args))})"
        case Masked(mask, body, other):
            return f"masked({expr_text(mask)}, {expr_text(body)}, {expr_text(other)})"
        case Temp(name):
            return name


def axes_text(axes: Iterable[Axis]) -> str:
    """Loop variables with their ranges: `i0<8390, i1<8`."""
    return ", ".join(f"{axis.name}<{size_text(axis.size)}" for axis in axes)


def layout_text(layout: Layout) -> str:
    """Sizes, then stride and offset if they are not those of a contiguous tensor."""
    text = sizes_text(layout.size)
    if layout.stride != Layout.contiguous(layout.size).stride:
        text += f" stride {sizes_text(layout.stride)}"
    if not is_int(layout.offset, 0):
        text += f" offset {size_text(layout.offset)}"
    return text


def view_text(view: BufferView, buffers: Mapping[str, Buffer]) -> str:
    """`buf0` for a view of the complete buffer, `buf0[4, 3] stride [1, 4]` for another view of
    it."""
    buffer = buffers.get(view.buffer)
    if buffer is not None and buffer.layout == view.layout:
        return view.buffer
    return view.buffer + layout_text(view.layout)


def argument_text(argument: ExternArg, buffers: Mapping[str, Buffer]) -> str:
    """One argument of an extern call."""
    if isinstance(argument, BufferView):
        return view_text(argument, buffers)
    if isinstance(argument, tuple):
        return f"[{', '.join(argument_text(item, buffers) for item in argument)}]"
    if isinstance(argument, torch.dtype):
        return dtype_text(argument)
    if isinstance(argument, sympy.Expr):
        return size_text(argument)
    return repr(argument) if isinstance(argument, str) else str(argument)


def origins_text(origins: Origins) -> str:
    """FX node names in reading order."""
    return ", ".join(in_reading_order(origins))


def in_reading_order(names: Iterable[str]) -> list[str]:
    """Names in natural order: `add_2` before `add_10`."""
    return sorted(names, key=_natural)


def _natural(name: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]


def nest_lines(nest: Nest, buffer: Buffer | None = None) -> tuple[TextLine, ...]:
    """The two lines of a loop nest; `buffer` adds dtype, device and unusual strides."""
    if isinstance(nest, Scatter):
        places = ", ".join(map(index_text, nest.index))
    else:
        places = ", ".join(axis.name for axis in nest.axes)
    head = f"{nest.buffer}[{places}]"
    if buffer is not None:
        head += f" : {dtype_text(buffer.dtype)} {buffer.device}"
        head += f"  {axes_text(nest.axes)}" if nest.axes else ""
        if buffer.layout.stride != Layout.contiguous(buffer.layout.size).stride:
            head += f"  stride {sizes_text(buffer.layout.stride)}"
    body = expr_text(nest.body)
    if isinstance(nest, Reduction):
        body = f"{nest.kind} over {axes_text(nest.reduce_axes)} of {body}"
    elif isinstance(nest, Scan):
        body = f"{nest.kind} up to {nest.axis.name} of {body}"
    elif isinstance(nest, Scatter):
        body = f"{nest.base} with {nest.kind} of {body}"
    return (head + _comment(head, nest), nest.origins), (f"  = {body}", nest.origins)


def _comment(head: str, step: Step) -> str:
    if not step.origins:
        return ""
    text = origins_text(step.origins)
    sources = ", ".join(in_reading_order(read_by(step)))
    if sources:
        text += f"  <- {sources}"
    return " " * max(2, COMMENT_COLUMN - len(head)) + f"# {text}"


def extern_lines(call: ExternCall, buffers: Mapping[str, Buffer]) -> tuple[TextLine, ...]:
    """One line for each result that is used, then the call."""
    kept = [name for name in call.outputs if name is not None]
    heads = [_buffer_text(buffers[name]) if name in buffers else name for name in kept]
    arguments = [argument_text(a, buffers) for a in call.args]
    arguments += [f"{name}={argument_text(value, buffers)}" for name, value in call.kwargs]
    names = zip_longest(call.outputs, call.numbers)
    targets = ", ".join(str(name or number or "_") for name, number in names) or "_"
    lines = [head + (_comment(head, call) if n == 0 else "") for n, head in enumerate(heads)]
    reason = "" if call.reason == "library" else f"  # {call.reason}"
    lines.append(f"  {targets} = extern {call.op}({', '.join(arguments)}){reason}")
    return tuple((line, call.origins) for line in lines)


def _buffer_text(buffer: Buffer) -> str:
    stride = layout_text(buffer.layout)
    return f"{buffer.name}{stride} : {dtype_text(buffer.dtype)} {buffer.device}"


def output_text(output: Output, buffers: Mapping[str, Buffer]) -> str:
    """One result of the graph."""
    return view_text(output, buffers) if isinstance(output, BufferView) else str(output)


def program_lines(program: LoopProgram) -> tuple[TextLine, ...]:
    """Every line of the program with the FX nodes it came from."""
    lines: list[TextLine] = [(repr(program), NO_ORIGINS)]
    for given in program.inputs:
        if isinstance(given, str):
            buffer = program.buffers[given]
            lines.append((f"input {_buffer_text(buffer)}", buffer.origins))
        else:
            lines.append((f"input {given} : int", NO_ORIGINS))
    for buffer in program.buffers.values():
        if buffer.kind is BufferKind.CONSTANT:
            lines.append((f"const {_buffer_text(buffer)}", buffer.origins))
    for step in program.steps:
        if isinstance(step, ExternCall):
            lines.extend(extern_lines(step, program.buffers))
        else:
            lines.extend(nest_lines(step, program.buffers.get(step.buffer)))
    results = ", ".join(output_text(output, program.buffers) for output in program.returned)
    lines.append((f"return {results}", NO_ORIGINS))
    for write, value in program.written_inputs:
        text = output_text(value, program.buffers)
        lines.append((f"write  {write.input}.{write.method}({text})", NO_ORIGINS))
    return tuple(lines)


def program_text(program: LoopProgram) -> str:
    """The text of the program, all lines joined."""
    return "\n".join(text.rstrip() for text, _ in program_lines(program)) + "\n"
