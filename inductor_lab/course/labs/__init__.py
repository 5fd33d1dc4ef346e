"""The exercises, a module or two for each lab; importing them registers them.

Without torch, as in a browser, there are those that need no compile, or a saved one.
"""

from importlib.util import find_spec

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
        scheduler,
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
        "scheduler",
        "timing",
        "whole",
    ]
elif find_spec("numpy") is not None:  # a viewer may have neither
    from inductor_lab.course.labs import saved_partitioner, scheduler

    __all__ += ["saved_partitioner", "scheduler"]
