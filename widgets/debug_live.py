"""A call that is stepped through in a notebook, with buttons."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from inductor_lab.debug.steps import Steps
from inductor_lab.widgets.debug import html, tree
from inductor_lab.widgets.page import bench_style, debug_style, steps_widget_script


class LiveSteps(anywidget.AnyWidget):
    """A call that is stepped through, with buttons."""

    _esm = steps_widget_script()
    _css = bench_style() + debug_style()
    tree: traitlets.List[Any] = traitlets.List().tag(sync=True)

    def __init__(self, steps: Steps, **traits: Any) -> None:
        self._steps = steps
        super().__init__(tree=tree(steps, live=True), **traits)
        self.on_msg(self._asked)

    def _asked(self, _widget: Any, request: Any, _buffers: Any) -> None:
        """A button was pressed: one line, to the next kernel, or to the end."""
        word = request.get("do")
        for step in self._steps:
            if word == "next" or (word == "kernel" and step.kernel):
                break
        self.tree = tree(self._steps, live=True)


def live_steps(steps: Steps) -> LiveSteps:
    """The widget of a call that is stepped through."""
    return LiveSteps(steps)


def bundle(steps: Steps) -> dict[str, Any]:
    """The widget, with what stands in a saved notebook."""
    view = live_steps(steps)._repr_mimebundle_() or ({}, {})
    return {**view[0], "text/plain": str(steps), "text/html": html(steps)}
