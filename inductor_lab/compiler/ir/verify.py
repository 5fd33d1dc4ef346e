"""The rules of a legal loop program; tests run them between phases.

A rule returns what is wrong, or None (`rules.py`).  `verify` collects every violation before it
raises.

Inductor: scattered asserts; tinygrad has such a file (`uop/spec.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import sympy
import torch

from inductor_lab.compiler.ir import verify_body
from inductor_lab.compiler.ir.expr import Expr, Load, Masked
from inductor_lab.compiler.ir.ops import POSITIONS, REDUCTIONS, SCANS, SCATTERS
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    BufferView,
    ExternCall,
    LoopProgram,
    Nest,
    Reduction,
    Scan,
    Scatter,
    Step,
    bound_by,
    read_by,
    storage_bases,
    written_by,
)
from inductor_lab.compiler.ir.rules import (
    EXPR_RULES,
    HALF,
    PROGRAM_RULES,
    STEP_RULES,
    Context,
    InvalidProgram,
    Violation,
    program_rule,
    step_rule,
)
from inductor_lab.compiler.ir.text import sizes_text

RULE_FILES = (verify_body,)
"""The other modules that add rules to the tables when they are imported."""


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
    """Every COMPUTED and EXTERN buffer is computed by exactly one step, and no other buffer is."""
    return _repeated("buffer", [name for step in program.steps for name in written_by(step)])


@program_rule
def all_made(program: LoopProgram) -> str | None:
    """Every COMPUTED and EXTERN buffer is computed by some step."""
    made = {name for step in program.steps for name in written_by(step)}
    expected = {
        name
        for name, buffer in program.buffers.items()
        if buffer.kind in (BufferKind.COMPUTED, BufferKind.EXTERN)
    }
    missing = sorted(expected - made)
    return f"no step computes {', '.join(missing)}" if missing else None


def _repeated(what: str, names: list[str]) -> str | None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    return f"the {what} {twice[0]} appears twice" if twice else None


@program_rule
def named_by_key(program: LoopProgram) -> str | None:
    """`buffers[name].name` is `name`, and its layout has one stride for each size."""
    for name, buffer in program.buffers.items():
        if buffer.name != name:
            return f"the buffer under {name} is named {buffer.name}"
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
    """Every output is a view of a buffer that exists."""
    for output in program.outputs:
        if isinstance(output, BufferView) and output.buffer not in program.buffers:
            return f"the output {output.buffer} is not a buffer"
    return None


@program_rule
def writes_go_to_inputs(program: LoopProgram) -> str | None:
    """Each write goes to an input, each input is written at most once, and the value is not an
    input."""
    targets = [write.input for write in program.writes]
    for write, value in program.written_inputs:
        if write.input not in program.inputs or targets.count(write.input) > 1:
            return f"{write.input} is written, but it is not an input or is written twice"
        given = isinstance(value, BufferView) and value.buffer in program.inputs
        if given or not isinstance(value, BufferView):
            return f"the new value of {write.input} is not a computed buffer"
    return None


@program_rule
def symbols_bound(program: LoopProgram) -> str | None:
    """Every symbol is an int argument, the size of a dimension of an input or of a result of a
    library call, or a number that a call returns."""
    bound = {given for given in program.inputs if isinstance(given, sympy.Symbol)}
    bound.update(symbol for step in program.steps for symbol in bound_by(step, program.buffers))
    used: set[sympy.Symbol] = set()
    for buffer in program.buffers.values():
        used.update(*(s.free_symbols for s in buffer.layout.size if not isinstance(s, int)))
        if buffer.kind is BufferKind.INPUT:
            bound.update(s for s in buffer.layout.size if isinstance(s, sympy.Symbol))
    free = sorted(map(str, used - bound))
    return f"no input defines {', '.join(free)}" if free else None


# ---- one step --------------------------------------------------------------------------------


@step_rule
def reads_are_made(step: Step, context: Context) -> str | None:
    """A step reads only inputs, constants and buffers of earlier steps."""
    missing = sorted(read_by(step) - context.made)
    return f"reads {', '.join(missing)}, which no earlier step computes" if missing else None


@step_rule
def writes_its_kind(step: Step, context: Context) -> str | None:
    """A nest computes a COMPUTED buffer, an extern call EXTERN ones."""
    expected = BufferKind.EXTERN if isinstance(step, ExternCall) else BufferKind.COMPUTED
    for name in written_by(step):
        buffer = context.program.buffers.get(name)
        if buffer is None:
            return f"makes {name}, which is not a buffer"
        if buffer.kind is not expected:
            return f"makes {name}, which is {buffer.kind.name}"
    return None


@step_rule
def visits_its_buffer(step: Step, context: Context) -> str | None:
    """A nest has one axis for each dimension of its buffer, of the same size."""
    if isinstance(step, ExternCall | Scatter) or step.buffer not in context.program.buffers:
        return None
    expected = context.program.buffers[step.buffer].layout.size
    visited = tuple(axis.size for axis in step.axes)
    if visited == expected:
        return None
    return f"loops over {sizes_text(visited)}, but the buffer is {sizes_text(expected)}"


@step_rule
def axes_distinct(step: Step, context: Context) -> str | None:
    """All loops of a nest have different names."""
    if isinstance(step, ExternCall):
        return None
    return _repeated("axis", [axis.name for axis in (*step.axes, *step.reduce_axes)])


@step_rule
def reduction_known(step: Step, context: Context) -> str | None:
    """The kind is one of `REDUCTIONS` or `SCANS`; a scan goes along an axis of the nest."""
    if isinstance(step, Reduction) and step.kind not in REDUCTIONS:
        return f"there is no reduction {step.kind}"
    if isinstance(step, Reduction) and step.kind == "bisect":
        if len(step.reduce_axes) != 1 or step.body.dtype is not torch.bool:
            return "a binary search tests one axis"
    if isinstance(step, Scan) and (step.kind not in SCANS or step.axis not in step.axes):
        return f"there is no scan {step.kind} along {step.axis.name}"
    return None


@step_rule
def scatter_known(step: Step, context: Context) -> str | None:
    """The kind of a scatter is one of `SCATTERS`, and it does not compute in half precision."""
    if not isinstance(step, Scatter):
        return None
    if step.kind not in SCATTERS:
        return f"there is no scatter {step.kind}"
    half = step.kind != "store" and step.body.dtype in HALF
    return f"computes in {step.body.dtype}" if half else None


@step_rule
def base_continued(step: Step, context: Context) -> str | None:
    """A base has the layout and dtype of the new buffer, and no later step needs its old value."""
    program = context.program
    place = next(n for n, other in enumerate(program.steps) if other is step)
    for new, name in storage_bases(step).items():
        base, own = program.buffers.get(name), program.buffers.get(new)
        if base is None or own is None:
            continue
        if reason := _why_not_written(base, program):
            return reason
        if (base.layout, base.dtype) != (own.layout, own.dtype):
            return f"starts from {base.name}, which has another layout or dtype"
        later = any(name in read_by(other) for other in program.steps[place + 1 :])
        outputs = [o.buffer for o in program.outputs if isinstance(o, BufferView)]
        if later or name in outputs or (isinstance(step, Scatter) and _reads_elsewhere(step)):
            return f"overwrites {base.name}, whose old value is needed later"
    return None


def _why_not_written(base: Buffer, program: LoopProgram) -> str | None:
    """Why a step must not write to a buffer; None if it may."""
    written = [write.input for write in program.writes if write.method == "copy_"]
    if base.kind is BufferKind.CONSTANT or (
        base.kind is BufferKind.INPUT and base.name not in written
    ):
        return f"writes to {base.name}, which must keep its value"
    return None


def _reads_elsewhere(scatter: Scatter) -> bool:
    """Does a scatter read its base at other places than the one that it writes?"""
    body, *places = scatter.roots
    inside = {load.index for load in body.loads() if load.buffer == scatter.base}
    if any(load.buffer == scatter.base for root in places for load in root.loads()):
        return True
    return not scatter.may_read(inside)


@step_rule
def stores_its_dtype(step: Step, context: Context) -> str | None:
    """The body has the dtype of the buffer; sums and scans may be rounded when they are stored."""
    if isinstance(step, ExternCall) or step.buffer not in context.program.buffers:
        return None
    result = result_dtype(step)
    expected = context.program.buffers[step.buffer].dtype
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


# ---- all of them -----------------------------------------------------------------------------


def violations(program: LoopProgram) -> Iterator[Violation]:
    """All violations of a program."""
    for name, rule in PROGRAM_RULES.items():
        if reason := rule(program):
            yield Violation(name, "program", reason)
    made = {
        name
        for name, buffer in program.buffers.items()
        if buffer.kind in (BufferKind.INPUT, BufferKind.CONSTANT)
    }
    for step in program.steps:
        yield from _step_violations(step, Context(program, frozenset(made)))
        made.update(written_by(step))


def _step_violations(step: Step, context: Context) -> Iterator[Violation]:
    where = " ".join(written_by(step)) or "extern"
    for name, rule in STEP_RULES.items():
        if reason := rule(step, context):
            yield Violation(name, where, reason)
    if isinstance(step, ExternCall):
        return
    axes = frozenset((*step.axes, *step.reduce_axes))
    contexts = [Context(context.program, context.made, axes, masked) for masked in (False, True)]
    nodes = [pair for root in step.roots for pair in _nodes(root)]
    if isinstance(step, Scatter):
        place = Load(step.buffer, step.index, step.body.dtype)
        nodes.append((place, False))
    for node, masked in nodes:
        for name, about in EXPR_RULES.items():
            if reason := about(node, contexts[masked]):
                yield Violation(name, where, reason)


def _nodes(body: Expr) -> Iterator[tuple[Expr, bool]]:
    """Every node, and whether it is inside the body of a mask."""
    hidden = {id(n) for node in body.walk() if isinstance(node, Masked) for n in node.body.walk()}
    return ((node, id(node) in hidden) for node in body.walk())


def verify(program: LoopProgram) -> None:
    """Raise InvalidProgram, listing all violations, unless the program is legal."""
    found = tuple(violations(program))
    if found:
        raise InvalidProgram(program.name, found)
