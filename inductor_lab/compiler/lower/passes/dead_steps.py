"""Remove dead steps after lowering, but keep their checks, because raising an error is an effect.

    buf0[i0] = x[rows[i0]]           only buf0[0] is needed, so only rows[0] would be checked
    buf1[] = buf0[0] + 1          →  buf2[i0] = rows[i0] as an index of x, and a call that uses it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.ir.expr import Expr, IndexValue, Masked, Op, integer_divisors
from inductor_lab.compiler.ir.index import (
    Axis,
    Index,
    Size,
    add_sizes,
    gathered_in,
    is_nonnegative,
    mul_sizes,
    product,
)
from inductor_lab.compiler.ir.ops import DIVIDING
from inductor_lab.compiler.ir.program import (
    Buffer,
    BufferKind,
    ExternCall,
    Layout,
    LoopProgram,
    Nest,
    Output,
    Pointwise,
    Scatter,
    Step,
    bound_by,
    read_by,
    symbols_of,
    views_in,
    written_by,
)
from inductor_lab.compiler.ir.slice_ops import OPERATORS
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.extern import argument
from inductor_lab.compiler.lower.passes.facts import ProgramFacts
from inductor_lab.compiler.lower.tensor import identity, is_dense


def dead_steps(program: LoopProgram, facts: ProgramFacts) -> LoopProgram:
    """The program without steps that no output needs."""
    steps = needed(program.steps, program.buffers, program.outputs)
    return program if len(steps) == len(program.steps) else with_steps(program, steps)


def with_steps(program: LoopProgram, steps: Sequence[Step]) -> LoopProgram:
    """The program with these steps, and the buffers that they make."""
    made = {name for step in steps for name in written_by(step)}
    kept = (BufferKind.INPUT, BufferKind.CONSTANT)
    buffers = {n: b for n, b in program.buffers.items() if b.kind in kept or n in made}
    return replace(program, steps=tuple(steps), buffers=buffers)


def needed(
    steps: Sequence[Step], buffers: Mapping[str, Buffer], outputs: Sequence[Output]
) -> list[Step]:
    """The steps that some output depends on, including the steps that only give a size (often only
    one result of `var_mean` is used)."""
    given = (b for b in buffers.values() if b.kind is BufferKind.INPUT)
    known = {s for b in given for s in b.layout.size}
    telling = [s for step in steps for s in bound_by(step, buffers) if s not in known]
    wanted = {view.buffer for view in views_in(tuple(outputs))}
    sizes = symbols_of(ExternCall((), "", tuple(outputs))) if telling else frozenset()
    kept: list[Step] = []
    for step in reversed(steps):
        tells = bool(telling) and not sizes.isdisjoint(bound_by(step, buffers))
        if wanted.intersection(written_by(step)) or tells or _has_effects(step):
            wanted |= read_by(step)
            sizes |= symbols_of(step) if telling else frozenset()
            kept.append(step)
    return kept[::-1]


def _has_effects(step: Step) -> bool:
    """Does a step have effects?

    An assertion may raise, and so may an operator that checks its arguments.  Drawing a seed
    advances the generator, some ops print or check, and other ranks take part in collectives.
    """
    effects = (Effect.KEPT, Effect.COLLECTIVE, Effect.WAIT)
    return isinstance(step, ExternCall) and (step.effect in effects or step.outputs == (None,))


def keep_checks(program: LoopProgram, facts: ProgramFacts) -> LoopProgram:
    """The program with new steps for the checks that would not run for all points.

    A check is not added if a step that runs for all points has the same check.
    """
    build, outputs = facts.build, program.outputs
    kept = needed(program.steps, program.buffers, outputs)
    whole = _fully_computed(program.buffers, kept, outputs)
    nests = [step for step in program.steps if not isinstance(step, ExternCall)]
    partial = {id(n): [(n, v) for v in checks_of(n)] for n in nests if n.buffer not in whole}
    if not any(partial.values()):
        return program
    made = {_over_own_axes(v) for n in nests if n.buffer in whole for v in checks_of(n)}
    build.steps = []
    for step in program.steps:
        build.steps.append(step)
        for nest, value in partial.get(id(step), ()):
            if (own := _over_own_axes(value)) not in made:
                made.add(own)
                _evaluate(build, nest, *own)
    return replace(program, steps=tuple(build.steps), buffers=dict(build.buffers))


def _fully_computed(
    buffers: Mapping[str, Buffer], steps: Sequence[Step], outputs: Sequence[Output]
) -> set[str]:
    """The buffers that are computed at all of their points, inlined or not."""
    wanted = {view.buffer for view in views_in(tuple(outputs))}
    for step in reversed(steps):
        if isinstance(step, ExternCall):
            wanted |= read_by(step)
        elif step.buffer in wanted or not isinstance(step, Pointwise):
            wanted |= {step.buffer, *([step.base] if isinstance(step, Scatter) else ())}
            for load in (load for root in step.roots for load in root.loads()):
                size = buffers[load.buffer].layout.size
                if load.buffer not in wanted and covers(load.index, size):
                    wanted.add(load.buffer)
    return wanted


def covers(index: Sequence[Index], size: Sequence[Size]) -> bool:
    """Does an index reach each point of `size`?  False if that cannot be proved."""
    if tuple(index) == identity(size) or _spans(index, size):
        return True
    flat = Layout.contiguous(tuple(size)).element(tuple(index))
    return _spans((flat,), (product(size),))


def _spans(index: Sequence[Index], size: Sequence[Size]) -> bool:
    """The same test for each dimension: its axes count through its length, and no two share an
    axis."""
    atoms = [atom for place in index for atom, _ in place.terms]
    if len({atom for atom in atoms if isinstance(atom, Axis)}) < len(atoms):
        return False
    for place, length in zip(index, size, strict=True):
        steps = tuple(factor for _, factor in place.terms)
        first, last = place.bounds() or (1, 0)
        beyond = add_sizes(add_sizes(last, 1), mul_sizes(length, -1))
        counted = is_dense(Layout(tuple(axis.size for axis in place.axes()), steps))
        if not (counted and is_nonnegative(mul_sizes(first, -1)) and is_nonnegative(beyond)):
            return False
    return True


def checks_of(nest: Nest) -> Iterator[Expr]:
    """The checks of a nest: indices that it loads, as positions, and divisions of integers.

    Values under a mask are skipped, because only the elements that the mask selects are checked.
    """
    places = nest.index if isinstance(nest, Scatter) else ()
    waiting: list[Expr] = [*nest.roots, *(IndexValue(place, torch.int64) for place in places)]
    seen: set[Expr] = set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        for gathered in (atom for place in node.indices() for atom in gathered_in(place)):
            yield IndexValue(Index.of(gathered), torch.int64)
            waiting.append(gathered.value)
        waiting.extend((node.mask, node.other) if isinstance(node, Masked) else node.children())
        if isinstance(node, Op) and node.name in DIVIDING and any(integer_divisors(node)):
            yield node


def _over_own_axes(value: Expr) -> tuple[Expr, tuple[Size, ...]]:
    """`value` with its axes renamed in order of appearance, and their sizes."""
    used = tuple(dict.fromkeys(value.axes()))
    shape = tuple(axis.size for axis in used)
    return value.substitute(dict(zip(used, identity(shape), strict=True))), shape


def _evaluate(build: Builder, nest: Nest, value: Expr, shape: tuple[Size, ...]) -> None:
    """Add a nest that computes `value` over `shape`, and a call that keeps it alive."""
    build.origins = nest.origins
    stride, device = Layout.contiguous(shape).stride, build.buffers[nest.buffer].device
    made = build.pointwise(value, TensorMeta(shape, stride, value.dtype, device))
    build.extern(str(OPERATORS.evaluated.default), (argument(build, made),), None, [None], "check")
