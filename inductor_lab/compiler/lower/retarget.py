"""Retarget a program to a device that this machine does not have: a CPU trace is compiled for a
GPU.

    buf0[i0] : f32 cpu      →      buf0[i0] : f32 cuda:0
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from inductor_lab.compiler.ir.program import ExternCall, LoopProgram, Step

GPU = "cuda:0"
"""torch's name of the first GPU, for NVIDIA and AMD."""


def retarget(program: LoopProgram, target: str | None) -> LoopProgram:
    """The program with every CPU buffer and every CPU argument of a call on a GPU, if there is a
    `target`."""
    if target is None:
        return program
    buffers = {
        name: replace(buffer, device=GPU) if buffer.device == "cpu" else buffer
        for name, buffer in program.buffers.items()
    }
    return replace(program, buffers=buffers, steps=tuple(map(_step, program.steps)))


def _step(step: Step) -> Step:
    if not isinstance(step, ExternCall):
        return step
    kwargs = tuple((name, _argument(value)) for name, value in step.kwargs)
    return replace(step, args=tuple(map(_argument, step.args)), kwargs=kwargs)


def _argument(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_argument, value))
    if isinstance(value, torch.device) and value.type == "cpu":
        return torch.device(GPU)
    return value
