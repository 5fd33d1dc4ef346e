"""Assign each phase of stock `torch.compile` to a compiler.

PyTorch reports all phases in one list; the timeline has a track for each compiler:

    entire_frame_compile              TorchDynamo
      backend_compile                 TorchDynamo
        create_aot_dispatcher_function    AOTAutograd
          compile_fx...fw_compiler_base       TorchInductor
            Scheduler.__init__                TorchInductor
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from inductor_lab.compiler.base.observer import Phase

WHOLE_CALL = "torch.compile"
"""The track of the call itself."""

TRACKS = {
    "AOTAutograd": ("aot_", "create_aot_", "AOTAutograd", "autograd_cache"),
    "TorchInductor": (
        "CacheBase.", "CachingAutotuner", "CppCodeCache", "CppWrapperCodegen", "FxGraphCache",
        "GraphLowering", "PyCodeCache", "PythonWrapperCodegen", "Scheduler", "TritonCodeCache",
        "TritonBundler", "_recursive_", "additional_fake_tensor_prop", "async_compile", "code_gen",
        "codegen", "compile_file", "compile_fx", "fx_codegen_", "fx_graph_", "inductor_", "pass.",
        "post_grad_", "remote_fx_", "triton_",
    ),
}  # fmt: skip
"""Track → prefixes of the names of its phases.  All other phases belong to TorchDynamo."""


def by_compiler(phases: Iterable[Phase]) -> tuple[Phase, ...]:
    """The phases, with their compiler as the track."""
    return tuple(replace(phase, track=_track(phase)) for phase in phases)


def _track(phase: Phase) -> str:
    if phase.track == "inductor_lab":
        return WHOLE_CALL
    found = (track for track, names in TRACKS.items() if phase.name.startswith(names))
    return next(found, phase.track)
