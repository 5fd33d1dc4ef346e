"""Where this Python process runs: in a live notebook, in a notebook for widgets, or elsewhere.

All output is readable without widgets.  `anywidget` is needed only for live explorers, which send
requests to this process.  If it is missing, a warning says so and the output stays readable.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inductor_lab.compiler.base.errors import MissingPackage

if TYPE_CHECKING:
    from inductor_lab.api.compilation import Compilation
    from inductor_lab.debug.explore.steps import Steps
    from inductor_lab.debug.recompiles.watch_recompiles import Recompiles
    from inductor_lab.stock.stock_compilation import StockCompilation
    from inductor_lab.widgets.links import Links
    from inductor_lab.widgets.live import Connection


def in_kernel() -> bool:
    """Is this a Jupyter kernel (not a terminal, not a script)?"""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


def wants_view() -> bool:
    """Does this notebook isolate HTML outputs from widgets?"""
    if "google.colab" in sys.modules:
        return True
    shell = sys.modules["IPython"].get_ipython()
    return "__vsc_ipynb_file__" in shell.user_ns


def in_notebook(module: str) -> Any:
    """A module of widgets; None outside of notebooks, or (with a warning) without its library."""
    if not in_kernel():
        return None
    try:
        return importlib.import_module(f"inductor_lab.widgets.{module}")
    except ModuleNotFoundError as error:
        warnings.warn(f"the explorer is not live: {MissingPackage(str(error.name))}", stacklevel=2)
        return None


def connect(compilation: Compilation | StockCompilation, links: Links) -> Connection | None:
    """A connection for an explorer in HTML; None if it cannot be live."""
    if compilation.call is None or not in_kernel() or wants_view():
        return None
    live = in_notebook("live")
    return None if live is None else live.Connection(compilation, links)


def view_bundle(compilation: Compilation) -> dict[str, Any] | None:
    """For front ends where HTML cannot reach the kernel: the widget, and static HTML to save."""
    live = in_notebook("live") if compilation.call is not None else None
    return None if live is None else live.bundle(compilation)


def live_benchmark() -> Any:
    """The view of a running benchmark in the running cell; None outside of notebooks."""
    found = in_notebook("bench_live")
    return None if found is None else found.LiveProgress()


def live_recompiles(seen: Recompiles) -> Any:
    """The timeline of a block while it runs; None outside of notebooks."""
    found = in_notebook("recompiles_live")
    return None if found is None else found.LiveRecompiles(seen)


def steps_bundle(steps: Steps) -> dict[str, Any] | None:
    """The stepper with buttons; None outside of notebooks."""
    found = in_notebook("debug_live")
    return None if found is None else found.bundle(steps, wants_view())


def close_explorers() -> None:
    """Release the compilations that live explorers hold."""
    live = sys.modules.get("inductor_lab.widgets.live")
    if live is not None:
        live.close_all()


@dataclass(frozen=True)
class Page:
    """HTML as the result of a cell."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


def marimo_output(value: Any) -> Any:
    """The widget of a value; without the library of widgets its HTML, with a warning."""
    try:
        return value.widget()
    except MissingPackage as error:
        warnings.warn(f"the output is not live: {error}", stacklevel=2)
        return Page(value._repr_html_() or "")
