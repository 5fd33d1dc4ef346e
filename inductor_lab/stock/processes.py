"""Stock TorchInductor where it may not start processes of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_one_process() -> Iterator[None]:
    """Compile kernels in this process, one after another: a fork has no helpers of its parent's."""
    try:
        from torch._inductor import config
    except ImportError:
        yield
        return
    with config.patch(compile_threads=1):
        yield
