"""Writes to attributes that TorchDynamo loses: part of the interface to torch's private names.

After `torch.cond`, `while_loop` or a hook, TorchDynamo (since torch 2.13) goes on with a copy of
the table of pending writes, but an object that was written before still refers to the first table:

    self.calls += 1; y = torch.cond(...); self.calls += 1        counts one call, not two
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inductor_lab.compiler.torch_door.torch_names import missing, optional

_Translator = optional("torch._dynamo.symbolic_convert.InstructionTranslator")
_Pending = optional("torch._dynamo.variables.dicts.SideEffectsProxyDict")
_SkipFrame = optional("torch._dynamo.exc.SkipFrame", Exception)


def lost_writes() -> list[str]:
    """The names of attributes whose last writes the function that is being traced would lose."""
    if missing("lost writes"):
        return []
    try:
        table = _Translator.current_tx().output.side_effects
    except AttributeError:  # TorchDynamo traces nothing now
        return []
    return sorted({name for item, stale in _behind(table) for name in _changed(item, stale, table)})


def skip_function(why: str) -> Exception:
    """An error after which TorchDynamo runs the function that it traces in eager mode."""
    error: Exception = _SkipFrame(why)
    return error


def _behind(table: Any) -> Iterator[tuple[Any, Any]]:
    """The objects that refer to another table than this, with that table."""
    for variable in table.id_to_variable.values():
        pending = getattr(getattr(variable, "dict_vt", None), "items", None)
        if isinstance(pending, _Pending) and pending.side_effects is not table:
            yield pending.item, pending.side_effects


def _changed(item: Any, stale: Any, table: Any) -> Iterator[str]:
    """The attributes of an object whose pending writes differ in two tables."""
    kept = table.store_attr_mutations.get(item, {})
    for name, value in stale.store_attr_mutations.get(item, {}).items():
        if kept.get(name) is not value:
            yield name
