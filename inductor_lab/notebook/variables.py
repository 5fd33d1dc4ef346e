"""Delete compiled functions before a notebook's variables: at `%reset`, and when IPython ends.

TorchDynamo adds its own variables to the notebook's, such as `__builtins_dict___1`, and deletes
them together with the compiled code.  If such a variable is already deleted, it prints a KeyError.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch


def compiled_functions_go_first(shell: Any = None) -> None:
    """Delete compiled functions first in this IPython shell; default: the running shell, if any."""
    shell = shell or getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    clear = getattr(shell, "reset", None)
    if clear is None or hasattr(clear, "__wrapped__"):
        return

    @functools.wraps(clear)
    def reset(*args: Any, **kwargs: Any) -> Any:
        torch.compiler.reset()
        return clear(*args, **kwargs)

    shell.reset = reset
