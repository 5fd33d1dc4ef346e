"""The caches of stock TorchInductor in memory."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def forget() -> None:
    """Clear the caches in memory, so that the next compilation reads the caches on disk.

    If stock has not been used, it is not imported.
    """
    if "torch._inductor.utils" in sys.modules:
        from torch._inductor.utils import clear_caches

        clear_caches()


def use_own_folder() -> None:
    """Write precompiled headers below this process's temporary folder.

    Stock decides that folder when it is imported: in a fork it is the one of the parent process.
    """
    codecache = sys.modules.get("torch._inductor.codecache")
    for name in ("_HEADER_LOCK_DIR", "_HEADER_DIR"):
        known = Path(getattr(codecache, name, ""))
        for above in (known, *known.parents):
            if above.name.startswith("torchinductor_"):
                own = Path(tempfile.gettempdir(), above.name, known.relative_to(above))
                setattr(codecache, name, str(own))
