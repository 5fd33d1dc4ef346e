"""Which parts of a call are replayed as CUDA graphs, as a view of the pane of times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from inductor_lab.debug.explore.cuda_graph_report import cuda_graphs, is_on_gpu
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.shapes import View
from inductor_lab.widgets.views import row, table_view

if TYPE_CHECKING:
    from inductor_lab.compiler.records import Record
    from inductor_lab.stock.stock_compilation import StockCompilation

NOTE = "A part that is replayed launches all its kernels at once."


def cuda_graph_views(compilation: Record | StockCompilation) -> Iterator[View]:
    """The reason for each part that is not replayed; nothing if no part is on a GPU."""
    if not any(map(is_on_gpu, compilation.parts)):
        return
    rows = [
        row((part.part, say("replayed" if part.replayed else "not replayed"),
             translate(part.reason)),
            mark="ok" if part.replayed else "no")
        for part in cuda_graphs(compilation).parts
    ]  # fmt: skip
    yield table_view("CUDA graphs", ("part", "decision", "reason"), rows, NOTE)
