"""TorchDynamo's trace as a view: instruction, symbolic stack and graph, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_lab.compiler.capture.capture import Capture, Instruction, SymbolicRun, readable_source
from inductor_lab.notebook.language import say
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.shapes import Pane, Run, View
from inductor_lab.widgets.views import empty_view, pane


def steps_pane(capture: Capture, links: Links) -> Pane:
    """One run for each attempt of TorchDynamo to trace a frame; the slider moves in one run."""
    total = sum(run.total for run in capture.runs)
    return pane("steps", [steps_view(capture, links)], count=total or "")


def steps_view(capture: Capture, links: Links) -> View:
    """`texts` has every text once; a row refers to texts by index.

    row  [depth, function, line, opname, argument, [stack], [added], [[old, new]], things]
    """
    if not capture.runs:
        return empty_view("steps", "TorchDynamo's instructions were not recorded for this call.")
    texts: dict[str, int] = {}
    runs: list[Run] = [
        {
            "title": _title(capture.runs, number),
            "total": run.total,
            "rows": [_row(step, texts, links) for step in run.instructions],
        }
        for number, run in enumerate(capture.runs)
        if run.instructions
    ]
    return {"kind": "steps", "name": "steps", "runs": runs, "texts": list(texts)}


def _title(runs: Sequence[SymbolicRun], number: int) -> str:
    """`f 0/0`, with the number of the attempt if the frame was traced several times, and with its
    share of all instructions if there are several runs."""
    run = runs[number]
    tries = [n for n, other in enumerate(runs) if other.compile_id == run.compile_id]
    at, of = tries.index(number) + 1, len(tries)
    again = "  " + say("attempt {at} of {of}", at=at, of=of) if of > 1 else ""
    every = sum(each.total for each in runs)
    share = say("{n} of {all} instructions", n=f"{run.total:,}", all=f"{every:,}")
    share = f"  {share}" if len(runs) > 1 else ""
    return f"{run.function}  {run.compile_id}{again}{share}"


def _row(step: Instruction, texts: dict[str, int], links: Links) -> list[object]:
    def text(each: str) -> int:
        return texts.setdefault(each, len(texts))

    return [
        step.depth,
        text(step.function),
        step.line,
        text(step.opname),
        text(readable_source(step.argument)),
        [text(readable_source(value)) for value in step.stack],
        [text(line) for line in step.added],
        [[text(old), text(new)] for old, new in step.renamed],
        links.find("source", step.file, [str(step.line)]),
    ]
