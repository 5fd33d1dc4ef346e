"""The exercises, one module for each lab; importing them registers them."""

from inductor_lab.course.labs import (
    capture,
    cpp,
    debugging,
    decompositions,
    dynamic,
    fusion,
    gpu,
    gradients,
    loops,
    memory,
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
    "loops",
    "memory",
    "whole",
]
