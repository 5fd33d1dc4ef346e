"""The timeline of a running block, in the output of its cell."""

from __future__ import annotations

import time

from IPython.display import HTML, display

from inductor_lab.debug.recompiles.watch_recompiles import Recompiles
from inductor_lab.widgets.bench_live import RunningBenchmark
from inductor_lab.widgets.recompiles import recompiles_html, recompiles_tree

INTERVAL = 0.2
"""Minimum number of seconds between two updates; at least ten times the time of one update."""


class LiveRecompiles:
    """Redraws the timeline while the block runs; the final output is static HTML."""

    def __init__(self, seen: Recompiles) -> None:
        self._seen = seen
        self._next = 0.0
        self._widget = RunningBenchmark(tree=recompiles_tree(seen))
        self._handle = display(self._widget, display_id=True)

    def update(self) -> None:
        """Update the timeline: a call has begun."""
        now = time.perf_counter()
        if now < self._next:
            return
        self._widget.tree = recompiles_tree(self._seen)
        done = time.perf_counter()
        self._next = done + max(INTERVAL, 10 * (done - now))

    def finished(self) -> None:
        """Draw the final picture, which stays in the notebook."""
        self._handle.update(HTML(recompiles_html(self._seen)))
        self._widget.close()
