"""As `warm.py`, for work on a GPU."""

from __future__ import annotations

from tests.fuzz import check
from tests.opinfo import warm_gpu

__all__ = ["check", "warm_gpu"]
