"""Constant folding: nodes that depend on no input are computed at compile time.

`full([4], 2) * 3` → `full([4], 6)`.  Only small tensors, and never random ones.  If all elements of
a result are equal it becomes `aten.full`, which costs no memory traffic; otherwise a constant.

Inductor: `constant_folding.py`, `fx_passes/joint_graph.py` (UniformValueConstantFolder).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.rewrite.aliases import Aliases, is_view
from inductor_lab.compiler.torch_door.torch_api import OpOverload

aten = torch.ops.aten

MAX_NUMEL = 4096
"""Larger tensors are computed at run time."""

MAX_STORED = 2048
"""The largest constant with different elements that the module stores."""

_CREATION = (
    aten.full.default, aten.arange.start_step, aten.arange.default, aten.arange.start,
    aten.scalar_tensor.default, aten.zeros.default, aten.ones.default, aten.eye.default,
    torch.ops.prims.iota.default,
)  # fmt: skip


def folded(module: GraphModule, aliases: Aliases) -> Iterator[tuple[Node, Node]]:
    """Pairs of a node that could be computed and the new node that has its value.

    Nodes that only folded nodes use are skipped; they are dead after the replacement.
    """
    known: dict[Node, torch.Tensor] = {}
    for node in module.graph.nodes:
        value = _compute(module, node, known, aliases)
        if value is not None:
            known[node] = value
    for node, value in known.items():
        if node.op == "get_attr" or node.target in _CREATION or is_view(node):
            continue
        if all(user in known and not is_view(user) for user in node.users):
            continue
        new = _as_node(module, node, value)
        if new is not None:
            yield node, new


def _compute(
    module: GraphModule, node: Node, known: dict[Node, torch.Tensor], aliases: Aliases
) -> torch.Tensor | None:
    """The value of a node, if it is a small constant tensor on the CPU."""
    fake = node.meta.get("val")
    if not isinstance(fake, torch.Tensor) or fake.device.type != "cpu" or node in aliases.written:
        return None
    if not all(isinstance(size, int) for size in fake.shape) or fake.numel() > MAX_NUMEL:
        return None
    if node.op == "get_attr":
        name = str(node.target)
        tensor = getattr(module, name, None) if "." not in name else None
        return tensor if type(tensor) is torch.Tensor else None
    if node.op != "call_function" or not is_pure(node):
        return None
    inputs = node.all_input_nodes
    if not all(n in known for n in inputs) or (not inputs and node.target not in _CREATION):
        return None
    function: Any = node.target
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: known[n])
    with suppress(RuntimeError, ValueError, IndexError), torch.no_grad():
        value = function(*args, **kwargs)
        same = isinstance(value, torch.Tensor) and value.dtype == fake.dtype
        return value if same and value.shape == fake.shape else None
    return None  # a division by zero: the compiled call raises it


def is_pure(node: Node) -> bool:
    """Is the node an ATen or prims call that returns the same value each time and writes
    nothing?"""
    target = node.target
    if not isinstance(target, OpOverload) or target._schema.is_mutable:
        return False
    if target.namespace not in ("aten", "prims") or "empty" in target._schema.name:
        return False
    return torch.Tag.nondeterministic_seeded not in target.tags


def _as_node(module: GraphModule, node: Node, value: torch.Tensor) -> Node | None:
    """A node for the value: `full` if all elements are equal bit for bit, otherwise a constant."""
    if not value.is_contiguous() or value.is_complex() or value.numel() == 0:
        return None
    fill = _repeated(value)
    if fill is None and value.numel() > MAX_STORED:
        return None
    with module.graph.inserting_before(node):
        if fill is not None:
            new = module.graph.create_node(
                "call_function",
                aten.full.default,
                (list(value.shape), fill),
                {"dtype": value.dtype, "device": value.device, "pin_memory": False},
                name="full",
            )
        else:
            name = f"_folded_{node.name}"
            module.register_buffer(name, value.clone())
            new = module.graph.get_attr(name)
    new.meta = dict(node.meta)
    return new


def _repeated(value: torch.Tensor) -> Any:
    flat = value.reshape(-1)
    bits = flat.view(torch.uint8).reshape(flat.numel(), -1)
    return flat[0].item() if bool((bits == bits[0]).all()) else None
