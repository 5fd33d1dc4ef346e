"""The timeline of a block that runs, in the output of its cell."""

from __future__ import annotations

import time

from IPython.display import HTML, display

from inductor_lab.debug.recompiles.watch_recompiles import Recompiles
from inductor_lab.widgets.bench_live import RunningBenchmark
from inductor_lab.widgets.recompiles import recompiles_html, recompiles_tree

SELDOM = 0.2
"""Seconds between two pictures at least, and ten times as long as one takes to draw."""


class LiveRecompiles:
    """Draws what is known so far, again and again; what is left when the block ends is inert."""

    def __init__(self, seen: Recompiles) -> None:
        self._seen = seen
        self._next = 0.0
        self._widget = RunningBenchmark(tree=recompiles_tree(seen))
        self._handle = display(self._widget, display_id=True)

    def told(self) -> None:
        """A call has begun."""
        now = time.perf_counter()
        if now < self._next:
            return
        self._widget.tree = recompiles_tree(self._seen)
        done = time.perf_counter()
        self._next = done + max(SELDOM, 10 * (done - now))

    def finished(self) -> None:
        """The picture that stays in the notebook."""
        self._handle.update(HTML(recompiles_html(self._seen)))
        self._widget.close()
