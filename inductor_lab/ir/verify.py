"""What a legal loop program is, as small rules; run between phases in tests.

A rule returns what is wrong, or None.  `verify` collects every violation before it raises.

Inductor: scattered asserts; tinygrad has such a file (`uop/spec.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sympy
import torch

from inductor_lab.ir.expr import Const, Expr, IndexValue, Load, Masked, Op, Temp
from inductor_lab.ir.index import (
    Axis,
    Index,
    Size,
    add_sizes,
    is_int,
    is_negative,
    is_nonnegative,
    mul_sizes,
)
from inductor_lab.ir.ops import OPS, POSITIONS, PREDICATES, REDUCTIONS, SCANS
from inductor_lab.ir.program import (
    BufferKind,
    BufferView,
    ExternCall,
    LoopProgram,
    Nest,
    Reduction,
    Scan,
    Step,
    read_by,
    written_by,
)
from inductor_lab.ir.text import expr_text, index_text, sizes_text

HALF = (torch.float16, torch.bfloat16)
"""Dtypes for storage only: bodies compute in float32."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that does not hold; `where` is a buffer's name, or "program"."""

    rule: str
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}  [{self.rule}]"


class InvalidProgram(AssertionError):
    """A phase made a loop program that is not legal: a bug of ours, not of the person."""

    def __init__(self, name: str, violations: tuple[Violation, ...]) -> None:
        self.violations = violations
        lines = [f"the loop program {name} breaks {len(violations)} rules"]
        super().__init__("\n  ".join([*lines, *map(str, violations)]))


@dataclass(frozen=True, slots=True)
class Scope:
    """What a rule may look at: the program, what was made before this step, and the loops.

    `masked` holds below the body of a `Masked`, where indices may be out of range.
    """

    program: LoopProgram
    made: frozenset[str]
    axes: frozenset[Axis] = frozenset()
    masked: bool = False


ProgramRule = Callable[[LoopProgram], str | None]
StepRule = Callable[[Step, Scope], str | None]
ExprRule = Callable[[Expr, Scope], str | None]

PROGRAM_RULES: dict[str, ProgramRule] = {}
STEP_RULES: dict[str, StepRule] = {}
EXPR_RULES: dict[str, ExprRule] = {}


def program_rule(rule: ProgramRule) -> ProgramRule:
    """Register a rule about the whole program."""
    assert rule.__name__ not in PROGRAM_RULES, f"two rules are named {rule.__name__}"
    PROGRAM_RULES[rule.__name__] = rule
    return rule


def step_rule(rule: StepRule) -> StepRule:
    """Register a rule about one loop nest or extern call."""
    assert rule.__name__ not in STEP_RULES, f"two rules are named {rule.__name__}"
    STEP_RULES[rule.__name__] = rule
    return rule


def expr_rule(rule: ExprRule) -> ExprRule:
    """Register a rule about one node of a body."""
    assert rule.__name__ not in EXPR_RULES, f"two rules are named {rule.__name__}"
    EXPR_RULES[rule.__name__] = rule
    return rule


# ---- the program -----------------------------------------------------------------------------


@program_rule
def inputs_exist(program: LoopProgram) -> str | None:
    """Every tensor argument is an INPUT buffer, and each is named once."""
    names = [name for name in program.inputs if isinstance(name, str)]
    for name in names:
        buffer = program.buffers.get(name)
        if buffer is None or buffer.kind is not BufferKind.INPUT:
            return f"the input {name} is not an INPUT buffer"
    return _repeated("input", names)


@program_rule
def made_once(program: LoopProgram) -> str | None:
    """Every COMPUTED and EXTERN buffer is made by exactly one step, and no other buffer is."""
    return _repeated("buffer", [name for step in program.steps for name in written_by(step)])


@program_rule
def all_made(program: LoopProgram) -> str | None:
    """Every COMPUTED and EXTERN buffer is made by some step."""
    made = {name for step in program.steps for name in written_by(step)}
    expected = {
        name
        for name, buffer in program.buffers.items()
        if buffer.kind in (BufferKind.COMPUTED, BufferKind.EXTERN)
    }
    missing = sorted(expected - made)
    return f"nobody makes {', '.join(missing)}" if missing else None


def _repeated(what: str, names: list[str]) -> str | None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    return f"the {what} {twice[0]} is there twice" if twice else None


@program_rule
def named_by_key(program: LoopProgram) -> str | None:
    """`buffers[name].name` is `name`, and its layout has one stride for each size."""
    for name, buffer in program.buffers.items():
        if buffer.name != name:
            return f"the buffer under {name} calls itself {buffer.name}"
        if len(buffer.layout.size) != len(buffer.layout.stride):
            return (
                f"{name} has {len(buffer.layout.size)} sizes, {len(buffer.layout.stride)} strides"
            )
    return None


@program_rule
def constants_present(program: LoopProgram) -> str | None:
    """Every CONSTANT buffer has a tensor of its dtype and sizes."""
    for name, buffer in program.buffers.items():
        if buffer.kind is not BufferKind.CONSTANT:
            continue
        tensor = program.constants.get(name)
        if tensor is None:
            return f"the constant {name} has no tensor"
        if tensor.dtype != buffer.dtype or tuple(tensor.shape) != buffer.layout.size:
            return f"the constant {name} is {tensor.dtype}{sizes_text(tensor.shape)}"
    return None


@program_rule
def outputs_exist(program: LoopProgram) -> str | None:
    """Every output is a view of a buffer that somebody fills."""
    for output in program.outputs:
        if isinstance(output, BufferView) and output.buffer not in program.buffers:
            return f"the output {output.buffer} is not a buffer"
    return None


@program_rule
def symbols_bound(program: LoopProgram) -> str | None:
    """Every symbol is an int argument or is the size of a dimension of an input."""
    bound = {given for given in program.inputs if isinstance(given, sympy.Symbol)}
    used: set[sympy.Symbol] = set()
    for buffer in program.buffers.values():
        used.update(*(s.free_symbols for s in buffer.layout.size if not isinstance(s, int)))
        if buffer.kind is BufferKind.INPUT:
            bound.update(s for s in buffer.layout.size if isinstance(s, sympy.Symbol))
    free = sorted(map(str, used - bound))
    return f"no input gives {', '.join(free)}" if free else None


# ---- one step --------------------------------------------------------------------------------


@step_rule
def reads_are_made(step: Step, scope: Scope) -> str | None:
    """What a step reads is an input, a constant, or was made by an earlier step."""
    missing = sorted(read_by(step) - scope.made)
    return f"reads {', '.join(missing)}, which nobody made before" if missing else None


@step_rule
def writes_its_kind(step: Step, scope: Scope) -> str | None:
    """A nest makes a COMPUTED buffer, an extern call makes EXTERN ones."""
    expected = BufferKind.EXTERN if isinstance(step, ExternCall) else BufferKind.COMPUTED
    for name in written_by(step):
        buffer = scope.program.buffers.get(name)
        if buffer is None:
            return f"makes {name}, which is not a buffer"
        if buffer.kind is not expected:
            return f"makes {name}, which is {buffer.kind.name}"
    return None


@step_rule
def visits_its_buffer(step: Step, scope: Scope) -> str | None:
    """A nest has one axis for each dimension of its buffer, of the same size."""
    if isinstance(step, ExternCall) or step.buffer not in scope.program.buffers:
        return None
    expected = scope.program.buffers[step.buffer].layout.size
    visited = tuple(axis.size for axis in step.axes)
    if visited == expected:
        return None
    return f"loops over {sizes_text(visited)}, but the buffer is {sizes_text(expected)}"


@step_rule
def axes_distinct(step: Step, scope: Scope) -> str | None:
    """No two loops of a nest have one name."""
    if isinstance(step, ExternCall):
        return None
    return _repeated("axis", [axis.name for axis in (*step.axes, *step.reduce_axes)])


@step_rule
def reduction_known(step: Step, scope: Scope) -> str | None:
    """The kind is one of `REDUCTIONS` or `SCANS`; a scan goes along an axis of the nest."""
    if isinstance(step, Reduction) and step.kind not in REDUCTIONS:
        return f"there is no reduction {step.kind}"
    if isinstance(step, Scan) and (step.kind not in SCANS or step.axis not in step.axes):
        return f"there is no scan {step.kind} along {step.axis.name}"
    return None


@step_rule
def stores_its_dtype(step: Step, scope: Scope) -> str | None:
    """The body has the dtype of the buffer; sums and scans may be rounded when they are stored."""
    if isinstance(step, ExternCall) or step.buffer not in scope.program.buffers:
        return None
    result = result_dtype(step)
    expected = scope.program.buffers[step.buffer].dtype
    if result == expected:
        return None
    if isinstance(step, Reduction) and result is torch.float32 and expected in HALF:
        return None
    if isinstance(step, Scan) and result.is_floating_point and expected.is_floating_point:
        return None
    return f"computes {result}, but the buffer is {expected}"


def result_dtype(nest: Nest) -> torch.dtype:
    """The dtype of a nest's values before they are stored."""
    if isinstance(nest, Reduction | Scan) and nest.kind in POSITIONS:
        return torch.int64
    if isinstance(nest, Reduction) and nest.kind in ("any", "all"):
        return torch.bool
    return nest.body.dtype


# ---- one node of a body ----------------------------------------------------------------------


@expr_rule
def load_fits_buffer(expr: Expr, scope: Scope) -> str | None:
    """A load has one index for each dimension, and the dtype of its buffer."""
    if not isinstance(expr, Load) or expr.buffer not in scope.program.buffers:
        return None
    buffer = scope.program.buffers[expr.buffer]
    rank = len(buffer.layout.size)
    if len(expr.index) != rank:
        return f"{expr_text(expr)} has {len(expr.index)} indices, the buffer has {rank} dimensions"
    if expr.dtype != buffer.dtype:
        return f"{expr_text(expr)} is read as {expr.dtype}, the buffer is {buffer.dtype}"
    return None


@expr_rule
def axes_are_own(expr: Expr, scope: Scope) -> str | None:
    """Indices use the nest's own axes only."""
    for index in expr.indices():
        for axis in index.axes():
            if axis not in scope.axes:
                return f"uses the axis {axis.name}<{axis.size}, which is no loop of this nest"
    return None


@expr_rule
def in_bounds(expr: Expr, scope: Scope) -> str | None:
    """A load outside `Masked` stays inside its buffer, as far as that can be known."""
    if not isinstance(expr, Load) or scope.masked or expr.buffer not in scope.program.buffers:
        return None
    if any(is_int(axis.size, 0) for axis in scope.axes):
        return None
    for index, size in zip(
        expr.index, scope.program.buffers[expr.buffer].layout.size, strict=False
    ):
        if index.is_affine and _surely_outside(index, size):
            return f"the index {index_text(index)} of {expr.buffer} leaves 0..{size}"
    return None


def _surely_outside(index: Index, size: Size) -> bool:
    span = index.bounds()
    if span is None:
        return False
    beyond = add_sizes(span[1], mul_sizes(size, -1))
    return is_negative(span[0]) or is_nonnegative(beyond)


@expr_rule
def op_known(expr: Expr, scope: Scope) -> str | None:
    """The operation is in `OPS` and has as many operands as it takes."""
    if not isinstance(expr, Op):
        return None
    spec = OPS.get(expr.name)
    if spec is None:
        return f"there is no operation {expr.name}"
    if len(expr.args) != spec.arity:
        return f"{expr.name} takes {spec.arity} operands, not {len(expr.args)}"
    return None


_FLOAT_ONLY = frozenset(
    """truediv reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma sigmoid atan2 hypot copysign
    """.split()
)
_WHOLE_ONLY = frozenset("truncdiv shift_left shift_right".split())
_BITS_ONLY = frozenset("bitwise_and bitwise_or bitwise_xor bitwise_not".split())
_BOOL_ONLY = frozenset("logical_and logical_or logical_xor logical_not".split())


@expr_rule
def operands_agree(expr: Expr, scope: Scope) -> str | None:
    """All operands have one dtype, and it is one the operation is defined on."""
    if not isinstance(expr, Op) or expr.name in ("convert", "bitcast") or not expr.args:
        return None
    name, args = expr.name, expr.args
    if name == "where":
        if args[0].dtype is not torch.bool:
            return f"the condition of where is {args[0].dtype}"
        args = args[1:]
    dtypes = {arg.dtype for arg in args}
    if len(dtypes) > 1:
        return f"the operands of {name} are {', '.join(sorted(map(str, dtypes)))}"
    dtype = args[0].dtype
    whole = not dtype.is_floating_point and not dtype.is_complex
    wrong = (
        (name in _FLOAT_ONLY and whole)
        or (name in _WHOLE_ONLY and (not whole or dtype is torch.bool))
        or (name in _BITS_ONLY and not whole)
        or (name in _BOOL_ONLY and dtype is not torch.bool)
        or (name.startswith("philox") and dtype is not torch.int64)
    )
    return f"{name} is not defined on {dtype}" if wrong else None


@expr_rule
def result_follows(expr: Expr, scope: Scope) -> str | None:
    """The dtype of an operation is bool for a predicate, otherwise that of its operands."""
    if not isinstance(expr, Op) or not expr.args or expr.name == "convert":
        return None
    operand = expr.args[-1].dtype
    if expr.name == "bitcast":
        if operand.itemsize == expr.dtype.itemsize:
            return None
        return f"bitcast from {operand} to {expr.dtype} changes the width"
    expected = torch.bool if expr.name in PREDICATES else operand
    if expr.name in ("philox_uniform", "philox_normal"):
        expected = torch.float32
    return None if expr.dtype is expected else f"{expr.name} gives {expected}, not {expr.dtype}"


@expr_rule
def no_half_arithmetic(expr: Expr, scope: Scope) -> str | None:
    """float16 and bfloat16 are loaded, selected, converted and stored, never computed in."""
    if not isinstance(expr, Op) or expr.name in ("convert", "bitcast", "where"):
        return None
    dtypes = {expr.dtype, *(arg.dtype for arg in expr.args)}
    half = sorted(str(dtype) for dtype in dtypes if dtype in HALF)
    return f"{expr.name} computes in {half[0]}" if half else None


@expr_rule
def mask_is_bool(expr: Expr, scope: Scope) -> str | None:
    """A mask is bool, and both alternatives have one dtype."""
    if not isinstance(expr, Masked):
        return None
    if expr.mask.dtype is not torch.bool:
        return f"the mask {expr_text(expr.mask)} is {expr.mask.dtype}"
    if expr.body.dtype != expr.other.dtype:
        return f"masked gives {expr.body.dtype} here and {expr.other.dtype} there"
    return None


@expr_rule
def const_fits(expr: Expr, scope: Scope) -> str | None:
    """A constant of an integer dtype is a whole number in its range."""
    if not isinstance(expr, Const) or expr.dtype.is_floating_point or expr.dtype.is_complex:
        return None
    low, high = 0, 1
    if expr.dtype is not torch.bool:
        low, high = torch.iinfo(expr.dtype).min, torch.iinfo(expr.dtype).max
    if isinstance(expr.value, float) or not low <= expr.value <= high:
        return f"the constant {expr.value!r} is no {expr.dtype}"
    return None


@expr_rule
def no_temps(expr: Expr, scope: Scope) -> str | None:
    """Named temporaries belong to loop trees, not to programs."""
    return f"uses the temporary {expr.name}" if isinstance(expr, Temp) else None


@expr_rule
def position_is_number(expr: Expr, scope: Scope) -> str | None:
    """A position that is used as a number is an integer or a float, not bool."""
    if isinstance(expr, IndexValue) and expr.dtype is torch.bool:
        return f"the position {index_text(expr.index)} is used as bool"
    return None


# ---- all of them -----------------------------------------------------------------------------


def violations(program: LoopProgram) -> Iterator[Violation]:
    """Everything that is wrong with a program."""
    for name, rule in PROGRAM_RULES.items():
        if reason := rule(program):
            yield Violation(name, "program", reason)
    made = {
        name
        for name, buffer in program.buffers.items()
        if buffer.kind in (BufferKind.INPUT, BufferKind.CONSTANT)
    }
    for step in program.steps:
        yield from _step_violations(step, Scope(program, frozenset(made)))
        made.update(written_by(step))


def _step_violations(step: Step, scope: Scope) -> Iterator[Violation]:
    where = " ".join(written_by(step)) or "extern"
    for name, rule in STEP_RULES.items():
        if reason := rule(step, scope):
            yield Violation(name, where, reason)
    if isinstance(step, ExternCall):
        return
    axes = frozenset((*step.axes, *step.reduce_axes))
    scopes = [Scope(scope.program, scope.made, axes, masked) for masked in (False, True)]
    for node, masked in _nodes(step.body):
        for name, about in EXPR_RULES.items():
            if reason := about(node, scopes[masked]):
                yield Violation(name, where, reason)


def _nodes(body: Expr) -> Iterator[tuple[Expr, bool]]:
    """Every node, and whether a mask decides if it is touched."""
    hidden = {id(n) for node in body.walk() if isinstance(node, Masked) for n in node.body.walk()}
    return ((node, id(node) in hidden) for node in body.walk())


def verify(program: LoopProgram) -> None:
    """Raise InvalidProgram, listing every violation, unless the program is legal."""
    found = tuple(violations(program))
    if found:
        raise InvalidProgram(program.name, found)
