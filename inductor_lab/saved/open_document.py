"""Open a saved compilation, by our compiler or by stock `torch.compile`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inductor_lab.saved import saving
from inductor_lab.stock.stock_compilation import StockCompilation


def open_document(path: Path, kind: type) -> Any:
    """Read a file; compilations by our compiler become instances of `kind`."""
    return saving.load(path, kind, StockCompilation)
