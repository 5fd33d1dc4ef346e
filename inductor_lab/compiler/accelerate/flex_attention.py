"""Compiles `flex_attention` with its user functions.

A call becomes attention kernels that contain the user functions.  If there are no kernels for it,
it becomes two matrix products and a softmax, which are fused with the user functions.

    flex_attention(q, k, v, score_mod, mask)   →   s = score_mod(q @ k.mT * scale, b, h, i, j)
                                                   softmax(where(mask(b, h, i, j), s, -inf)) @ v

Inductor: `kernel/flex/`, templates for GPUs and CPUs.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch.fx import GraphModule, Node

from inductor_lab.compiler.accelerate.flash import arguments_of, flash, language_of
from inductor_lab.compiler.accelerate.flash_inner import Known
from inductor_lab.compiler.accelerate.flex_definitions import BACKWARD, DEFINITIONS
from inductor_lab.compiler.base.errors import working_on
from inductor_lab.compiler.capture.operands import operand
from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.rewrite.facts import RewriteFacts
from inductor_lab.compiler.rewrite.insert_calls import inline_definition
from inductor_lab.compiler.rewrite.rewrites import Fired


def calls_of(module: GraphModule) -> list[Node]:
    """Return the calls of the two operators."""
    find = module.graph.find_nodes
    return [call for op in DEFINITIONS for call in find(op="call_function", target=op)]


def drop_block_lists(module: GraphModule) -> None:
    """Remove the lists of blocks from the arguments of backwards that do not use GPU kernels.

    Only GPU kernels read them.  Otherwise, a forward would compute and save them.
    """
    for call in module.graph.find_nodes(op="call_function", target=BACKWARD):
        if language_of(operand(call).meta["val"]) == "triton":
            continue
        for n, given in enumerate(call.args):
            if isinstance(given, tuple) and given:
                *blocks, last = given
                kept = (block if isinstance(block, int) else None for block in blocks)
                call.update_arg(n, (*kept, last))
                break


def flex_attention(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Compile calls of attention together with their user functions."""
    calls = calls_of(module)
    table = decomposition_table(lowered()) if calls else {}
    known: Known = {}
    for call in calls:
        with working_on((call.name,)):
            if "flash_attention" not in facts.off and flash(call, arguments_of(call), table, known):
                yield Fired("flash_attention", call.name, call.name, facts.span_of(call))
            else:
                fired = Fired("flex_attention", call.name, "", facts.span_of(call))
                inline_definition(call, DEFINITIONS[call.target], table)
                yield fired

