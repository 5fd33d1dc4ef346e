"""What a correct compiler does not need, by name, and when it is off.

An accelerator is off where `options.accelerators_off` names it, and by itself where torch lacks a
name that it needs (`torch_names.toml`).
"""

from __future__ import annotations

from dataclasses import replace

from inductor_lab.compiler.base.errors import BadOption
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.torch_door.torch_names import missing

NEEDS = {
    "bare_calls": "bare calls",
    "convolutions": "",
    "libraries": "oneDNN's products",
    "packed_weights": "packed weights",
    "pool": "memory pool",
    "warm_graphs": "warm graphs",
}
"""Accelerator → the feature of `torch_names.toml` that it needs; "" if it needs none."""


def possible(options: Options) -> Options:
    """The options with all that is off in `accelerators_off`, and no other option asking for it.

    Raises BadOption for a name that is none of an accelerator's.
    """
    asked = options.accelerators_off
    BadOption.refuse_unknown("accelerators_off", asked, (*NEEDS, "all"))
    lacking = {name for name, feature in NEEDS.items() if feature and missing(feature)}
    off = {*NEEDS} if "all" in asked else {*asked, *lacking}
    rewrites_off = {*options.rewrites_off, *(off & {"convolutions"})}
    return replace(
        options,
        accelerators_off=tuple(sorted(off)),
        matmul="aten" if "libraries" in off else options.matmul,
        memory_pool=0.0 if "pool" in off else options.memory_pool,
        pack_weights=options.pack_weights and "packed_weights" not in off,
        rewrites_off=tuple(sorted(rewrites_off)),
    )
