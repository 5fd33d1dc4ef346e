"""Calls with dictionaries of arguments: Triton kernels of the user.

Inductor: `ir.UserDefinedTritonKernel`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inductor_lab.compiler.ir.higher_order import PREFIX
from inductor_lab.compiler.ir.program import ExternArg
from inductor_lab.compiler.lower.builder import Builder, TensorMeta
from inductor_lab.compiler.lower.extern import argument
from inductor_lab.compiler.torch_door.torch_api import pytree


@dataclass(frozen=True)
class ByName:
    """An operator that takes dictionaries, called with a flat list of their values."""

    operator: Any
    shape: Any

    def __call__(self, *leaves: Any) -> tuple[Any, ...]:
        args, kwargs = pytree.tree_unflatten(leaves, self.shape)
        return tuple(self.operator(*args, **kwargs).values())


def call_by_name(
    build: Builder,
    node: torch.fx.Node,
    callee: Callable[[str, Any], ExternArg],
    value: Callable[[torch.fx.Node], Any],
) -> dict[str, Any]:
    """A call with dictionaries of arguments and a dictionary of tensors as its result.

    This is a user's Triton kernel (`triton_kernel_wrapper_functional`), which writes to copies of
    its arguments.
    """
    given, shape = pytree.tree_flatten((node.args, node.kwargs))
    function = callee(node.name, ByName(node.target, shape))
    args = [value(item) if isinstance(item, torch.fx.Node) else item for item in given]
    fakes = node.meta["val"]
    results = [TensorMeta.of(fake) for fake in fakes.values()]
    leaves = [function, *(argument(build, a) for a in args)]
    made = build.extern(f"{PREFIX}wrap", leaves, {}, results, "user's kernel")
    return dict(zip(fakes, made, strict=True))
