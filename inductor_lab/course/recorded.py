"""Ratios that the chapters show where a machine is too noisy to measure its own.

Only ratios whose interval excludes 1 are recorded.  `python -m benchmarks.chapters` prints them.
"""

from __future__ import annotations

from inductor_lab.course.measured import Recorded

_EPYC = "AMD EPYC, 1 thread, torch 2.13.0, 2026-11-28"
_XEON = "Intel Xeon, 2 cores, torch 2.13.0, 2026-11-22"

TRANSPOSE = Recorded(_EPYC, {"tiles": 2.86, "transpose": 1.71, "all": 2.56})
"""Chapter 6: `x.T + x` of 1,024 x 1,024 without a pass."""

SOFTMAX = Recorded(_EPYC, {"lanes": 1.14})
"""Chapter 6: `softmax(x @ w)`, (512, 128) and (128, 512), without a pass."""

FUSION = Recorded("AMD EPYC, 2 threads, torch 2.13.0, 2026-11-28", {"naive": 2.82})
"""Chapter 8: `((x + 1) * 2).sin()` of four million floats without fusion."""

LESS_WORK = Recorded(_EPYC, {"eager": 1.73})
"""Chapter 11: `softmax(x @ w)` of 512 x 512 against half of the sum of its product."""

ONE_NUMBER = Recorded(_XEON, {"eager": 1.0, "inductor": 0.22, "inductor_lab": 0.34})
"""Chapter 11: speedups over eager for sin + cos of a scalar, from benchmarks/RESULTS.md."""

FOUR_PROGRAMS = Recorded(_XEON, {"one number": 0.34, "NumPy": 43.9})
"""Chapter 11: speedups of ours over eager, from benchmarks/RESULTS.md."""
