"""The kernel that converts a file for the JupyterLab extension in JupyterLite, which has no server.

`javascript/kernel.js` starts it, and runs `display_explorer` with the text of a file.
"""

from __future__ import annotations

from IPython.display import display

from inductor_lab.notebook.language import language
from inductor_lab.notebook.open_saved import explorer_of
from inductor_lab.widgets.mime import MIME_TYPE


def display_explorer(text: str, spoken: str) -> None:
    """Display the explorer as data, or `{"error": "..."}`; "zh" makes it Chinese."""
    language("zh" if spoken == "zh" else "en")
    display({MIME_TYPE: explorer_of(text.encode())}, raw=True)
