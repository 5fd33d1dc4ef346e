"""Custom operators that write to their arguments, in PyTorch's functional form.

    put(cache, x, 3)                         in the graph: auto_functionalized_v2(put, x=x, place=3,
                                             _cache_base_index=0, _all_bases=[cache])
    buf0[i0, i1] = cache[i0, i1]
    buf1 = extern lib.put.default(cache=buf0, x=x, place=3)      buf1 is in the storage of buf0

The copy is removed if the old value is not needed (`lower/passes/in_place.py`).

Inductor: `fx_passes/reinplace.py`, `reinplace_inplaceable_ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from inductor_lab.compiler.ir.index import add_sizes, mul_sizes
from inductor_lab.compiler.ir.ops import ELEMENTS
from inductor_lab.compiler.ir.program import BufferView, Layout
from inductor_lab.compiler.lower import tensor
from inductor_lab.compiler.lower.builder import Builder, size_of
from inductor_lab.compiler.lower.chains import base_tensors, written_arguments
from inductor_lab.compiler.lower.extern import argument
from inductor_lab.compiler.lower.tensor import TensorValue, layout_of, same_strides
from inductor_lab.compiler.torch_door.torch_api import OpOverload


def call_mutating(build: Builder, node: Node, value: Callable[[Node], Any]) -> Any:
    """The results of the call, followed by the new values of its bases.

    None if a base is not a complete buffer with its strides of eager mode.
    """
    op, more = node.args[0], node.kwargs
    assert isinstance(op, OpOverload), "the first argument is an operator"
    bases = base_tensors(node)
    fakes, olds = [base.meta["val"] for base in bases], [build.values[base] for base in bases]
    if not all(_fits(build, old, fake) for old, fake in zip(olds, fakes, strict=True)):
        return None
    names, copies = written_arguments(op), [build.copy_buffer(old) for old in olds]
    given: dict[str, Any] = {}
    for argument_of in op._schema.arguments:
        name = argument_of.name
        if name in names:
            given[name] = _view(build, more, f"_{name}", copies, fakes)
        elif name in more:
            given[name] = argument(build, map_arg(more[name], value))
    count = len(build.results) - len(bases)
    results = build.results[:count] if op._schema.returns else ()
    made = build.extern(str(op), (), given, results, "writes to an argument", copies)
    return (*(made[: len(results)] or (None,) * count), *made[len(results) :])


def _fits(build: Builder, old: Any, fake: torch.Tensor) -> bool:
    """Is a base a complete buffer with the strides that the operator expects?"""
    if not isinstance(old, TensorValue) or old.dtype not in ELEMENTS:
        return False
    buffer = build.buffers[old.buffer]
    layout = layout_of(old, buffer)
    wanted = Layout(tuple(map(size_of, fake.shape)), tuple(map(size_of, fake.stride())))
    return layout is not None and layout == buffer.layout and same_strides(layout, wanted)


def _view(
    build: Builder, more: Mapping[str, Any], prefix: str, copies: Sequence[TensorValue],
    fakes: Sequence[torch.Tensor],
) -> Any:  # fmt: skip
    """A mutable argument of the operator: a copy of a base, or a view of that copy."""
    number = more[f"{prefix}_base_index"]
    if number is None:
        return None
    base, fake = copies[number], fakes[number]
    if f"{prefix}_storage_offset" in more:
        sizes, strides = (tuple(map(_number, more[f"{prefix}_{n}"])) for n in ("size", "stride"))
        begin = add_sizes(_number(more[f"{prefix}_storage_offset"]),
                          mul_sizes(size_of(fake.storage_offset()), -1))  # fmt: skip
        return BufferView(base.buffer, Layout(sizes, strides, begin))
    if f"{prefix}_slice_dim" in more:
        dim = more[f"{prefix}_slice_dim"]
        first, last = (_number(more[f"{prefix}_slice_{n}"]) for n in ("start", "end"))
        length = add_sizes(last, mul_sizes(first, -1))
        base = tensor.slice_dim(base, dim, first, 1, length)
    return argument(build, base)


def _number(given: Any) -> Any:
    return size_of(given.meta["val"] if isinstance(given, Node) else given)
