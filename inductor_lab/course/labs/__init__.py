"""The exercises, a module or two for each lab; importing them registers them.

Without torch, as in a browser, there are those that need no compiler.
"""

from inductor_lab.compiler.torch_door.torch_types import INSTALLED
from inductor_lab.course.labs import fusion, gradients, memory

__all__ = ["fusion", "gradients", "memory"]

if INSTALLED:
    from inductor_lab.course.labs import (
        capture,
        cpp,
        debugging,
        decompositions,
        dynamic,
        gpu,
        ladder,
        loops,
        measuring,
        partitioner,
        ranks,
        timing,
        whole,
    )

    __all__ += [
        "capture",
        "cpp",
        "debugging",
        "decompositions",
        "dynamic",
        "gpu",
        "ladder",
        "loops",
        "measuring",
        "partitioner",
        "ranks",
        "timing",
        "whole",
    ]
