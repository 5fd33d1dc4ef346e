"""The stepper for a compiled call in a notebook, with buttons.

As with the explorer (`live.py`), JupyterLab draws it from the cell's HTML, and a widget without a
view connects it to the kernel.  A notebook opened later shows the last state.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import anywidget
import traitlets

from inductor_lab.debug.explore.steps import Step, Steps
from inductor_lab.notebook.language import spoken
from inductor_lab.widgets.debug import html, latest_buffers, tree
from inductor_lab.widgets.markup import element, written
from inductor_lab.widgets.page import (
    bench_style,
    debug_style,
    json_for_html,
    steps_script,
    steps_widget_script,
)
from inductor_lab.widgets.places import WrongTrait, known

KEYS = ("stage", "kernel", "line")
"""The keys of a selection."""


class LiveSteps(anywidget.AnyWidget):
    """The stepper as a widget: it shows the state after a statement.

    view      the part that is shown: "g0.forward"
    selected  the last statement that is shown, {} before the first one: its `stage` (the part), its
              `line` in the host program, and the `kernel` that it calls, if any
    value     the buffers at this moment, by name (the fields of `BufferState`)

    Setting `view` or `selected` runs statements until the first one that fits, or goes back to it.
    """

    _esm = steps_widget_script()
    _css = bench_style() + debug_style()
    tree: traitlets.List[Any] = traitlets.List().tag(sync=True)
    channel = traitlets.Unicode().tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)
    view = traitlets.Unicode().tag(sync=True)
    value = traitlets.Dict(read_only=True).tag(sync=True)

    def __init__(self, steps: Steps, **traits: Any) -> None:
        self._steps, self._at, self._moves = steps, len(steps.done), False
        self._parts = {running.where: running.part for running in steps.parts}
        super().__init__(channel=secrets.token_hex(6), **traits)
        self._show(self._at)
        self.on_msg(self._asked)

    def _asked(self, _widget: Any, request: Any, _buffers: Any) -> None:
        """Handle a button: step one line, run to the next kernel, or run to the end."""
        word = request.get("do")
        self._show(self._until(
            lambda step: word == "next" or (word == "kernel" and bool(step.kernel)), self._at
        ))  # fmt: skip
        self.send({"id": request.get("id")})

    def _until(self, fits: Callable[[Step], bool], at: int = 0) -> int:
        """The number of statements up to the first one that fits, after `at` of them; those that
        have not run yet are run."""
        done = self._steps.done
        while at < len(done) or next(self._steps, None) is not None:
            at += 1
            if fits(done[at - 1]):
                break
        return at

    def _show(self, at: int) -> None:
        """Show the state after this number of statements."""
        done = self._steps.done[:at]
        last = done[-1] if done else None
        self._at, self._moves = at, True
        try:
            self.tree = tree(self._steps, live=True, at=at)
            self.set_trait("value", {each.name: asdict(each) for each in latest_buffers(done)})
            self.view = last.where if last else next(iter(self._parts), "")
            self.selected = {} if last is None else _selection(last)
        finally:
            self._moves = False

    @traitlets.validate("view")
    def _known_view(self, proposal: Any) -> str:
        return known("view", proposal["value"], self._parts) if self._parts else ""

    @traitlets.validate("selected")
    def _known_selection(self, proposal: Any) -> dict[str, Any]:
        wanted: dict[str, Any] = proposal["value"]
        for key in wanted:
            known("key", key, KEYS)
        if not wanted:
            return {}
        kernel, line = wanted.get("kernel"), wanted.get("line")
        calling = (where for where, part in self._parts.items()
                   if kernel in [each.name for each in part.kernels])  # fmt: skip
        stage = wanted.get("stage") or (next(calling, None) if kernel else None) or self.view
        part = self._parts[known("stage", stage, self._parts)]
        if kernel is not None:
            known("kernel", kernel, [each.name for each in part.kernels])
        lines = len(part.host.code.lines)
        if line is not None and line not in range(1, lines + 1):
            raise WrongTrait(f"{stage} has no line {line!r}", todo=f"Valid lines: 1 to {lines}")
        return {**wanted, "stage": stage}

    @traitlets.observe("view")
    def _show_view(self, change: Any) -> None:
        if not self._moves:
            where = change["new"]
            ran = [n for n, step in enumerate(self._steps.done, 1) if step.where == where]
            self._show(ran[-1] if ran else self._until(lambda step: step.where == where))

    @traitlets.observe("selected")
    def _show_selected(self, change: Any) -> None:
        if self._moves:
            return
        stage, kernel, line = (change["new"].get(key) for key in KEYS)

        def fits(step: Step) -> bool:
            here = step.where == stage and kernel in (None, step.kernel)
            return here and (line is None or step.line >= line)

        self._show(self._until(fits) if change["new"] else 0)


def _selection(step: Step) -> dict[str, Any]:
    kernel = {"kernel": step.kernel} if step.kernel else {}
    return {"stage": step.where, "line": step.line, **kernel}


def live_steps(steps: Steps) -> LiveSteps:
    """The widget that steps through a call."""
    return LiveSteps(steps)


def bundle(steps: Steps, view: bool) -> dict[str, Any]:
    """MIME bundle: the widget and static HTML for front ends where HTML cannot reach the kernel
    (`view`); for others, HTML that connects to the widget."""
    widget = live_steps(steps)
    if view:
        shown = widget._repr_mimebundle_() or ({}, {})
        return {**shown[0], "text/plain": str(steps), "text/html": html(steps)}
    name = f"lab-{widget.channel}"
    body = written(element("div", {"id": name}, tree(steps)))
    connected = f"{json.dumps(widget.channel)}, {json_for_html(spoken().get('texts', {}))}"
    page = (
        f"<style>{bench_style()}{debug_style()}</style>{body}"
        f'<script type="module">\n{steps_script()}\n'
        f'stepsInPage(document.getElementById("{name}"), {connected});\n</script>'
    )
    return {"text/plain": str(steps), "text/html": page}
