"""The explorer as data for our JupyterLab extension, which draws it without this package.

    {"format": "inductor_lab explorer", "version": 1, "gzip": "H4sIAAAA..."}

`gzip` is the packed document (`pack.py`), compressed: Jupyter writes each number of a JSON output
into a line of its own.  `javascript/mime.js` reads it.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

from inductor_lab.compiler.records import Record
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.widgets.model import VERSION, document
from inductor_lab.widgets.pack import packed

MIME_TYPE = "application/vnd.inductor-lab+json"
FORMAT = "inductor_lab explorer"


def explorer_data(compilation: Record | StockCompilation) -> dict[str, Any]:
    """The explorer of a compilation, as the value of the MIME type."""
    return packed_data(packed(document(compilation)))


def packed_data(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a packed document."""
    text = json.dumps(shown, separators=(",", ":"))
    data = base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")
    return {"format": FORMAT, "version": VERSION, "gzip": data}
