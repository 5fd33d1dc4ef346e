"""What is off because torch lacks a name that it needs, whatever the user has asked for."""

from __future__ import annotations

from dataclasses import replace

from inductor_lab.options import Options
from inductor_lab.torch_names import missing


def possible(options: Options) -> Options:
    """The options without the memory pool and packed weights, where this torch has no way."""
    return replace(
        options,
        memory_pool=0.0 if missing("memory pool") else options.memory_pool,
        pack_weights=options.pack_weights and not missing("packed weights"),
    )
