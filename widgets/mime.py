"""The explorer as data for our JupyterLab extension, which draws it without this package.

    {"format": "inductor_lab explorer", "version": 2, "gzip": "H4sIAAAA..."}

`gzip` is the document (`model.py`), compressed: Jupyter writes each number of a JSON output into a
line of its own.  For several explorers in tabs it is a list.  `javascript/mime.js` reads it.
"""

from __future__ import annotations

from typing import Any

from inductor_lab.compiler.records import Record
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.widgets.compressed import zipped
from inductor_lab.widgets.model import VERSION, document

MIME_TYPE = "application/vnd.inductor-lab+json"
FORMAT = "inductor_lab explorer"


def explorer_data(compilation: Record | StockCompilation) -> dict[str, Any]:
    """The explorer of a compilation, as the value of the MIME type."""
    return mime_data(zipped(document(compilation)))


def mime_data(zipped: str | list[str]) -> dict[str, Any]:
    """The same for a compressed document, or for several."""
    return {"format": FORMAT, "version": VERSION, "gzip": zipped}
