"""Guards: as a form whose inputs can be edited, each guard with its verdict, and all as a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inductor_lab.bench.roofline import duration
from inductor_lab.compiler.capture.capture import Capture, Guard, readable_source
from inductor_lab.debug.recompiles.call_again import call_with_edits
from inductor_lab.debug.recompiles.watch_recompiles import recompiles
from inductor_lab.notebook.language import say
from inductor_lab.widgets.conditions import Condition, condition_of, entry_guards, inputs_of
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.shapes import GuardEntry, GuardsView, View
from inductor_lab.widgets.views import empty_view, row, table_view

if TYPE_CHECKING:
    from inductor_lab.api.compilation import Compilation

_MEMBER = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")

ROUTINE = ("DIMENSION_DYNAMIC_MARKING_GUARD",)
"""Every tensor has these; they are in the table of all guards only."""


def guard_views(capture: Capture, links: Links) -> list[View]:
    """The guards to try, then all of them; those with a line of the user's first."""
    if not capture.guards:
        return [empty_view("guards", "No guards were recorded for this call.")]
    ordered = sorted(capture.guards, key=lambda guard: not (guard.span or guard.source))
    rows = [
        row((g.kind, named(g.code), named(g.source), g.span or "", g.compile_id),
            links.source_of(g.span))
        for g in ordered
    ]
    columns = ("guard", "condition", "about", "asked for at", "compile id")
    note = "All of these must hold for the compiled code to be used again."
    return [try_view(capture, links), table_view("all", columns, rows, note)]


def try_view(capture: Capture, links: Links) -> GuardsView:
    """What can be edited, and every guard of the function as a condition over it."""
    inputs = inputs_of(capture)
    note = say(
        "Edit an input: the first guard that fails turns red, and nothing is run."
        if inputs
        else "No guard is about a value that could be edited: every call uses this code again."
    )
    entries = [guard_entry(entry_guards(capture), links)]
    here, every = len(entries[0]["checks"]), len(capture.guards)
    if here != every:
        said = "{here} of {every} guards: those of the first graph that say something."
        note += " " + say(said, here=here, every=every)
    return {"kind": "guards", "name": "try", "inputs": inputs, "entries": entries, "note": note}


def guard_entry(guards: Sequence[Guard], links: Links) -> GuardEntry:
    """One compiled version of the function: its guards as [text, condition, kind, where, things].

    Guards over which the page can decide come first; a size guard that Dynamo also put into
    another form is there in both.
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
    """What a guard says, with a module's members as graphs name them.

    >>> named("L['net']._modules['h']._modules['0']._parameters['weight'] is None")
    'net.h.0.weight is None'
    """
    return _MEMBER.sub(r".\1", readable_source(source))


def answer_again(compilation: Compilation, edits: Any, links: Links) -> dict[str, Any]:
    """Call with edited inputs: what happened, the guards of the code that was added, and the call's
    row in the list of calls."""
    with recompiles() as seen:
        again = call_with_edits(compilation, edits)
    seconds = duration(sum(each.seconds for each in seen.compiled))
    what = say("compiled again in {seconds}", seconds=seconds)
    call = {"what": say("used again") if again.hit else what, "took": duration(seen.seconds),
            "why": [reason.partition(": ")[2] for reason in again.reasons]}  # fmt: skip
    if again.hit:
        verdict = say("It ran: the compiled code was used again.")
        return {"verdict": verdict, "entry": None, "call": call}
    entry = guard_entry(entry_guards(again.capture), links)
    verdict = "\n".join([say("It ran, and TorchDynamo compiled again:"), *again.reasons])
    return {"verdict": verdict, "entry": entry, "call": call}
