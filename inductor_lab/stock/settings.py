"""Settings of TorchInductor that hold for our compiler too."""

from __future__ import annotations

import sys
from dataclasses import replace

from inductor_lab.compiler.base.options import Options


def with_settings(options: Options) -> Options:
    """The options, with what the user has set for all compilers: `fallback_random`.

    Nothing is imported for it: a setting that somebody has changed is in a module that is there.
    """
    config = sys.modules.get("torch._inductor.config")
    wanted = bool(config is not None and getattr(config, "fallback_random", False))
    return replace(options, fallback_random=True) if wanted else options
