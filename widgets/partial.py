"""The finished stages of a failed compilation, for the cell's output."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from html import escape
from typing import Any

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.capture.fx_graph import FxGraph
from inductor_lab.notebook.language import say
from inductor_lab.notebook.so_far import SoFar
from inductor_lab.widgets.plain import STYLE

MARKS = """
.lab-partial mark{color:inherit;background:#ff818266;outline:1px solid #cf222e}
"""


def partial_html(so_far: SoFar) -> str:
    """A line for each stage; a finished stage opens to its text, with the failing line marked."""
    where = _where(so_far.error)
    finished = sorted(so_far.finished, key=lambda phase: phase[0] != "capture")
    phases = [
        _phase(name, result, where, opened=position == len(finished) - 1)
        for position, (name, result) in enumerate(finished)
    ]
    if so_far.failed:
        phases.append(f"<p><b>✗ {escape(so_far.failed)}</b> {escape(str(so_far.error))}</p>")
    head = f"<p>{escape(say('Finished stages:'))}</p>"
    body = "".join(phases) + _traceback(so_far.error)
    return (
        f'<style>{STYLE}{MARKS}</style><div class="lab-plain lab-partial">{head}{body}</div>'
    )


def _traceback(error: BaseException | None) -> str:
    if error is None:
        return ""
    text = escape("".join(traceback.format_exception(error)))
    title = escape(say("full traceback"))
    return f"<details><summary>{title}</summary><pre>{text}</pre></details>"


def _phase(name: str, result: Any, where: str, opened: bool) -> str:
    text = "\n".join(map(str, result)) if isinstance(result, tuple) else str(result)
    if name == "capture":
        name, text = say("capture: the graph so far"), text or say("nothing yet")
    lines = "\n".join(_marked(text, _nodes_at(result, where)))
    state = " open" if opened else ""
    return f"<details{state}><summary>✓ {escape(name)}</summary><pre>{lines}</pre></details>"


def _marked(text: str, names: frozenset[str]) -> Iterator[str]:
    for line in text.split("\n"):
        shown = escape(line)
        assigns = line.strip().split(":")[0].split(" ")[0] in names
        yield f"<mark>{shown}</mark>" if assigns else shown


def _nodes_at(result: Any, where: str) -> frozenset[str]:
    """The nodes of a graph whose source line is the one that the error names."""
    if not isinstance(result, FxGraph) or not where:
        return frozenset()
    return frozenset(
        node.name
        for node in result.nodes
        if node.span and node.span.code.strip() and node.span.code.strip() in where
    )


def _where(error: BaseException | None) -> str:
    """The user's line that the compiler's error names."""
    while error is not None:
        if isinstance(error, LabError) and error.where:
            return error.where
        error = error.__cause__ or error.__context__
    return ""
