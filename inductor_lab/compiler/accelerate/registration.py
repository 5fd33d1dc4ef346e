"""The list of all accelerators.  A new one is a file in this folder and an entry here."""

from __future__ import annotations

from functools import partial
from typing import Any

from inductor_lab.compiler.accelerate.convolutions import channels_last_training
from inductor_lab.compiler.accelerate.first_call import FirstCall
from inductor_lab.compiler.accelerate.matmul_libraries import choose_libraries
from inductor_lab.compiler.accelerate.pool import POOL, release_memory, reserve_pool
from inductor_lab.compiler.accelerate.tune_matmul import own_products, wants_own_products
from inductor_lab.compiler.accelerate.warm_graphs import Part, loaded_call, warm_key
from inductor_lab.compiler.accelerator import Accelerator

ATTENTION: tuple[Accelerator, ...] = ()
try:
    from inductor_lab.compiler.accelerate import masked_attention as _registers_its_pass  # noqa: F401
    from inductor_lab.compiler.accelerate.flex_attention import drop_block_lists
except ModuleNotFoundError as error:  # these need the attention kernels in Triton
    if not (error.name or "").startswith("inductor_lab.compiler.codegen."):
        raise
else:
    ATTENTION = (Accelerator("", joint=lambda module, rewrites_off: drop_block_lists(module)),)


def _keep(call: Any, built_from: tuple[Any, ...] | None, traces: Any) -> Part:
    return Part(call, None if built_from is None else partial(loaded_call, *built_from), traces)


ACCELERATORS = (
    Accelerator("bare_calls", needs="bare calls"),
    Accelerator("warm_graphs", needs="warm graphs", key=warm_key, keep=_keep),
    Accelerator("", around=FirstCall),  # both of the above
    *ATTENTION,
    Accelerator("convolutions", joint=channels_last_training),
    Accelerator("", nests=own_products, wants_nests=wants_own_products),
    Accelerator("libraries", needs="oneDNN's products", libraries=choose_libraries),
    Accelerator("packed_weights", needs="packed weights"),
    Accelerator(
        "pool", needs="memory pool", before_load=reserve_pool,
        release=release_memory, helpers={"POOL": type(POOL).__module__},
    ),
)  # fmt: skip
