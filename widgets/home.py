"""Where this Python runs: in a notebook that can ask it, in one that draws widgets, or elsewhere.

Everything that is drawn is readable without a widget.  So `anywidget` is needed where a notebook
shall ask this process, and only there; where it is missing, the cell says so and stays readable.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import TYPE_CHECKING, Any

from inductor_lab.compiler.base.errors import MissingPackage

if TYPE_CHECKING:
    from inductor_lab.api.compilation import Compilation
    from inductor_lab.debug.explore.steps import Steps
    from inductor_lab.debug.recompiles.watch_recompiles import Recompiles
    from inductor_lab.widgets.links import Links
    from inductor_lab.widgets.live import Connection


def in_kernel() -> bool:
    """Is this a Jupyter kernel (not a terminal, not a script)?"""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


def wants_view() -> bool:
    """Does this notebook keep HTML outputs apart from widgets?"""
    if "google.colab" in sys.modules:
        return True
    shell = sys.modules["IPython"].get_ipython()
    return "__vsc_ipynb_file__" in shell.user_ns


def in_notebook(module: str) -> Any:
    """A module of widgets; None where no notebook runs, or its library is missing (which is said).
    """
    if not in_kernel():
        return None
    try:
        return importlib.import_module(f"inductor_lab.widgets.{module}")
    except ModuleNotFoundError as error:
        warnings.warn(f"nothing here can be asked: {MissingPackage(str(error.name))}", stacklevel=2)
        return None


def connect(compilation: Compilation, links: Links) -> Connection | None:
    """A connection for an explorer in HTML; None where nobody could ask or answer."""
    if compilation.call is None or not in_kernel() or wants_view():
        return None
    live = in_notebook("live")
    return None if live is None else live.Connection(compilation, links)


def mime_bundle(compilation: Compilation) -> dict[str, Any] | None:
    """For homes where HTML cannot reach the kernel: the widget, and inert HTML to be saved."""
    if compilation.call is None or not in_kernel() or not wants_view():
        return None
    live = in_notebook("live")
    return None if live is None else live.bundle(compilation)


def live_benchmark() -> Any:
    """A view of a running benchmark in the cell that runs; None where there is no notebook."""
    found = in_notebook("bench_live")
    return None if found is None else found.LiveProgress()


def live_recompiles(seen: Recompiles) -> Any:
    """The timeline of a block while it runs; None where there is no notebook."""
    found = in_notebook("recompiles_live")
    return None if found is None else found.LiveRecompiles(seen)


def steps_bundle(steps: Steps) -> dict[str, Any] | None:
    """A call that is stepped through, with buttons; None where there is no notebook."""
    found = in_notebook("debug_live")
    return None if found is None else found.bundle(steps, wants_view())


def close_explorers() -> None:
    """Let go of the compilations that live explorers hold, if there are any."""
    live = sys.modules.get("inductor_lab.widgets.live")
    if live is not None:
        live.close_all()
