"""`torch` for the modules that a viewer of saved files needs: they hold, read or print data.

It is torch itself.  Without torch it has stand-ins for the types of data (`without_torch.py`), and
everything else in it raises NeedsTorch.  Modules that need no more import it in place of torch:

    from inductor_lab.compiler.torch_door.torch_types import torch
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from inductor_lab.compiler.base.errors import NeedsTorch

INSTALLED = find_spec("torch") is not None
"""Is torch installed?  Without it, saved files can be opened, and nothing can be compiled."""


class StandIn:
    """In place of torch, if it is not installed: the types of data and no function."""

    def __getattr__(self, name: str) -> Any:
        from inductor_lab.compiler.torch_door import without_torch

        if name.startswith("__"):
            raise AttributeError(name)
        if name not in without_torch.TYPES:
            raise NeedsTorch
        return without_torch.TYPES[name]


if TYPE_CHECKING or INSTALLED:
    import torch as torch
else:
    torch = StandIn()

VERSION = str(torch.__version__) if INSTALLED else ""
"""The version of torch; "" without it."""
