"""Captured graphs that run as they are, by eager mode's operators, and calls that do.

Inductor: some of these graphs it refuses, others it computes wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.torch_door.torch_api import FakeTensor
from inductor_lab.compiler.torch_door.torch_names import optional

_TracingContext = optional("torch._guards.TracingContext")


def runs_as_captured(module: torch.nn.Module, inputs: Sequence[Any]) -> bool:
    """Is a captured graph about other things than values that kernels can compute?

    One that takes memory from a tensor, or gives it some, is, or has a graph inside that is: so
    TorchDynamo captures `x.untyped_storage().resize_(n)`.  And so is any graph while tensors carry
    tangents (`forward_ad.dual_level`), of which kernels know nothing: TorchDynamo guards on that.
    Fake tensors of the user (not TorchDynamo's own) have no memory for kernels to read.  And where
    a result is an input's memory as another dtype, from a place that is read from a tensor, only
    the view itself tells AOTAutograd where it is.  So it is with what is read from a place in a
    storage (`asks_storage`) that an input does not begin.
    """
    context = _TracingContext and _TracingContext.try_get()
    own = context and context.fake_mode
    if any(isinstance(given, FakeTensor) and given.fake_mode is not own for given in inputs):
        return True
    forwards = getattr(torch.autograd.forward_ad, "_current_level", -1) >= 0
    resized = any("inductor.resize_storage_bytes_" in str(n.target) for n in _nodes(module))
    moved = asks_storage(module) and any(map(_is_moved, inputs))
    return forwards or resized or moved or _gives_other_elements(module)


def asks_storage(module: torch.nn.Module) -> bool:
    """Does an `as_strided` say where in the storage it begins, not of a tensor?

    What that reads depends on where an input begins, which TorchDynamo does not guard on.  And
    AOTAutograd's functional tensors forget it in a write:

        x = storage[2:]; x[1].mul_(2); y = x.as_strided((3,), (1,), 4)     y[0] is x[2], not x[4]
    """
    strided = (node for node in _nodes(module) if "as_strided" in str(node.target))
    return any(node.args[3:] or "storage_offset" in node.kwargs for node in strided)


def where_storage_begins(
    module: torch.nn.Module, compiled: Callable[..., Any]
) -> Callable[..., Any]:
    """The calls of a captured graph: compiled ones, but where a place in the storage is asked for
    and a tensor does not begin its own."""
    if not asks_storage(module):
        return compiled
    return lambda *args: (module.forward if any(map(_is_moved, args)) else compiled)(*args)


def captured(nodes: Iterable[Node]) -> list[torch.Tensor]:
    """The strided tensors among nodes of a graph of TorchDynamo's."""
    values = (node.meta.get("example_value") for node in nodes)
    return [x for x in values if isinstance(x, torch.Tensor) and x.layout is torch.strided]


def _nodes(module: torch.nn.Module) -> Iterator[Node]:
    graphs = (part.graph for part in module.modules() if isinstance(part, GraphModule))
    return (node for graph in graphs for node in graph.nodes)


def _is_moved(given: Any) -> bool:
    if not isinstance(given, torch.Tensor) or given.layout is not torch.strided:
        return False
    offset = given.storage_offset()
    return isinstance(offset, torch.SymInt) or offset != 0


def _gives_other_elements(module: Any) -> bool:
    """Is a result an input's memory as another dtype, from a place that is not known?"""
    graph = module.graph
    fakes = captured([*graph.find_nodes(op="placeholder"), *graph.output_node().all_input_nodes])
    dtypes = {x.untyped_storage()._cdata: x.dtype for x in reversed(fakes)}
    changed = (x for x in fakes if x.dtype != dtypes[x.untyped_storage()._cdata])
    return any(isinstance(x.storage_offset(), torch.SymInt) for x in changed)
