"""The exercises, a module or two for each lab; importing them registers them."""

from inductor_lab.course.labs import (
    capture,
    cpp,
    debugging,
    decompositions,
    dynamic,
    fusion,
    gpu,
    gradients,
    ladder,
    loops,
    measuring,
    memory,
    ranks,
    timing,
    whole,
)

__all__ = [
    "capture",
    "cpp",
    "debugging",
    "decompositions",
    "dynamic",
    "fusion",
    "gpu",
    "gradients",
    "ladder",
    "loops",
    "measuring",
    "memory",
    "ranks",
    "timing",
    "whole",
]
