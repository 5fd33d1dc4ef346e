"""How often code runs in eager mode that TorchDynamo compiles no more, after too many versions.

Such a call leaves no trace of torch's: Python runs the function as it stands.  So, once there is
such code, Python's own profiling hook tells of each call.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import CodeType, FrameType
from typing import Any

import torch


class Uncompiled:
    """Counts runs of the code in `runs`, in threads that met it and those begun afterwards.

    A profiler of the user's stays where it is; then nothing is counted.
    """

    def __init__(self) -> None:
        self.runs: Counter[CodeType] = Counter()
        self._over = False
        self._hook = torch.compiler.disable(self._called)

    def watch(self, code: CodeType) -> None:
        """From now on; also the call that has just been refused."""
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
        """Nobody is profiled any more; a hook of another thread leaves at its next event."""
        self._over = True
        for get, put in ((sys.getprofile, sys.setprofile),
                         (threading.getprofile, threading.setprofile)):  # fmt: skip
            if get() is self._hook:
                put(None)
