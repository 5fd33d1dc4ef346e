"""Options of TorchInductor that users may pass, and the corresponding option here."""

from __future__ import annotations

from collections.abc import Mapping

_ALWAYS = "inductor_lab always does that: remove the option"
_FUSION = 'inductor_lab does that if it saves time; {"fusion": {"off": [...]}} disables rules'
_MODE = 'use mode="max-autotune"'
_CACHE = 'use {"cache": True} or {"cache": False}'
_TORCH = "call torch.set_num_threads or set OMP_NUM_THREADS"
_LOOK = "inductor_lab always records it: c = lab.inspect(f, x); c.report('f.html')"

OURS: Mapping[str, str] = {
    "max_autotune": _MODE,
    "max_autotune_gemm": _MODE,
    "max_autotune_pointwise": _MODE,
    "coordinate_descent_tuning": _MODE,
    "triton.cudagraphs": 'use mode="reduce-overhead"',
    "epilogue_fusion": _FUSION,
    "prologue_fusion": _FUSION,
    "aggressive_fusion": _FUSION,
    "permute_fusion": _FUSION,
    "loop_ordering_after_fusion": _FUSION,
    "benchmark_fusion": "inductor_lab compares bytes: see part.schedule.decisions",
    "combo_kernels": 'use {"fusion": {"combos": True}}, the default',
    "pattern_matcher": 'inductor_lab always does that; {"rewrites_off": [...]} disables rewrites',
    "joint_graph_constant_folding": 'use {"rewrites_off": [...]} to disable it',
    "layout_optimization": 'use {"rewrites_off": [...]} to disable it',
    "activation_memory_budget": 'use {"memory_budget": 0.5}',
    "freezing": 'use {"pack_weights": True}, the default; it also sees later writes to weights',
    "cpp.weight_prepack": 'use {"pack_weights": True}, the default',
    "shape_padding": "a rewrite pads matrix products here: remove the option",
    "force_disable_caches": _CACHE,
    "fx_graph_cache": _CACHE,
    "inplace_buffers": _ALWAYS,
    "allow_buffer_reuse": _ALWAYS,
    "memory_planning": _ALWAYS,
    "reorder_for_locality": _ALWAYS,
    "reorder_for_peak_memory": _ALWAYS,
    "split_reductions": _ALWAYS,
    "size_asserts": _ALWAYS,
    "dce": _ALWAYS,
    "debug": _LOOK,
    "trace.enabled": _LOOK,
    "trace.graph_diagram": _LOOK,
    "cpp.threads": _TORCH,
    "cpp.simdlen": "vectors have the processor's length; CXX may name a compiler with flags",
    "cpp.cxx": "set the environment variable CXX",
    "guard_filter_fn": "pass it to torch.compile(f, backend='inductor_lab', ...)",
}

FAMILIES = ("triton.", "cpp.", "cuda.", "rocm.", "xpu.", "trace.", "halide.", "aot_inductor.")


def hint(name: str) -> str:
    """The option that corresponds to one of TorchInductor; "" if TorchInductor has no such option.

    >>> hint("max-autotune")
    'this is an option of TorchInductor; use mode="max-autotune"'
    """
    plain = name.replace("-", "_")
    if plain in OURS:
        return f"this is an option of TorchInductor; {OURS[plain]}"
    if plain.startswith(FAMILIES):
        return "this is an option of TorchInductor that inductor_lab does not have: remove it"
    return ""
