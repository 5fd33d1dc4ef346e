"""Imported once by the server process, so that the processes it forks begin with warm caches.

torch, sympy and the compiler import much at their first use: two seconds, which each op would pay.
"""

from __future__ import annotations

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a process that was forked cannot use a GPU

from tests.opinfo import roads
from tests.opinfo.check import Settings, all_samples

for dynamic in (False, True):
    _settings = Settings(stage="schedule", dynamic=dynamic, samples=1)
    (_sample,) = all_samples("softmax", _settings)
    roads.short(_sample, roads.Seen(), _settings.stage, _settings.options)(*_sample.fresh())
