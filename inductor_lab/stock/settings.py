"""Settings of TorchInductor that also apply to our compiler."""

from __future__ import annotations

import sys
from dataclasses import replace

from inductor_lab.compiler.base.options import Options


def with_settings(options: Options) -> Options:
    """The options with the user's settings for all compilers: `fallback_random`.

    Nothing is imported: if the user has changed a setting, its module is already imported.
    """
    config = sys.modules.get("torch._inductor.config")
    wanted = bool(config is not None and getattr(config, "fallback_random", False))
    return replace(options, fallback_random=True) if wanted else options
