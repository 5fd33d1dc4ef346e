"""Pending writes to attributes: part of the interface to torch's private names.

TorchDynamo loses some.  After `torch.cond`, `while_loop` or a hook, it goes on (since torch 2.13)
with a copy of the table of pending writes, but an object that was written before still refers to
the first table:

    self.calls += 1; y = torch.cond(...); self.calls += 1        counts one call, not two
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from traceback import FrameSummary
from typing import Any, NamedTuple

from inductor_lab.compiler.torch_door.torch_names import optional

_Translator = optional("torch._dynamo.symbolic_convert.InstructionTranslator")
_Pending = optional("torch._dynamo.variables.dicts.SideEffectsProxyDict")
_SkipFrame = optional("torch._dynamo.exc.SkipFrame", Exception)


class Writes(NamedTuple):
    """Pending writes to an object whose table is not the last one."""

    attributes: list[str]
    are_lost: bool | None
    """Do they differ from those of the last table?  None: that table has dropped the object."""
    stacks: Sequence[Sequence[FrameSummary]]
    """Where each of them was traced, outermost frame first; empty if TorchDynamo does not say."""


def writes_to_other_tables() -> Iterator[Writes]:
    """These writes in the function that is being traced."""
    try:
        traced = _Translator.current_tx().output
    except AttributeError:  # TorchDynamo traces nothing now
        return
    last = traced.side_effects
    for item, stale in _behind(traced):
        pending = stale.store_attr_mutations.get(item, {})
        kept = last.store_attr_mutations.get(item)
        if pending and kept is None and item.source is None:
            yield Writes(list(pending), None, last.mutation_user_stacks.get(item, ()))
        elif names := [name for name in pending if (kept or {}).get(name) is not pending[name]]:
            yield Writes(names, True, ())


def skip_function(why: str) -> Exception:
    """An error after which TorchDynamo runs the function that it traces in eager mode."""
    error: Exception = _SkipFrame(why)
    return error


def _behind(traced: Any) -> Iterator[tuple[Any, Any]]:
    """The objects that refer to another table than the last one of this trace, with that table.

    Objects that the function made and dropped are in no table now, so the garbage collector is
    asked.  Those that an operator's own function made are its own.
    """
    last = traced.side_effects
    known = {id(one) for one in last.keepalive}
    for pending in gc.get_objects():
        if type(pending) is not _Pending or pending.side_effects is last:
            continue
        is_of_trace = pending.side_effects.output_graph_weakref() is traced
        if is_of_trace and id(getattr(pending.item, "value", None)) in known:
            yield pending.item, pending.side_effects
