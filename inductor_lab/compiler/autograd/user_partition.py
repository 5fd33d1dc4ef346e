"""A user's partitioner: it chooses the values to save for the backward, and the choice is verified.

def mine(values):                      save all values that the backward reads
    return [value.name for value in values if value.needed]

with lab.override(partition=mine):
    c = lab.inspect(f, x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import torch

from inductor_lab.compiler.autograd.budget import Chooser
from inductor_lab.compiler.autograd.forward_value import ForwardValue
from inductor_lab.compiler.autograd.recompute import Price, estimated_flops
from inductor_lab.compiler.autograd.sides import returns_several
from inductor_lab.compiler.base.errors import Refused
from inductor_lab.compiler.capture.text import target_text

Partitioner: TypeAlias = Callable[[tuple[ForwardValue, ...]], Iterable[str]]
"""From the forward's values, in order, to the names of those to save."""


def saved_by(partitioner: Partitioner, chooser: Chooser) -> frozenset[str]:
    """The values that a user's function saves, and the inputs that are needed with them.

    Raises Refused, with the reason, if the backward cannot be computed from these.
    """
    chooser.reason = "chosen by the user's partitioner"
    values = {node.name: _value(node, chooser) for node in chooser.sides.values}
    saved = set(partitioner(tuple(values.values())))
    if unknown := saved - values.keys():
        raise Refused(f"{sorted(unknown)} are not values of the forward")
    tuples = {node.name for node in chooser.sides.values if returns_several(node)}
    if tuples & saved:
        raise Refused(f"{sorted(tuples & saved)[0]} is a tuple: save its items")
    waiting, seen = [v.name for v in values.values() if v.needed], set[str]()
    while waiting:
        value = values[waiting.pop()]
        if value.name in saved or value.name in seen:
            continue
        seen.add(value.name)
        if value.is_input:
            saved.add(value.name)
        elif not value.repeatable:
            raise Refused(
                f"the backward needs {value.name} = {value.op}, which cannot be recomputed",
                todo="save it, or a value between it and the backward",
            )
        waiting += [name for name in value.inputs if name in values]
    return frozenset(saved)


def _value(node: torch.fx.Node, chooser: Chooser) -> ForwardValue:
    is_input = node.op == "placeholder"
    return ForwardValue(
        name=node.name,
        op="input" if is_input else target_text(node.target),
        inputs=tuple(n.name for n in node.all_input_nodes),
        nbytes=chooser.sides.nbytes[node],
        flops=0 if is_input else estimated_flops(node),
        repeatable=not is_input and chooser.prices[node].price != Price.NEVER,
        needed=node in chooser.sides.needed,
        is_input=is_input,
    )
