"""A live explorer about a call with other inputs: which guards fail, and what is recompiled."""

from __future__ import annotations

from typing import Any

from inductor_lab.compiler.step_time import duration
from inductor_lab.debug.explore.what_if import Inspected
from inductor_lab.debug.recompiles.call_again import call_with_edits, predict_call
from inductor_lab.debug.recompiles.watch_recompiles import recompiles
from inductor_lab.notebook.language import say
from inductor_lab.widgets.conditions import entry_guards
from inductor_lab.widgets.guards import guard_entry
from inductor_lab.widgets.links import Links


def answer_prediction(compilation: Inspected, edits: Any) -> dict[str, Any]:
    """What a call with edited inputs would do, by the guards of all versions compiled so far.

    {hit, reasons}: the compile id of the version that would run, or null; the failing guard of each
    version that is checked before it, or of all.  Empty where TorchDynamo cannot be asked.
    """
    found = predict_call(compilation, edits)
    return {} if found is None else {"hit": found.hit, "reasons": dict(found.reasons)}


def answer_again(compilation: Inspected, edits: Any, links: Links) -> dict[str, Any]:
    """Call with edited inputs: the verdict, the guards of newly compiled code, and the row for the
    list of calls."""
    with recompiles() as seen:
        again = call_with_edits(compilation, edits)
    seconds = duration(sum(each.seconds for each in seen.compiled))
    what = say("recompiled in {seconds}", seconds=seconds)
    call = {"what": say("reused") if again.hit else what, "took": duration(seen.seconds),
            "why": [reason.partition(": ")[2] for reason in again.reasons]}  # fmt: skip
    if again.hit:
        verdict = say("The call ran and reused the compiled code.")
        return {"verdict": verdict, "entry": None, "call": call}
    entry = guard_entry(entry_guards(again.capture), links)
    verdict = "\n".join([say("The call ran and TorchDynamo recompiled:"), *again.reasons])
    return {"verdict": verdict, "entry": entry, "call": call}
