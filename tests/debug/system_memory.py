"""The peak memory of a step as the operating system counts it, without a profiler and hooks.

Every tensor gets pages of its own, which return to the system when it is freed.
"""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import Any

import torch

import inductor_lab as lab
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.isolate import Tell, run_isolated
from inductor_lab.debug.memory.measure import Step
from inductor_lab.debug.memory.run_step import run_backward
from inductor_lab.debug.resident_memory import ResidentPeak

M_MMAP_THRESHOLD, M_TRIM_THRESHOLD = -3, -1


def can_count() -> bool:
    return Path("/proc/self/clear_refs").exists() and hasattr(ctypes.CDLL(None), "mallopt")


def peak_increase(who: str, fn: Any, args: tuple[Any, ...], own_backward: bool) -> int:
    """By how many bytes a step increases the resident size of its process."""

    def work(tell: Tell) -> int:
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 16)
        libc.mallopt(M_TRIM_THRESHOLD, 0)
        kept = Step(fn, args, {}).kept()
        if who == "eager":
            call, first = fn, fn(*args)
        else:
            made = lab.inspect(fn, *args, compiler=who)
            call, first = made.compiled, made.result
        if not own_backward:
            run_backward(first)
        kept.put_back()
        del kept
        for leaf in pytree.tree_leaves(first):  # libraries have made their memory in this call
            if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None:
                leaf.detach_()
        del first
        lab.release_memory()
        gc.collect()
        libc.malloc_trim(0)
        peak = ResidentPeak()
        result = call(*args)
        if not own_backward:
            run_backward(result)
        return peak.bytes() or 0

    ended = run_isolated(work, 600)
    assert ended.how == "returned", (ended, ended.printed)
    return int(ended.value)
