"""The explorer with a Python process behind it: it can ask "what if" and gets an answer.

    JupyterLab, Notebook    the HTML output draws the explorer; a `Connection`, a widget without a
                            view, joins it to the kernel.  A notebook that is opened later has the
                            same explorer, only without somebody to ask.
    VS Code, Colab, marimo  `Explorer`, a widget that draws itself; beside it stands the inert HTML

Both talk the same way: the page sends `{id, changes}`, `{id, show, target}`, `{id, show: "again",
edits}` or `{id, show: "kernel", kernel, part, text}`; Python answers `{id, verdict, panes}`, `{id,
title, panes}`, `{id, verdict, entry}`, `{id, verdict, right, errors}` or `{id, error}`.
"""

from __future__ import annotations

import secrets
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

import anywidget
import traitlets

from inductor_lab.debug.edited import try_kernel
from inductor_lab.errors import LabError
from inductor_lab.widgets.compare import comparison_panes, verdict
from inductor_lab.widgets.guards import answer_again
from inductor_lab.widgets.ladder import low_level_panes
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.model import linked_document
from inductor_lab.widgets.pack import packed, unpacked
from inductor_lab.widgets.page import connection_script, style, widget_script
from inductor_lab.widgets.plain import STYLE, plain_document
from inductor_lab.widgets.plots import static_pictures

if TYPE_CHECKING:
    from inductor_lab.compilation import Compilation

KEPT = 16
"""So many explorers of a session can be asked; older ones let go of their tensors."""

LISTS = ("forbid", "force", "fusion_off", "rewrites_off")
VALUES = ("memory_budget", "fusion")


class Connection(anywidget.AnyWidget):
    """A widget without a view that answers the explorer drawn under the same `channel`."""

    _esm = connection_script()
    channel = traitlets.Unicode().tag(sync=True)
    _open: ClassVar[deque[Connection]] = deque()

    def __init__(self, compilation: Compilation, links: Links, **traits: Any) -> None:
        super().__init__(channel=secrets.token_hex(6), **traits)
        self._compilation = compilation
        self._links = links
        self.on_msg(self._answer)
        self._open.append(self)
        while len(self._open) > KEPT:
            self._open.popleft().close()

    def _answer(self, _widget: Any, request: Any, _buffers: Any) -> None:
        try:
            answer = self._made(request)
        except LabError as error:
            answer = {"error": str(error)}
        except Exception as error:  # of the user's own function: shown there, not lost in a log
            answer = {"error": f"{type(error).__name__}: {error}"}
        self.send({"id": request.get("id"), **answer})

    def _made(self, request: Any) -> dict[str, Any]:
        if request.get("show") == "ladder":
            target = request["target"]
            panes = low_level_panes(self._compilation, target, False, self._links)
            return {"title": f"ladder {target}", "panes": panes}
        if request.get("show") == "assembly":
            panes = low_level_panes(self._compilation, None, True, self._links)
            return {"title": "assembly", "panes": panes}
        if request.get("show") == "again":
            return answer_again(self._compilation, request["edits"], self._links)
        if request.get("show") == "kernel":
            asked = (request["kernel"], request["text"])
            tried = try_kernel(self._compilation, *asked, part=request["part"])
            return {"verdict": str(tried), "right": tried.right, "errors": list(tried.errors)}
        return what_if(self._compilation, request.get("changes", {}), self._links)


class Explorer(Connection):
    """The whole explorer as a widget; `Compilation.widget()` makes one."""

    _esm = widget_script()
    _css = style()
    document = traitlets.Dict(help="packed, see pack.py").tag(sync=True)

    @classmethod
    def of(cls, compilation: Compilation) -> Explorer:
        shown, links = linked_document(compilation)
        return cls(compilation, links, document=packed(shown))


def what_if(compilation: Compilation, changes: Any, links: Links) -> dict[str, Any]:
    """Compile again with what the page asks for; the panes and a sentence to show."""
    asked: dict[str, Any] = {}
    for name in LISTS:
        asked[name] = [tuple(x) if isinstance(x, list) else x for x in changes.get(name, ())]
    for name in VALUES:
        asked[name] = changes.get(name)
    comparison = compilation.compare(compilation.what_if(**asked))
    return {"verdict": verdict(comparison), "panes": comparison_panes(comparison, links)}


def bundle(compilation: Compilation) -> dict[str, Any]:
    """The widget and, beside it, inert HTML to be saved."""
    widget = Explorer.of(compilation)
    view: tuple[dict[str, Any], Any] = widget._repr_mimebundle_()
    inert = plain_document(unpacked(widget.document), static_pictures(compilation))
    html = f"<style>{STYLE}</style>{inert}"
    return {**view[0], "text/plain": repr(compilation), "text/html": html}


def close_all() -> None:
    """Close every connection: their explorers stay, with nobody to ask."""
    while Connection._open:
        Connection._open.popleft().close()
