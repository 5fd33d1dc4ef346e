"""What is left out of a program once all of its graph is lowered: steps that no result depends on,
and copies that a scatter need not make.

    buf0 = x.clone();  buf1 = buf0 with 1 stored at i        two assignments, a copy for each
    buf2 = buf1.clone();  buf3 = buf2 with 2 stored at j     →  buf3 goes on in buf1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from inductor_lab.ir.expr import Load
from inductor_lab.ir.index import Index
from inductor_lab.ir.program import (
    Buffer,
    BufferKind,
    ExternCall,
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
from inductor_lab.lower.builder import Builder


def needed(build: Builder, outputs: Sequence[Output]) -> list[Step]:
    """The steps that some output depends on (of `var_mean`, often only one result is used), be it
    for a size alone."""
    given = {n for n, b in build.buffers.items() if b.kind is BufferKind.INPUT}
    known = {s for name in given for s in build.buffers[name].layout.size}
    telling = [s for step in build.steps for s in bound_by(step, build.buffers) if s not in known]
    wanted = {view.buffer for view in views_in(tuple(outputs))}
    sizes = symbols_of(ExternCall((), "", tuple(outputs))) if telling else frozenset()
    kept: list[Step] = []
    for step in reversed(build.steps):
        tells = bool(telling) and not sizes.isdisjoint(bound_by(step, build.buffers))
        if wanted.intersection(written_by(step)) or tells or _has_effects(step):
            wanted |= read_by(step)
            sizes |= symbols_of(step) if telling else frozenset()
            kept.append(step)
    return kept[::-1]


def _has_effects(step: Step) -> bool:
    """An assertion may raise, drawing a seed moves the generator, some ops print or check, and
    other ranks take part in collectives."""
    if not isinstance(step, ExternCall):
        return False
    effects = ("random seed", "effect", "collective", "wait")
    return step.reason in effects or step.outputs == (None,)


def without_copies(
    steps: Sequence[Step], buffers: Mapping[str, Buffer], outputs: Sequence[Output]
) -> list[Step]:
    """A scatter goes on in what another nest has made, if the copy of it is all that reads it.

    So a row of assignments to one tensor copies it once, and not each time.
    """
    makers = {step.buffer: step for step in steps if not isinstance(step, ExternCall)}
    readers = Counter(name for step in steps for name in read_by(step))
    kept = {view.buffer for view in views_in(tuple(outputs))}
    continued: dict[str, str] = {}
    for step in steps:
        copy = makers.get(step.base) if isinstance(step, Scatter) else None
        match copy:
            case Pointwise(name, axes, Load(source, index)) if index == tuple(map(Index.of, axes)):
                made = makers.get(source)
                alike = buffers[source].layout == buffers[name].layout
                own = made is not None and not isinstance(made, Pointwise)
                if own and alike and readers[source] == 1 and source not in kept:
                    continued[name] = source
    return [
        replace(step, base=continued.get(step.base, step.base))
        if isinstance(step, Scatter)
        else step
        for step in steps
        if isinstance(step, ExternCall) or step.buffer not in continued
    ]
