"""For cells run in the wrong order: a hint below Python's NameError."""

from __future__ import annotations

import sys
from typing import Any

from inductor_lab.course.language import say


def watch() -> None:
    """Add the hint to the errors of the current notebook, if there is one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and _tell not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", _tell)


def _tell(result: Any) -> None:
    error = result.error_in_exec
    if isinstance(error, NameError) and error.name:
        print(hint(error.name))


def hint(name: str) -> str:
    """What to do about a name that is not there."""
    return say(
        "`{name}` is not defined: run the cells above, from the first one on, or check the name",
        name=name,
    )
