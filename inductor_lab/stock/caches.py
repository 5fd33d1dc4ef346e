"""The caches of stock TorchInductor in memory."""

from __future__ import annotations

import sys


def forget() -> None:
    """Clear the caches in memory, so that the next compilation reads the caches on disk.

    If stock has not been used, it is not imported.
    """
    if "torch._inductor.utils" in sys.modules:
        from torch._inductor.utils import clear_caches

        clear_caches()
