"""Each compile in the tests is one: what an earlier run left on disk would answer in the compiler's
place (`end_to_end/test_warm_start` tests that)."""

from __future__ import annotations

import torch._functorch.config


def compile_always() -> None:
    """For the rest of this process."""
    torch._functorch.config.enable_autograd_cache = False
