"""Run stock TorchInductor in a fork."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def without_workers() -> None:
    """Let stock compile its kernels in this process, one after another.

    Call this in a fork, in the thread that compiles.  A fork inherits stock's pool of threads, but
    not the threads, so a kernel that is given to the pool is never compiled.
    """
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # read when stock is imported
    if config := sys.modules.get("torch._inductor.config"):
        config.compile_threads = 1  # type: ignore[attr-defined]
    if pools := sys.modules.get("torch._inductor.async_compile"):
        with suppress(AttributeError):  # a torch without this pool
            pools.AsyncCompile.pool.cache_clear()
