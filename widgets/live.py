"""The live explorer: it sends "what if" requests to the Python process that compiled its code.

    JupyterLab, Notebook    the HTML output draws the explorer; a `Connection`, a widget without a
                            view, connects it to the kernel.  In a notebook opened later the same
                            explorer is shown, but it is not live.
    VS Code, Colab, marimo  `Explorer`, a widget that draws itself, with static HTML as a fallback;
                            `Compilation.widget()` makes one for any front end

Both use the same messages: the page sends `{id, changes}`, and `show` for output other than a
comparison; Python answers `{id, error}`, or

    show                                       answer
                                               {id, verdict, panes}
    "ladder" (of `target`), "assembly"         {id, title, panes}, compiled with the `changes`
    "bench"                                    {id, title, panes}, measured with the `changes`
    "memory"                                   {id, panes}: of the document, with the `changes`
    "again" (with `edits` of the inputs)       {id, verdict, entry, call}
    "guards" (with `edits` of the inputs)      {id, hit, reasons}
    "kernel" (with its `part` and new `text`)  {id, verdict, right, errors}
    "stop"                                     {id}; the edited kernel that runs is ended

A compilation by stock answers "memory", "guards" and "again".
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import anywidget
import traitlets

from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.base.thread_state import ThreadState
from inductor_lab.debug.explore.edit_kernel import EditedKernel, Refused, edited_part, run_edit
from inductor_lab.debug.isolate import can_fork
from inductor_lab.notebook.language import say
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.widgets.bench_pane import bench_pane, benched
from inductor_lab.widgets.compare import comparison_panes, verdict
from inductor_lab.widgets.compressed import unzipped, zipped
from inductor_lab.widgets.guards_live import answer_again, answer_prediction
from inductor_lab.widgets.ladder import low_level_panes
from inductor_lab.widgets.links import Links
from inductor_lab.widgets.memory_pane import memory_pane
from inductor_lab.widgets.model import linked_document
from inductor_lab.widgets.page import connection_script, style, widget_script
from inductor_lab.widgets.places import Places
from inductor_lab.widgets.plain import STYLE, plain_document
from inductor_lab.widgets.shapes import Document
from inductor_lab.widgets.static_pictures import static_pictures

if TYPE_CHECKING:
    from inductor_lab.api.compilation import Compilation

KEPT = 16
"""Maximum number of live explorers; older ones are closed and release their tensors."""

LISTS = ("forbid", "force", "fusion_off", "rewrites_off")
VALUES = ("memory_budget", "fusion")


class Connection(anywidget.AnyWidget):
    """A widget without a view that answers the explorer drawn under the same `channel`."""

    _esm = connection_script()
    channel = traitlets.Unicode().tag(sync=True)
    _open: ClassVar[deque[Connection]] = deque()

    def __init__(
        self, compilation: Compilation | StockCompilation, links: Links, **traits: Any
    ) -> None:
        super().__init__(channel=secrets.token_hex(6), **traits)
        self._compilation = compilation
        self._links = links
        self._changed: tuple[str, Any] = (json.dumps({}), compilation)
        self._stop: Callable[[], None] = lambda: None
        self._settings, self._thread = ThreadState.now(), threading.get_ident()
        self.on_msg(self._answer)
        self._open.append(self)
        while len(self._open) > KEPT:
            self._open.popleft().close()

    def _answer(self, _widget: Any, request: Any, _buffers: Any) -> None:
        made = partial(self._with_settings, partial(self._made, request))
        if request.get("show") == "kernel":
            compiled = partial(self._with_settings, partial(self._compiled_edit, request))
            made = partial(self._with_settings, partial(self._ran_edit, _answer_of(compiled)))
            with suppress(RuntimeError):  # there is no event loop outside of notebooks
                loop = asyncio.get_running_loop()
                self._editing = loop.create_task(self._answer_later(request, made))
                return
        self.send({"id": request.get("id"), **_answer_of(made)})

    async def _answer_later(self, request: Any, made: Callable[[], dict[str, Any]]) -> None:
        """Answer when a thread has made the answer; until then "stop" can be answered."""
        self.send({"id": request.get("id"), **await asyncio.to_thread(_answer_of, made)})

    def _with_settings(self, made: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Make the answer with the torch settings of the user's thread: JupyterLab lets another
        thread answer (a subshell), so that a cell that runs does not block the explorer."""
        if threading.get_ident() == self._thread:
            return made()
        return self._settings.copy().run(made)

    def _compiled_edit(self, request: Any) -> dict[str, Any]:
        """The part with an edited kernel; an answer if it does not compile."""
        kernel, part, compilation = request["kernel"], request["part"], self._compilation
        assert not isinstance(compilation, StockCompilation), "its page has no editor"
        try:
            return {"attempt": edited_part(compilation, kernel, request["text"], part)}
        except Refused as refused:
            return _edit_answer(EditedKernel(kernel, part, errors=refused.errors))

    def _ran_edit(self, found: dict[str, Any]) -> dict[str, Any]:
        if "attempt" not in found:
            return found
        return _edit_answer(run_edit(found["attempt"], started=self._remember_stop))

    def _remember_stop(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def _made(self, request: Any) -> dict[str, Any]:
        show, compilation = request.get("show"), self._compilation
        if show == "stop":
            self._stop()
            return {}
        if show == "guards":
            return answer_prediction(compilation, request["edits"])
        if show == "again":
            return answer_again(compilation, request["edits"], self._links)
        if isinstance(compilation, StockCompilation):
            return memory_answer(compilation, self._links)
        changes = request.get("changes") or {}
        changed = self._with(compilation, changes)
        if show == "memory":
            return memory_answer(changed, self._links)
        if show == "bench":
            panes = {"bench": bench_pane(benched(changed), changes)}
            if not can_fork():  # the benchmark ran in this process and reset torch.compile
                self._compilation = compilation.what_if()
            return {"title": "bench", "panes": panes}
        if show in ("ladder", "assembly"):
            return lower_answer(changed, request.get("target"), changes, self._links)
        comparison = compilation.compare(changed)
        panes = comparison_panes(comparison, self._links)
        return {"verdict": verdict(comparison), "panes": panes}

    def _with(self, compilation: Compilation, changes: Any) -> Compilation:
        """The compilation with the requested changes; the last one is cached."""
        asked = json.dumps(changes, sort_keys=True)
        if asked != self._changed[0]:
            self._changed = (asked, changed_by(compilation, changes))
        changed: Compilation = self._changed[1]
        return changed


class Explorer(Connection):
    """The whole explorer as a widget; `Compilation.widget()` makes one.

    Programs set and observe `selected` and `view`; `value` is the selection (docs/notebooks.md).
    """

    _esm = widget_script()
    _css = style()
    document = traitlets.Unicode(help="see compressed.py").tag(sync=True)
    selected = traitlets.Dict(help="see places.py").tag(sync=True)
    view = traitlets.Unicode(help="the stage with the focus").tag(sync=True)
    value = traitlets.Dict(read_only=True).tag(sync=True)

    def __init__(
        self, compilation: Compilation | StockCompilation, shown: Document, links: Links
    ) -> None:
        self._places = Places(shown, links)
        super().__init__(compilation, links, document=zipped(shown), view=shown["open"][0])

    @classmethod
    def of(cls, compilation: Compilation | StockCompilation) -> Explorer:
        return cls(compilation, *linked_document(compilation))

    @traitlets.validate("view")
    def _known_view(self, proposal: Any) -> str:
        return self._places.view(proposal["value"])

    @traitlets.validate("selected")
    def _known_selection(self, proposal: Any) -> dict[str, Any]:
        return self._places.selected(proposal["value"], self.view)

    @traitlets.observe("selected")
    def _set_value(self, change: Any) -> None:
        self.set_trait("value", change["new"])

    def _made(self, request: Any) -> dict[str, Any]:
        made = super()._made(request)
        self._places.add(made.get("panes", {}))
        return made


def _answer_of(made: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer, or the error as an answer."""
    try:
        return made()
    except LabError as error:
        return {"error": str(error)}
    except KeyboardInterrupt:  # the notebook's own stop button
        return {"error": say("Stopped.")}
    except Exception as error:  # of the user's function: shown in the page, not only logged
        return {"error": f"{type(error).__name__}: {error}"}


def _edit_answer(tried: EditedKernel) -> dict[str, Any]:
    return {"verdict": str(tried), "right": tried.right, "errors": list(tried.errors)}


def memory_answer(compilation: Compilation | StockCompilation, links: Links) -> dict[str, Any]:
    """The measured memory of a step, which replaces a pane of the document."""
    return {"panes": {"step_memory": memory_pane(compilation, links)}}


def lower_answer(
    compilation: Compilation, target: str | None, changes: Any, links: Links
) -> dict[str, Any]:
    """The ladder for a `target`, or assembly; a note marks panes of changed code."""
    found = low_level_panes(compilation, target, target is None, links)
    note = {"note": say("With the changes selected above.")} if changes else {}
    panes = {name: {**shown, **note} for name, shown in found.items()}
    return {"title": f"ladder {target}" if target else "assembly", "panes": panes}


def changed_by(compilation: Compilation, changes: Any) -> Compilation:
    """Recompile with the requested changes; without changes, with the original options."""
    asked: dict[str, Any] = {}
    for name in LISTS:
        asked[name] = [tuple(x) if isinstance(x, list) else x for x in changes.get(name, ())]
    for name in VALUES:
        asked[name] = changes.get(name)
    return compilation.what_if(**asked)


def bundle(compilation: Compilation) -> dict[str, Any]:
    """The widget and static HTML, which a saved notebook shows."""
    widget = Explorer.of(compilation)
    view = widget._repr_mimebundle_() or ({}, {})
    inert = plain_document(unzipped(widget.document), static_pictures(compilation))
    html = f"<style>{STYLE}</style>{inert}"
    return {**view[0], "text/plain": repr(compilation), "text/html": html}


def close_all() -> None:
    """Close every connection; the explorers remain, but are not live."""
    while Connection._open:
        Connection._open.popleft().close()
