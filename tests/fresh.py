"""Tests neither use nor touch what a user has on disk, and each compile in them is one: what an
earlier run left there would answer in the compiler's place (`end_to_end/test_warm_start` tests
that)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

KEPT = "INDUCTOR_LAB_TEST_CACHES"
"""The variable that names another folder: `.ci/run` keeps what was compiled where the machine lives
on.  A library is found by its text, flags and compiler only."""

FOLDER = Path(os.environ.get(KEPT) or Path(__file__).parents[1] / "build" / "test-caches")
CACHES = {
    "INDUCTOR_LAB_CACHE_DIR": "libraries",
    "TORCHINDUCTOR_CACHE_DIR": "graphs",
    "TRITON_CACHE_DIR": "triton",
}


def own_caches() -> None:
    """For the rest of this process, and for those that it starts."""
    for variable, name in CACHES.items():
        os.environ[variable] = str(FOLDER / name)


def check_bounds_always() -> None:
    """For the rest of this process, unless a compile says otherwise."""
    from inductor_lab.compiler.base.options import Options

    own = Options.__init__

    def checked(self: Options, *given: Any, **named: Any) -> None:
        own(self, *given, **{"check_bounds": True, **named})

    Options.__init__ = checked  # type: ignore[method-assign]


def compile_always() -> None:
    """For the rest of this process, with which eager mode is compared: its functions are ready."""
    import torch._dynamo.guards
    import torch._functorch.config

    from inductor_lab.debug.compare.vector_math import settle_vector_math

    settle_vector_math()
    torch._functorch.config.enable_autograd_cache = False
    torch._dynamo.guards.profile_guard_manager = _not_timed  # 30 ms a compile, for torch's log


def _not_timed(*_: Any) -> float:
    return 0.0
