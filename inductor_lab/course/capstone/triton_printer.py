"""Triton: each group of the schedule is printed as one kernel, with a lane for each shared point.

In:    a `Schedule`.
Out:   the text of the kernels; `load` returns their functions, `run` runs the schedule with them.

    for i0 < 64:                         ->  p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
      buf0[i0] =                             live = p < 64
        amax over i1 < 9 of x[9*i0 + i1]     i0 = p // 1 % 64
                                             t1 = tl.full([BLOCK], float("-inf"), tl.float32)
                                             for i1 in range(9): ...

A program computes BLOCK points at the same time.  Every value is a block with one lane for each of
them.  Axes that are not shared are loops of the program.  A kernel has assignments, loops over
`range` and calls of `tl`, and nothing else.
"""

import importlib.util
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from inductor_lab.mini.cpp import Kernels
from inductor_lab.mini.fuse import Group, Schedule
from inductor_lab.mini.loops import (
    Affine,
    Const,
    Expr,
    Index,
    Load,
    Nest,
    Op,
    Program,
    View,
    flat,
    text,
)

TYPES = {
    torch.float32: "tl.float32", torch.float64: "tl.float64", torch.int64: "tl.int64",
    torch.int32: "tl.int32", torch.int16: "tl.int16", torch.int8: "tl.int8",
    torch.uint8: "tl.uint8", torch.bool: "tl.int1",
}  # fmt: skip
LARGER = "tl.where(({0} > {1}) | ({0} != {0}), {0}, {1})"
SMALLER = "tl.where(({0} < {1}) | ({0} != {0}), {0}, {1})"
OPS = {
    **{name: f"tl.{name}({{0}})" for name in "exp exp2 log log2 sin cos sqrt rsqrt erf".split()},
    "abs": "tl.abs({0})", "floor": "tl.floor({0})", "ceil": "tl.ceil({0})", "neg": "-{0}",
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "true_divide": "{0} / {1}",
    "reciprocal": "1 / {0}", "relu": "tl.where({0} < 0, 0, {0})",
    "sigmoid": "1 / (1 + tl.exp(-{0}))", "tanh": "1 - 2 / (tl.exp(2 * {0}) + 1)",
    "maximum": LARGER, "minimum": SMALLER, "where": "tl.where({0}, {1}, {2})",
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}",
    "gt": "{0} > {1}", "ge": "{0} >= {1}", "isnan": "{0} != {0}",
    "logical_and": "{0} & {1}", "logical_or": "{0} | {1}", "logical_not": "{0} == 0",
    "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}",
}  # fmt: skip
"""Operation → Triton."""
REDUCE = {
    "sum": (0, "{0} + {1}"), "prod": (1, "{0} * {1}"), "any": (0, "{0} | {1}"),
    "all": (1, "{0} & {1}"), "amax": (-math.inf, LARGER), "amin": (math.inf, SMALLER),
}  # fmt: skip
"""Reduction → its first value, and the new value of {0} after a further value {1}."""
HEADING = "import triton\nimport triton.language as tl\n\n\n"


class Printer:
    """Prints one group; `known` has the variable of each value at the current point."""

    def __init__(self, program: Program, group: Group) -> None:
        self.group, self.shared = group, len(group.sizes)
        self.dtypes = {name: buffer.dtype for name, buffer in program.buffers.items()}
        self.lines: list[str] = []
        self.variables = 0
        self.depth = 1

    def line(self, text: str) -> None:
        """Add a line, indented by the loops that are open."""
        self.lines.append("    " * self.depth + text)

    def variable(self, value: str) -> str:
        """Add a line that assigns a value to a new variable; returns the name of the variable."""
        self.variables += 1
        self.line(f"t{self.variables} = {value}")
        return f"t{self.variables}"

    def loops(self, axes: range, sizes: Sequence[int]) -> None:
        """Open a loop for each axis.  `self.depth -= len(axes)` closes them."""
        for axis in axes:
            self.line(f"for i{axis} in range({sizes[axis]}):")
            self.depth += 1

    def function(self, name: str, parameters: Sequence[str]) -> str:
        self.lines = ["@triton.jit", f"def {name}({', '.join(parameters)}, BLOCK: tl.constexpr):"]
        self.points()
        known: dict[str, str] = {}
        for nest in self.group.steps:
            self.nest(nest, known)
        return "\n".join(self.lines)

    def points(self) -> None:
        """Print the lines that define `p`, `live` and the shared axes.

        A group over (4, 6)   ->   p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
                                   live = p < 24
                                   i0 = p // 6 % 4
                                   i1 = p // 1 % 6
        """
        self.line("p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)")
        self.line(f"live = p < {math.prod(self.group.sizes)}")
        for axis, size in enumerate(self.group.sizes):
            inner = math.prod(self.group.sizes[axis + 1 :])
            self.line(f"i{axis} = p // {inner} % {size}")

    def nest(self, nest: Nest, known: dict[str, str]) -> None:
        """Print a nest: loops over its axes that are not shared, its value, and a store.

        The shared axis is i0; the nest has i0 and i1   ->   for i1 in range(9): ...
        """
        inner = range(self.shared, nest.kept)
        self.loops(inner, nest.sizes)
        scope = dict(known) if inner else known
        result = self.reduction(nest, scope) if nest.reduce else self.value(nest.body, scope)
        if inner or nest.out not in self.group.local:
            at = self.address(nest.out, nest.store)
            self.line(f"tl.store({at}, {result}, mask=live)")
        if not inner:
            known[f"{nest.out}[{nest.store}]"] = result
        self.depth -= len(inner)

    def reduction(self, nest: Nest, known: dict[str, str]) -> str:
        """Print loops over the reduced axes; returns the variable with the result.

        sum over i1 < 9 of x[9*i0 + i1]   ->   t1 = tl.full([BLOCK], 0.0, tl.float32)
                                               for i1 in range(9):
                                                   t2 = tl.load(x + ..., mask=live)
                                                   t1 = t1 + t2
        """
        dtype, (first, update) = self.dtypes[nest.out], REDUCE[nest.reduce]
        if not dtype.is_floating_point and math.isinf(first):
            first = torch.iinfo(dtype).min if first < 0 else torch.iinfo(dtype).max
        total = self.variable(constant(Const(first, dtype)))
        axes = range(nest.kept, len(nest.sizes))
        self.loops(axes, nest.sizes)
        x = self.value(nest.body, dict(known))
        self.line(f"{total} = {update.format(total, x)}")
        self.depth -= len(axes)
        return total

    def value(self, expr: Expr, known: dict[str, str]) -> str:
        """The variable with the value of an expression, after the lines that compute it.

        add(x[i0], 1.0)   ->   "t3", after t1 = tl.load(x + (i0), mask=live)
                                           t2 = tl.full([BLOCK], 1.0, tl.float32)
                                           t3 = t1 + t2
        """
        key = text(expr) if isinstance(expr, Load) else f"{text(expr)} as {expr.dtype}"
        if key not in known:
            match expr:
                case Const():
                    made = constant(expr)
                case Load(buffer, at):
                    made = f"tl.load({self.address(buffer, at)}, mask=live)"
                case Index(at):
                    made = f"{self.index(at)}.to({TYPES[expr.dtype]})"
                case Op():
                    made = operation(expr, [self.value(arg, known) for arg in expr.args])
            known[key] = self.variable(made)
        return known[key]

    def address(self, buffer: str, at: Affine) -> str:
        """The addresses of an element of each lane: `x + (9*i0 + i1)`."""
        return f"{buffer} + {self.index(at)}"

    def index(self, at: Affine) -> str:
        """An index as a block, also if it is the same for all lanes: `(3 + 0 * p)`."""
        return f"({at})" if any(at.coefs[: self.shared]) else f"({at} + 0 * p)"


def operation(op: Op, args: Sequence[str]) -> str:
    """`add` of "t1", "t2"  ->  "t1 + t2";   a cast of "t1"  ->  "t1.to(tl.int64)"."""
    if op.name == "cast":
        return f"{args[0]} != 0" if op.dtype == torch.bool else f"{args[0]}.to({TYPES[op.dtype]})"
    if op.name not in OPS:
        raise ValueError(f"there is no operation {op.name} in Triton")
    return OPS[op.name].format(*args)


def constant(const: Const) -> str:
    """A block with the same number in each lane: `tl.full([BLOCK], 1.0, tl.float32)`."""
    value = repr(float(const.value) if const.dtype.is_floating_point else int(const.value))
    number = value if math.isfinite(const.value) else f'float("{value}")'
    return f"tl.full([BLOCK], {number}, {TYPES[const.dtype]})"


def print_kernels(schedule: Schedule) -> Kernels:
    """The kernels of a schedule.  A local buffer with more than one element for each point is a
    parameter, because a program has no arrays of its own."""
    texts, parameters = [], {}
    for number, group in enumerate(schedule.items):
        if isinstance(group, Group):
            used = [b for n in group.steps for b in (*(load.buffer for load in n.loads()), n.out)]
            in_variables = {n.out for n in group.steps
                            if n.out in group.local and n.kept == len(group.sizes)}  # fmt: skip
            given = [name for name in dict.fromkeys(used) if name not in in_variables]
            parameters[f"kernel{number}"] = given
            texts.append(Printer(schedule.program, group).function(f"kernel{number}", given))
    return Kernels("\n\n\n".join(texts), parameters)


def load(kernels: Kernels) -> Any:
    """A module with the kernels.  Triton reads the text of a kernel from its file."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(HEADING + kernels.functions + "\n")
    spec = importlib.util.spec_from_file_location(Path(file.name).stem, file.name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Launch = Callable[[Any, int, Sequence[torch.Tensor], int], None]


def launched(kernel: Any, programs: int, tensors: Sequence[torch.Tensor], block: int) -> None:
    """Launch a kernel: on a GPU, or in Triton's interpreter if TRITON_INTERPRET is 1."""
    kernel[programs,](*tensors, BLOCK=block)


def run(schedule: Schedule, kernels: Kernels, *args: torch.Tensor, block: int = 128,
        launch: Launch = launched) -> list[Any]:  # fmt: skip
    """Run a schedule with its kernels; on a GPU inside of `with torch.device("cuda")`."""
    program, module = schedule.program, load(kernels)
    memory = {n: x for n, x in zip(program.inputs, args, strict=True) if n} | program.constants
    for number, item in enumerate(schedule.items):
        if isinstance(item, Group):
            names = kernels.parameters[f"kernel{number}"]
            for name in names:
                memory.setdefault(name, program.buffers[name].empty())
            programs = -(-math.prod(item.sizes) // block)
            kernel = getattr(module, f"kernel{number}")
            launch(kernel, programs, [flat(memory[name]) for name in names], block)
        else:
            given = [view.of(memory[view.buffer]) for view in item.views()]
            memory |= zip(item.outs, item.run(given, program.buffers), strict=True)
    return [o.of(memory[o.buffer]) if isinstance(o, View) else o for o in program.outputs]


# What the full compiler does differently
#
# - compiler/codegen/triton/: prints the loop tree as blocks of rows and columns, so that the lanes
#   of a warp read neighbouring elements of a row, and a reduction is one `tl.sum` of a block.
# - compiler/codegen/triton/tiles: sizes of blocks and numbers of warps are chosen by rules, or
#   measured with `mode="max-autotune"`.
# - A sum over many elements is split over several programs; a mask is left out where the size is
#   a multiple of the block.
# - compiler/runtime/triton/: compiles for a target without a GPU, launches, caches.
