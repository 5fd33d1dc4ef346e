"""C++: each group of the schedule is printed as one function, then all are compiled.

In:    a `Schedule`.
Out:   C++ source with OpenMP; `load` compiles it and returns its functions.

    for i0 < 64:                               ->  for (int64_t i0 = 0; i0 < 64; i0++) {
      buf0[i0] = amax over i1 < 9 of x[9*i0 + i1]    float t1 = -INFINITY;
                                                     for (int64_t i1 = 0; i1 < 9; i1++) ...

Threads share the axes of a group; the innermost loop is vectorized (`omp simd`).  A value
that the group needs at the same point again stays in a variable.  A buffer of one shared point is
an array on the stack.
"""

import ctypes
import hashlib
import math
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import platformdirs
import torch

from inductor_lab.mini.fuse import Group, Schedule, local_elements
from inductor_lab.mini.loops import Affine, Const, Expr, Index, Load, Nest, Op, Program, parts, text

TYPES = {
    torch.float32: "float", torch.float64: "double", torch.int64: "int64_t", torch.int32: "int32_t",
    torch.int16: "int16_t", torch.int8: "int8_t", torch.uint8: "uint8_t", torch.bool: "bool",
}  # fmt: skip
VECTOR_MATH = """exp log sin cos tanh erf expm1 log1p exp2 log2 log10 atan sinh cosh""".split()
"""Functions of which the C library has versions for vectors."""
LIBM = [*VECTOR_MATH, *"tan asin acos asinh acosh atanh erfc sqrt floor ceil trunc".split()]
OPS = {
    **{name: f"{name}{{f}}({{0}})" for name in LIBM},
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "true_divide": "{0} / {1}",
    "neg": "-{0}", "abs": "std::abs({0})", "sign": "({0} > 0) - ({0} < 0)",
    "relu": "{0} < 0 ? 0 : {0}", "maximum": "maximum({0}, {1})", "minimum": "minimum({0}, {1})",
    "rsqrt": "1 / sqrt{f}({0})", "reciprocal": "1 / {0}", "sigmoid": "1 / (1 + exp{f}(-{0}))",
    "round": "nearbyint{f}({0})", "pow": "pow{f}({0}, {1})", "atan2": "atan2{f}({0}, {1})",
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}",
    "gt": "{0} > {1}", "ge": "{0} >= {1}", "isnan": "{0} != {0}", "isinf": "std::isinf({0})",
    "where": "{0} ? {1} : {2}", "logical_and": "{0} && {1}", "logical_or": "{0} || {1}",
    "logical_xor": "{0} != {1}", "logical_not": "!{0}", "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "bitwise_not": "~{0}",
}  # fmt: skip
"""Operation → C++; `{f}` is "f" where the type is float."""
REDUCE = {
    "sum": (0, "+", "{acc} += {x}"), "prod": (1, "*", "{acc} *= {x}"),
    "amax": (-math.inf, "max", "{acc} = {x} > {acc} ? {x} : {acc}"),
    "amin": (math.inf, "min", "{acc} = {x} < {acc} ? {x} : {acc}"),
    "any": (0, "||", "{acc} = {acc} || {x}"), "all": (1, "&&", "{acc} = {acc} && {x}"),
}  # fmt: skip
"""Reduction → its first value, its OpenMP name, and its update."""
PRELUDE = """\
#include <cmath>
#include <cstdint>
#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
#define VECTOR(T, f) _Pragma("omp declare simd notinbranch") extern "C" T f(T);
%s
#endif
template <class T> inline T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <class T> inline T minimum(T a, T b) { return a < b || a != a ? a : b; }
"""
WORK_FOR_THREADS = 32768
"""A group with fewer operations runs in one thread."""


def prelude() -> str:
    """Declares the vector functions of libm, and maxima that propagate NaN."""
    return PRELUDE % "\n".join(f"VECTOR(float, {f}f) VECTOR(double, {f})" for f in VECTOR_MATH)


class Printer:
    """Prints one group; `known` has the variable of each value at the current point."""

    def __init__(self, program: Program, group: Group) -> None:
        self.group, self.shared = group, len(group.sizes)
        self.dtypes = {name: buffer.dtype for name, buffer in program.buffers.items()}
        self.lines: list[str] = []
        self.variables = 0

    def variable(self, kind: str, value: str) -> str:
        self.variables += 1
        self.lines.append(f"{kind} t{self.variables} = {value};")
        return f"t{self.variables}"

    def function(self, name: str, parameters: Sequence[str]) -> str:
        nests, made = self.group.steps, {nest.out for nest in self.group.steps}
        given = (f"{'' if buffer in made else 'const '}{TYPES[self.dtypes[buffer]]}* __restrict "
                 f"{buffer}" for buffer in parameters)  # fmt: skip
        self.lines.append(f'extern "C" void {name}({", ".join(given)}) {{')
        work = sum(math.prod(nest.sizes) * sum(1 for _ in parts(nest.body)) for nest in nests)
        is_flat = all(len(nest.sizes) == self.shared for nest in nests)
        self.loops(range(self.shared), self.group.sizes, work >= WORK_FOR_THREADS, "simd" * is_flat)
        for nest in nests:
            if nest.out in self.group.local and nest.kept > self.shared:
                count = local_elements(nest, self.shared)
                self.lines.append(f"{TYPES[self.dtypes[nest.out]]} {nest.out}[{count}];")
        known: dict[str, str] = {}
        for nest in nests:
            self.nest(nest, known)
        self.lines += "}" * (self.shared + 1)
        return indented(self.lines)

    def loops(self, axes: range, sizes: Sequence[int], threads: bool, simd: str) -> None:
        """Open a loop for each axis; threads share the outer ones, `simd` is for the innermost."""
        for number, axis in enumerate(axes):
            outer = max(len(axes) - bool(simd), 1)
            words = f"parallel for collapse({outer}) " if threads and number == 0 else ""
            words += simd if number == len(axes) - 1 else ""
            if words:
                self.lines.append(f"#pragma omp {words.strip()}")
            self.lines.append(f"for (int64_t i{axis} = 0; i{axis} < {sizes[axis]}; i{axis}++) {{")

    def nest(self, nest: Nest, known: dict[str, str]) -> None:
        """Print the loops of a nest inside those of the group.

        The shared axis is i0; the nest has i0 and i1   ->   for (int64_t i1 = 0; ...) { ... }
        """
        inner = range(self.shared, nest.kept)
        self.loops(inner, nest.sizes, False, "" if nest.reduce else "simd")
        scope = dict(known) if inner else known
        result = self.reduction(nest, scope) if nest.reduce else self.value(nest.body, scope)
        if inner or nest.out not in self.group.local:
            self.lines.append(f"{self.place(nest.out, nest.store)} = {result};")
        if not inner:
            known[f"{nest.out}[{nest.store}]"] = result
        self.lines += "}" * len(inner)

    def reduction(self, nest: Nest, known: dict[str, str]) -> str:
        """Loops over the reduced axes; sums of more than 4096 floats are accumulated in double.

        A maximum loses a NaN; a flag keeps it, and is faster than a maximum that propagates it.
        """
        dtype, (first, operator, update) = self.dtypes[nest.out], REDUCE[nest.reduce]
        is_long = nest.reduce in ("sum", "prod") and math.prod(nest.sizes[nest.kept :]) > 4096
        kind = torch.float64 if is_long and dtype == torch.float32 else dtype
        axes = range(nest.kept, len(nest.sizes))
        if not dtype.is_floating_point and math.isinf(first):
            first = torch.iinfo(dtype).min if first < 0 else torch.iinfo(dtype).max
        total = self.variable(TYPES[kind], constant(Const(first, kind)))
        has_flag = operator in ("max", "min") and dtype.is_floating_point
        nan = self.variable("int", "0") if has_flag else ""
        flag = f" reduction(|: {nan})" if nan else ""
        self.loops(axes, nest.sizes, False, f"simd reduction({operator}: {total}){flag}")
        x = self.value(nest.body, dict(known))
        self.lines.append(update.format(acc=total, x=x) + ";")
        self.lines += [f"{nan} |= {x} != {x};"] if nan else []
        self.lines += "}" * len(axes)
        return self.variable(TYPES[dtype], f"{nan} ? NAN : {total}" if nan else total)

    def place(self, buffer: str, at: Affine) -> str:
        """An element in memory; a local buffer has only what one shared point wrote."""
        if buffer in self.group.local:
            (store,) = (nest.store for nest in self.group.steps if nest.out == buffer)
            own = (*store.coefs[: self.shared], *(0 for _ in at.coefs[self.shared :]))
            at = Affine(at.offset, tuple(c - s for c, s in zip(at.coefs, own, strict=True)))
        return f"{buffer}[{at}]"

    def value(self, expr: Expr, known: dict[str, str]) -> str:
        """A variable with the value of an expression, or a constant.

        add(x[i0], 1.0)   ->   "t2", after the lines `float t1 = x[i0];` `float t2 = t1 + 1.0f;`
        """
        if isinstance(expr, Const):
            return constant(expr)
        key = text(expr) if isinstance(expr, Load) else f"{text(expr)} as {expr.dtype}"
        if key not in known:
            match expr:
                case Load(buffer, at):
                    made = self.place(buffer, at)
                case Index(at):
                    made = str(at)
                case Op():
                    made = operation(expr, [self.value(arg, known) for arg in expr.args])
            known[key] = self.variable(TYPES[expr.dtype], made)
        return known[key]


def indented(lines: Sequence[str]) -> str:
    """The lines of a function, indented by the braces that are open."""
    made, depth = [], 0
    for line in lines:
        depth -= line == "}"
        made.append("  " * depth + line)
        depth += line.endswith("{")
    return "\n".join(made)


def operation(op: Op, args: Sequence[str]) -> str:
    """`add` of "t1", "t2"  ->  "t1 + t2";   a cast of "t1" from float to int  ->  "(int64_t)t1"."""
    source = op.args[-1].dtype
    if op.name != "cast":
        return OPS[op.name].format(*args, f="f" if source == torch.float32 else "")
    if op.dtype == torch.bool or not source.is_floating_point or op.dtype.is_floating_point:
        return f"{args[0]} != 0" if op.dtype == torch.bool else args[0]
    return f"(int64_t){args[0]}"  # small integers wrap around


def constant(const: Const) -> str:
    """`1.0f`, `1.0`, `(int64_t)1LL`, `-INFINITY`."""
    kind, value = TYPES[const.dtype], const.value
    if not const.dtype.is_floating_point:
        return f"({kind}){int(value)}LL" if value != -(2**63) else "INT64_MIN"
    if math.isfinite(value):
        return repr(float(value)) + ("f" if kind == "float" else "")
    return f"({kind})" + ("NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY")


class Kernels(NamedTuple):
    """The C++ of a schedule: the functions, and the buffers that are parameters of each."""

    functions: str
    parameters: dict[str, list[str]]

    def __str__(self) -> str:
        return self.functions


def print_kernels(schedule: Schedule) -> Kernels:
    texts, parameters = [], {}
    for number, group in enumerate(schedule.items):
        if isinstance(group, Group):
            used = [b for n in group.steps for b in (*(load.buffer for load in n.loads()), n.out)]
            given = [buffer for buffer in dict.fromkeys(used) if buffer not in group.local]
            parameters[f"kernel{number}"] = given
            texts.append(Printer(schedule.program, group).function(f"kernel{number}", given))
    return Kernels("\n\n".join(texts), parameters)


FLAGS = """-O3 -march=native -std=c++17 -fopenmp -shared -fPIC -fwrapv -fno-math-errno
    -fno-trapping-math -ffp-contract=off -x c++ -""".split()


def load(kernels: Kernels) -> ctypes.CDLL:
    """Compile the functions, or find the library that an earlier process compiled from them."""
    command, source = [os.environ.get("CXX", "g++"), *FLAGS], prelude() + kernels.functions + "\n"
    home = os.environ.get("INDUCTOR_LAB_CACHE_DIR") or platformdirs.user_cache_dir("inductor_lab")
    folder = Path(home) / "mini"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = hashlib.sha256("\n".join([*command, source]).encode()).hexdigest()[:32]
    library = folder / f"{key}.so"
    if not library.exists():
        made = folder / f"{key}-{os.getpid()}.so"  # other processes see finished libraries only
        subprocess.run([*command, "-o", made], input=source, text=True, check=True)
        made.replace(library)
    return ctypes.CDLL(str(library))


# What the full compiler does differently
#
# - compiler/codegen/tree/loop_tree.py: a group becomes a tree of loops first; passes over the tree
#   (compiler/codegen/cpu/) make tiles, unroll, stream stores and divide work among threads.
# - compiler/codegen/cpp/: prints the tree for GCC, Clang and MSVC; it has its own vector functions.
# - compiler/codegen/triton/: prints the same tree as Triton kernels for GPUs.
# - compiler/runtime/toolchain/: finds a compiler, compiles in threads; compiler/runtime/cache/
#   checks what it loads and removes old files.
