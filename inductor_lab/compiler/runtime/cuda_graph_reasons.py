"""Why a program is not replayed as a CUDA graph; `cuda_graphs.py` records and replays."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_lab.compiler.ir.program import ExternCall, LoopProgram

MODES = ("reduce-overhead", "max-autotune")


def not_requested(devices: Iterable[str], mode: str) -> str:
    """Why CUDA graphs are not even tried: the mode, or no tensor on a GPU; "" if they are."""
    if mode not in MODES:
        return f'mode is "{mode}"; mode="reduce-overhead" requests CUDA graphs'
    on_gpu = any(device.startswith("cuda") for device in devices)
    return "" if on_gpu else "no tensor is on a CUDA GPU"


def devices_of(program: LoopProgram) -> set[str]:
    return {buffer.device for buffer in program.buffers.values()}


def why_not(program: LoopProgram) -> str | None:
    """Return why a program cannot be recorded, or None."""
    devices = sorted(devices_of(program))
    if len(devices) > 1:
        return f"it uses several devices, {', '.join(devices)}"
    if program.callees:
        return "it calls functions or operators that may synchronize with the GPU"
    given = {symbol for symbol in program.inputs if not isinstance(symbol, str)}
    for step in program.steps:
        if isinstance(step, ExternCall) and any(step.numbers):
            return f"{step.op} reads a number from the GPU"
    sizes = {size for b in program.buffers.values() for size in b.layout.size}
    if any(size.free_symbols - given for size in sizes if not isinstance(size, int)):
        return "sizes depend on data"
    if any(write.method != "copy_" for write in program.writes):
        return "the storage of an input is replaced"
    return None
