"""Options of TorchInductor that people bring along, and what they are here."""

from __future__ import annotations

from collections.abc import Mapping

_ALWAYS = "ours always does that: leave it out"
_FUSION = 'ours always does that where it pays; {"fusion": {"off": [...]}} leaves rules out'
_MODE = 'ask for it with mode="max-autotune"'
_CACHE = 'ours is {"cache": True} or {"cache": False}'
_TORCH = "it is not ours to set: call torch.set_num_threads or set OMP_NUM_THREADS"
_LOOK = "ours shows everything: c = lab.inspect(f, x); c.report('f.html')"

OURS: Mapping[str, str] = {
    "max_autotune": _MODE,
    "max_autotune_gemm": _MODE,
    "max_autotune_pointwise": _MODE,
    "coordinate_descent_tuning": _MODE,
    "triton.cudagraphs": 'ask for it with mode="reduce-overhead"',
    "epilogue_fusion": _FUSION,
    "prologue_fusion": _FUSION,
    "aggressive_fusion": _FUSION,
    "permute_fusion": _FUSION,
    "loop_ordering_after_fusion": _FUSION,
    "benchmark_fusion": "ours decides by bytes: part.schedule.decisions tells why",
    "combo_kernels": 'ours is {"fusion": {"combos": True}}, which is the default',
    "pattern_matcher": 'ours always does that; {"rewrites_off": [...]} leaves rewrites out',
    "joint_graph_constant_folding": 'ours always does that; {"rewrites_off": [...]} leaves it out',
    "layout_optimization": 'ours always does that; {"rewrites_off": [...]} leaves it out',
    "activation_memory_budget": 'ours is {"memory_budget": 0.5}',
    "freezing": 'ours is {"pack_weights": True}, which is the default and follows later writes',
    "cpp.weight_prepack": 'ours is {"pack_weights": True}, which is the default',
    "shape_padding": "libraries pad for themselves here: leave it out",
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
    "cpp.simdlen": "ours takes what the processor has; CXX may name a compiler with arguments",
    "cpp.cxx": "set the environment variable CXX",
    "guard_filter_fn": "give it to torch.compile(f, backend='inductor_lab', ...), not to a backend",
}

FAMILIES = ("triton.", "cpp.", "cuda.", "rocm.", "xpu.", "trace.", "halide.", "aot_inductor.")


def hint(name: str) -> str:
    """What an option of TorchInductor is called here; "" for a name that it does not have either.

    >>> hint("max-autotune")
    'this is an option of TorchInductor; ask for it with mode="max-autotune"'
    """
    plain = name.replace("-", "_")
    if plain in OURS:
        return f"this is an option of TorchInductor; {OURS[plain]}"
    if plain.startswith(FAMILIES):
        return "this is an option of TorchInductor, which ours does not have: leave it out"
    return ""
