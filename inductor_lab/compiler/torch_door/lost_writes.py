"""Writes to attributes that TorchDynamo loses: part of the interface to torch's private names.

After `torch.cond`, `while_loop` or a hook, TorchDynamo (since torch 2.13) goes on with a copy of
the table of pending writes, but an object that was written before still refers to the first table:

    self.calls += 1; y = torch.cond(...); self.calls += 1        counts one call, not two
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

from torch.fx import GraphModule

from inductor_lab.compiler.torch_door.torch_api import HigherOrderOperator
from inductor_lab.compiler.torch_door.torch_names import missing, optional

_Translator = optional("torch._dynamo.symbolic_convert.InstructionTranslator")
_Pending = optional("torch._dynamo.variables.dicts.SideEffectsProxyDict")
_SkipFrame = optional("torch._dynamo.exc.SkipFrame", Exception)


def lost_writes(module: GraphModule) -> list[str]:
    """The names of attributes of which the function that is being traced would lose a write; it
    was captured as `module`."""
    targets = (node.target for node in module.graph.nodes)
    if missing("lost writes") or not any(isinstance(t, HigherOrderOperator) for t in targets):
        return []
    try:
        traced = _Translator.current_tx().output
    except AttributeError:  # TorchDynamo traces nothing now
        return []
    table = traced.side_effects
    return sorted(
        {name for item, stale in _behind(traced) for name in _changed(item, stale, table)}
    )


def skip_function(why: str) -> Exception:
    """An error after which TorchDynamo runs the function that it traces in eager mode."""
    error: Exception = _SkipFrame(why)
    return error


def _behind(traced: Any) -> Iterator[tuple[Any, Any]]:
    """The objects that refer to another table than the last one of this trace, with that table.

    Objects that the function made and dropped are in no table any more, so the garbage collector
    is asked.  Those that an operator's own function made are its own.
    """
    last = traced.side_effects
    known = {id(one) for one in last.keepalive}
    for pending in gc.get_objects():
        if type(pending) is not _Pending or pending.side_effects is last:
            continue
        is_of_trace = pending.side_effects.output_graph_weakref() is traced
        if is_of_trace and id(getattr(pending.item, "value", None)) in known:
            yield pending.item, pending.side_effects


def _changed(item: Any, stale: Any, table: Any) -> Iterator[str]:
    """The attributes of an object whose pending writes differ in two tables."""
    kept = table.store_attr_mutations.get(item, {})
    for name, value in stale.store_attr_mutations.get(item, {}).items():
        if kept.get(name) is not value:
            yield name
