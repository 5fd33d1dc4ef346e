"""The list of all accelerators.  A new one is a file in this folder and an entry here."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from inductor_lab.compiler.accelerate import evict
from inductor_lab.compiler.accelerate.convolution_libraries import choose_convolutions
from inductor_lab.compiler.accelerate.convolutions import channels_last_training, convolutions
from inductor_lab.compiler.accelerate.first_call import FirstCall
from inductor_lab.compiler.accelerate.matmul_libraries import choose_libraries
from inductor_lab.compiler.accelerate.pool import POOL, release_memory, reserve_pool
from inductor_lab.compiler.accelerate.tune_matmul import matmul_nests
from inductor_lab.compiler.accelerate.warm_graphs import Part, loaded_call, warm_key
from inductor_lab.compiler.accelerator import Accelerator, Added
from inductor_lab.compiler.base.passes import Pass

NEEDS = "oneDNN's products"


def _optional(name: str) -> Any:
    """A file of this folder; None if it, or one that it needs, was deleted."""
    try:
        return import_module(f"{__package__}.{name}")
    except ImportError as error:
        if not (error.name or "").startswith(str(__package__)):
            raise
        return None


# these add themselves to the libraries of `packing.py`, and to the steps of `step_runs.py`
_own = filter(None, map(_optional, ("own_products", "own_convolutions")))
LIBRARIES = [Accelerator("libraries", needs=NEEDS, ahead=one.ahead) for one in (evict, *_own)]
_runs = _optional("step_runs")
RUNS = (Accelerator("step_runs", ahead=_runs.ahead, shorten=_runs.in_runs),) if _runs else ()
_optional("convolution_steps")

ATTENTION: tuple[Accelerator, ...] = ()
try:
    from inductor_lab.compiler.accelerate.flex_attention import drop_block_lists, flex_attention
    from inductor_lab.compiler.accelerate.own_attention import own_attention
except ModuleNotFoundError as error:  # these need the attention kernels in Triton
    if not (error.name or "").startswith("inductor_lab.compiler.codegen."):
        raise
else:
    ATTENTION = (
        Accelerator(
            "attention",
            joint=lambda module, rewrites_off: drop_block_lists(module),
            passes=(
                Added("rewrite", "constant_folding", Pass(
                    "flex_attention",
                    "compile flex attention together with the user's score and mask functions",
                    flex_attention,
                )),
                Added("rewrite", "products", Pass(
                    "own_attention",
                    "compute attention in a kernel of ours where it is faster than the library",
                    own_attention,
                )),
            ),
        ),
    )  # fmt: skip


def _keep(call: Any, built_from: tuple[Any, ...] | None, traces: Any) -> Part:
    if built_from is None:
        return Part(call, None, traces)
    schedule, kernels, host, options = built_from
    used = (one.shorten for one in RUNS if one.name not in options.accelerators_off)
    remake = partial(loaded_call, schedule, kernels, host, options, shorten=next(used, None))
    return Part(call, remake, traces)


ACCELERATORS = (
    Accelerator("bare_calls", needs="bare calls"),
    Accelerator("warm_graphs", needs="warm graphs", key=warm_key, keep=_keep),
    Accelerator("", around=FirstCall),  # both of the above
    *LIBRARIES,
    *RUNS,
    *ATTENTION,
    Accelerator(
        "convolutions",
        joint=channels_last_training,
        passes=(
            Added("rewrite", "products", Pass(
                "convolutions",
                "use channels-last layout for convolutions, and fold batch norm into their weights",
                convolutions,
            )),
        ),
    ),
    Accelerator(
        "matmul_kernels",
        passes=(
            Added("rewrite", "", Pass(
                "matmul_nests", "compute matrix products in kernels of ours on a GPU", matmul_nests,
            )),
        ),
    ),
    Accelerator(
        "libraries",
        needs=NEEDS,
        passes=(
            Added("schedule", "keep_precision", Pass(
                "libraries", "call the fastest library for each matrix product", choose_libraries,
            )),
            Added("schedule", "keep_precision", Pass(
                "convolution_libraries", "call the fastest library for each convolution",
                choose_convolutions,
            )),
        ),
    ),
    Accelerator("packed_weights", needs="packed weights"),
    Accelerator(
        "pool", needs="memory pool", before_load=reserve_pool,
        release=release_memory, pooled=POOL.blocks, helpers={"POOL": type(POOL).__module__},
    ),
)  # fmt: skip
