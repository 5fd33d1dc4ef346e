"""Imported once by the server process; see `tests/opinfo/warm_gpu.py`."""

from __future__ import annotations

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""

from tests.models import compare, library
from tests.opinfo import warm_gpu

__all__ = ["compare", "library", "warm_gpu"]
