"""Guards: a form with editable inputs and a verdict for each guard, and a table of all guards."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inductor_lab.compiler.capture.capture import Capture, Guard, readable_source
from inductor_lab.notebook.language import say
from inductor_lab.widgets.conditions import Condition, condition_of, entry_guards, inputs_of
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.shapes import GuardEntry, GuardsView, View
from inductor_lab.widgets.views import empty_view, row, table_view

_MEMBER = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")

ROUTINE = ("DIMENSION_DYNAMIC_MARKING_GUARD",)
"""Guards that every tensor has; only the table of all guards shows them."""


def guard_views(capture: Capture, links: Links) -> list[View]:
    """The form of guards, then the table of all guards; those with a user line come first."""
    if not capture.guards:
        return [empty_view("guards", "No guards were recorded for this call.")]
    ordered = sorted(capture.guards, key=lambda guard: not (guard.span or guard.source))
    rows = [
        row((g.kind, named(g.code), named(g.source), g.span or "", g.compile_id),
            links.source_of(g.span))
        for g in ordered
    ]
    columns = ("guard", "condition", "guarded value", "created by", "compile id")
    note = "The compiled code is reused only if all of these guards hold."
    return [try_view(capture, links), table_view("all", columns, rows, note)]


def try_view(capture: Capture, links: Links) -> GuardsView:
    """The editable inputs, and every guard of the function as a condition over them."""
    inputs = inputs_of(capture)
    note = say(
        "Edit an input: the first failing guard turns red. Nothing runs."
        if inputs
        else "None of the values that the guards check can be edited here."
    )
    entries = [guard_entry(entry_guards(capture), links)]
    here, every = len(entries[0]["checks"]), len(capture.guards)
    if here != every:
        said = "{here} of {every} guards: relevant guards of the first graph."
        note += " " + say(said, here=here, every=every)
    return {"kind": "guards", "name": "try", "inputs": inputs, "entries": entries, "note": note}


def guard_entry(guards: Sequence[Guard], links: Links) -> GuardEntry:
    """One compiled version of the function: its guards as [text, condition, kind, where, things].

    Guards that the page can evaluate come first.  A size guard that Dynamo emits in two forms is
    listed twice.
    """
    known = [(g, condition_of(g)) for g in guards if g.kind not in ROUTINE]
    checks = [
        [
            _short_text(guard, condition),
            condition,
            guard.kind,
            f"{guard.span}  {guard.span.code}" if guard.span else "",
            links.source_of(guard.span),
        ]
        for guard, condition in known
    ]
    checks.sort(key=lambda check: check[1] is None)
    return {"title": guards[0].compile_id if guards else "", "checks": checks}


def _short_text(guard: Guard, condition: Condition | None) -> str:
    """`x: float32[100], stride (1), requires_grad=True` for Dynamo's long `check_tensor(...)`."""
    match condition:
        case ["tensor", source, dtype, requires_grad, sizes, strides]:
            size, stride = (", ".join("any" if n is None else str(n) for n in each)
                            for each in (sizes, strides))
            about = f"{named(source)}: {dtype}[{size}], stride ({stride})"
            return f"{about}, requires_grad={requires_grad}"
    return named(guard.code)


def named(source: str) -> str:
    """The text of a guard, with members of modules named as in graphs.

    >>> named("L['net']._modules['h']._modules['0']._parameters['weight'] is None")
    'net.h.0.weight is None'
    """
    return _MEMBER.sub(r".\1", readable_source(source))
