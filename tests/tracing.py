"""The way into a backend of a test's own, which differs in how it compiles one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._functorch.partitioners import default_partition

from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.torch_door import torch_aot


def through_aot(
    module: torch.fx.GraphModule, inputs: Any, compiler: Callable[[str], Callable[..., Any]]
) -> Callable[..., Any]:
    """AOTAutograd with our decompositions and torch's partitioner.

    `compiler("forward")`, `compiler("backward")` and `compiler("inference")` compile its graphs.
    """
    return torch_aot.aot_autograd(
        module,
        inputs,
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        partition_fn=default_partition,
        decompositions=decomposition_table(lowered()),
    )
