"""Try suggestions: an edited step or another option must lower the peak and keep the results."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from torch.utils.checkpoint import checkpoint

from inductor_lab.compiler.base.options import Options
from inductor_lab.debug.advice.trial import same_leaves
from inductor_lab.debug.memory.edits import Edit, candidates, edited_code
from inductor_lab.debug.memory.runs import (
    Compiled,
    Once,
    Step,
    StepFailed,
    compiled_run,
    eager_step,
    measured,
)
from inductor_lab.debug.memory.step_memory import Suggestion

BUDGETS = (0.5, 0.0)
"""The memory budgets that are tried."""
LOWER = 0.99
"""A suggestion has at most this share of the peak."""


@dataclass(frozen=True)
class Tried:
    """The suggestions that lower a peak, and the number of all that were tried."""

    found: tuple[Suggestion, ...]
    count: int


def try_edits(step: Step, eager: Once, limit: float) -> Tried:
    """Try edits of the user's functions in eager mode."""
    found, count = [], 0
    for edit in candidates(eager.run):
        count += 1
        after = _edited(step, edit, limit)
        if after is None or not same_leaves(eager.results, after.results):
            continue
        before, peak = eager.run.peak_bytes, after.run.peak_bytes
        if peak < LOWER * before:
            found.append(Suggestion("eager", edit.name, edit.what, before, peak, edit.diff))
    return Tried(tuple(found), count)


def _edited(step: Step, edit: Edit, limit: float) -> Once | None:
    codes = edited_code(edit)
    if codes is None:
        return None
    before, after = codes

    def run(look_at: int) -> Any:
        with _swapped(before, after):
            return eager_step(step, look_at)

    try:
        return measured("eager", step, run, limit, look=False)
    except StepFailed:
        return None


@contextmanager
def _swapped(before: CodeType, after: CodeType) -> Iterator[None]:
    """Give the new code to all functions that have the old one, while the block runs."""
    changed: list[tuple[FunctionType, CodeType]] = []
    added: list[dict[str, Any]] = []
    for each in gc.get_objects():
        if type(each) is FunctionType and _same_function(each, before):
            changed.append((each, each.__code__))
            if "checkpoint" not in each.__globals__:
                each.__globals__["checkpoint"] = checkpoint
                added.append(each.__globals__)
            each.__code__ = after
    try:
        yield
    finally:
        for function, code in changed:
            function.__code__ = code
        for names in added:
            names.pop("checkpoint", None)


def _same_function(function: FunctionType, code: CodeType) -> bool:
    its = function.__code__
    return (its.co_filename, its.co_qualname, its.co_firstlineno) == (
        code.co_filename, code.co_qualname, code.co_firstlineno)  # fmt: skip


def try_budgets(step: Step, ours: Compiled, options: Options, limit: float) -> Tried:
    """Try smaller memory budgets of our compiler."""
    if not ours.can_keep_less or ours.once is None:
        return Tried((), 0)
    before, found = ours.once, []
    for budget in BUDGETS:
        smaller = replace(options, memory_budget=budget)
        after = compiled_run("inductor_lab", step, smaller, limit, look=False).once
        if after is None or not same_leaves(before.results, after.results):
            continue
        if after.run.peak_bytes < LOWER * before.run.peak_bytes:
            what = f'options={{"memory_budget": {budget}}} keeps less for the backward'
            found.append(Suggestion("inductor_lab", "memory_budget", what,
                                    before.run.peak_bytes, after.run.peak_bytes))  # fmt: skip
    return Tried(tuple(found), len(BUDGETS))
