"""The process that converts a file for the JupyterLab extension (`server_extension.py` starts it).

    python -P -m inductor_lab.notebook.open_saved < trig.lab.json

It prints the explorer as data (`widgets/mime.py`), or `{"error": "..."}`.  It makes values of our
own types and draws them (`saved/saving.py`), so it runs nothing of the file.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import Any

from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.base.display import draw
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.debug.untrusted.confine import Limits, limit
from inductor_lab.saved import saving
from inductor_lab.stock.stock_compilation import StockCompilation

NAME = "This file"
LIMITS = Limits(seconds=60.0, memory=4 << 30)


def explorer_of(text: bytes) -> dict[str, Any]:
    """The explorer of a saved compilation as data, or the error as a text."""
    try:
        found = saving.read(text, NAME, Compilation, StockCompilation)
        return dict(draw("explorer_data", found))
    except LabError as error:
        return {"error": str(error)}
    except Exception as error:  # a document whose parts do not fit together
        return {"error": f"{NAME} is damaged: {type(error).__name__}: {error}"}


def main() -> None:
    limit(LIMITS)
    with redirect_stdout(sys.stderr):  # for what a library may print
        answer = explorer_of(sys.stdin.buffer.read())
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
