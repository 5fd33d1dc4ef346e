"""Run stock TorchInductor without worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_one_process() -> Iterator[None]:
    """Compile kernels in this process, sequentially: a fork cannot use its parent's workers."""
    try:
        from torch._inductor import config
    except ImportError:
        yield
        return
    with config.patch(compile_threads=1):
        yield
