"""What stock TorchInductor keeps between compilations."""

from __future__ import annotations

import sys


def forget() -> None:
    """Empty its caches in memory, so that the next compilation looks on disk.

    Nothing to do where nobody has used it: then it is not even imported.
    """
    if "torch._inductor.utils" in sys.modules:
        from torch._inductor.utils import clear_caches

        clear_caches()
