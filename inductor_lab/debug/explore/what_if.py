"""Compile the inspected call again with other options, and compare two compilations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

import torch

from inductor_lab.compiler.base.errors import NotRunnable
from inductor_lab.compiler.base.options import Options, names
from inductor_lab.compiler.capture.capture import Capture
from inductor_lab.compiler.records import AnyRecord, Call
from inductor_lab.compiler.torch_door.torch_api import pytree

Pairs = Iterable[tuple[str, ...]]


class Inspected(Protocol):
    """A compilation by inductor_lab or by stock: what is needed to repeat its call."""

    @property
    def name(self) -> str: ...
    @property
    def capture(self) -> Capture: ...
    @property
    def compiled(self) -> Callable[..., Any] | None: ...
    @property
    def call(self) -> Call | None: ...


def call_of(compilation: Inspected) -> Call:
    """The inspected call; raises NotRunnable for a compilation loaded from a file."""
    if compilation.call is None:
        raise NotRunnable(
            f"{compilation.name} was loaded from a file, so its function cannot be called",
            todo="call lab.inspect(f, x) again, and use that compilation",
        )
    return compilation.call


MARK = "_dynamo_propagated_dynamic_indices"
"""The attribute by which TorchDynamo marks dynamic dimensions of a tensor."""


def inspect_again(compilation: AnyRecord, options: Options | None = None) -> AnyRecord:
    """Repeat and inspect the inspected call.

    Its sizes are static or dynamic as in the inspected call, even if later calls made them dynamic.
    """
    call = call_of(compilation)
    if not any(part.assumed for part in compilation.parts):
        for value in pytree.tree_leaves((call.args, dict(call.kwargs))):
            if isinstance(value, torch.Tensor):
                vars(value).pop(MARK, None)
    made: AnyRecord = call.under(call.options if options is None else options)
    return made


def recompile(
    compilation: AnyRecord,
    *,
    forbid: Pairs = (),
    force: Pairs = (),
    fusion_off: Iterable[str] = (),
    rewrites_off: Iterable[str] = (),
    memory_budget: float | None = None,
    fusion: bool | None = None,
    passes_off: Iterable[str] = (),
) -> AnyRecord:
    """Implements `Compilation.what_if`."""
    old = call_of(compilation).options
    wanted_apart, wanted_together = _pairs(forbid), _pairs(force)
    fusion_options = replace(
        old.fusion,
        enabled=old.fusion.enabled if fusion is None else fusion,
        off=_joined(old.fusion.off, names("fusion_off", fusion_off)),
        forbid=_joined(_without(old.fusion.forbid, wanted_together), wanted_apart),
        force=_joined(_without(old.fusion.force, wanted_apart), wanted_together),
    )
    budget = old.memory_budget if memory_budget is None else memory_budget
    return inspect_again(
        compilation,
        replace(
            old,
            fusion=fusion_options,
            rewrites_off=_joined(old.rewrites_off, names("rewrites_off", rewrites_off)),
            memory_budget=budget,
            passes_off=_joined(old.passes_off, names("passes_off", passes_off)),
        ),
    )


def _pairs(given: Pairs) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(pair) for pair in given)


def _joined(old: tuple[Any, ...], new: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((*old, *new)))


def _without(pairs: tuple[Any, ...], others: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(pair for pair in pairs if pair not in others)
