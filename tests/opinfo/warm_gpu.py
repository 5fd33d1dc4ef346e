"""As `warm.py`, for work on a GPU.

Nothing here may ask CUDA for anything, or a process that is forked could not use the GPU.  So none
is to be seen while modules are imported, and torch looks for one without CUDA
(PYTORCH_NVML_BASED_CUDA_CHECK, see `tests/processes.py`).
"""

from __future__ import annotations

import os

from tests.opinfo import warm

__all__ = ["warm"]

del os.environ["CUDA_VISIBLE_DEVICES"]
