"""The stepper for a compiled call in a notebook, with buttons.

As with the explorer (`live.py`), JupyterLab draws it from the cell's HTML, and a widget without a
view connects it to the kernel.  A notebook opened later shows the last state.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

import anywidget
import traitlets

from inductor_lab.debug.explore.steps import Steps
from inductor_lab.notebook.language import spoken
from inductor_lab.widgets.debug import html, tree
from inductor_lab.widgets.markup import element, written
from inductor_lab.widgets.page import (
    bench_style,
    debug_style,
    json_for_html,
    steps_script,
    steps_widget_script,
)


class LiveSteps(anywidget.AnyWidget):
    """The stepper as a widget."""

    _esm = steps_widget_script()
    _css = bench_style() + debug_style()
    tree: traitlets.List[Any] = traitlets.List().tag(sync=True)
    channel = traitlets.Unicode().tag(sync=True)

    def __init__(self, steps: Steps, **traits: Any) -> None:
        self._steps = steps
        super().__init__(tree=tree(steps, live=True), channel=secrets.token_hex(6), **traits)
        self.on_msg(self._asked)

    def _asked(self, _widget: Any, request: Any, _buffers: Any) -> None:
        """Handle a button: step one line, run to the next kernel, or run to the end."""
        word = request.get("do")
        for step in self._steps:
            if word == "next" or (word == "kernel" and step.kernel):
                break
        self.tree = tree(self._steps, live=True)
        self.send({"id": request.get("id")})


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
