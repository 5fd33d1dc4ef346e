"""Count calls that run in eager mode because the recompile limit was reached.

Torch reports nothing about such a call: Python runs the original function.  So once there is such
code, Python's profiling hook (`sys.setprofile`) counts each call.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import CodeType, FrameType
from typing import Any

import torch


class Uncompiled:
    """Counts runs of the code objects in `runs`.

    Covers the threads in which a call was refused, and threads that start later.  If the user has
    installed a profiler, it stays installed and nothing is counted.
    """

    def __init__(self) -> None:
        self.runs: Counter[CodeType] = Counter()
        self._over = False
        self._hook = torch.compiler.disable(self._called)

    def watch(self, code: CodeType) -> None:
        """Count runs of `code`, including the call that has just been refused."""
        self.runs.setdefault(code, 0)
        if sys.getprofile() is None:
            sys.setprofile(self._hook)
            threading.setprofile(self._hook)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if self._over:
            sys.setprofile(None)
        elif event == "call" and frame.f_code in self.runs:
            self.runs[frame.f_code] += 1

    def close(self) -> None:
        """Stop profiling; the hook of another thread is removed at its next event."""
        self._over = True
        for get, put in ((sys.getprofile, sys.setprofile),
                         (threading.getprofile, threading.setprofile)):  # fmt: skip
            if get() is self._hook:
                put(None)
