"""A notebook's variables go: at `%reset`, and when IPython ends.

TorchDynamo keeps variables of its own among them, such as `__builtins_dict___1`, and takes them
away when the code goes that it compiled; if they are gone by then, each prints a KeyError.  So
compiled functions go first.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch


def compiled_functions_go_first(shell: Any = None) -> None:
    """From now on, in this IPython shell; without one in that which runs here, if one does."""
    shell = shell or getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    clear = getattr(shell, "reset", None)
    if clear is None or hasattr(clear, "__wrapped__"):
        return

    @functools.wraps(clear)
    def reset(*args: Any, **kwargs: Any) -> Any:
        torch.compiler.reset()
        return clear(*args, **kwargs)

    shell.reset = reset
