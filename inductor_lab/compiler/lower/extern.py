"""Calls of ATen: on purpose (matmul, convolution, attention), or because there is no lowering.

Tensors are passed as strided views of their buffers.  A view that strides cannot describe (some
reshapes) is copied first.

Inductor: `ir.ExternKernelAlloc`, `ir.FallbackKernel`, `lowering.py`, `make_fallback`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch

from inductor_lab.compiler.base.errors import MissingLowering
from inductor_lab.compiler.capture.memory import may_overlap
from inductor_lab.compiler.ir.collective import collective_kind
from inductor_lab.compiler.ir.effects import COLLECTIVES, LIBRARY, Reason
from inductor_lab.compiler.ir.ops import ELEMENTS
from inductor_lab.compiler.ir.program import BufferView, ExternArg
from inductor_lab.compiler.lower.builder import Builder, TensorMeta, size_of, source_line
from inductor_lab.compiler.lower.chains import PLACES
from inductor_lab.compiler.lower.number import expression_of_numbers
from inductor_lab.compiler.lower.registry import Operator
from inductor_lab.compiler.lower.tensor import TensorValue, layout_of

aten = torch.ops.aten


def fallback(
    build: Builder,
    op: Operator,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    reason: Reason | str = "no lowering",
) -> Any:
    """Call `op` itself; under `options.strict` raise MissingLowering if it has no lowering."""
    if build.options.strict and reason == "no lowering":
        raise MissingLowering(str(op), source_line(build.node))
    if (written := _in_place(build, op, args, kwargs, reason)) is not None:
        return written
    return call(build, _without_aliases(op, args), args, kwargs, reason)


def _in_place(
    build: Builder, op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any],
    reason: Reason | str,
) -> TensorValue | None:  # fmt: skip
    """A write to a part of an input as a call of the in-place operator; None for other calls.

    It applies if the result becomes the new value of that input.
    """
    dense = getattr(build.node.meta.get("val"), "layout", None) is torch.strided
    if op not in PLACES or build.node not in build.chains.home or not dense:
        return None
    x: TensorValue = args[0]
    strides = layout_of(x, build.buffers[x.buffer])
    if strides is None or x.dtype not in ELEMENTS:
        return None
    packet = getattr(aten, op._schema.name.removeprefix("aten::") + "_")
    copy = build.copy_buffer(x)
    given = [argument(build, a) for a in (copy, *args[1:])]
    named = {name: argument(build, a) for name, a in kwargs.items()}
    name = str(getattr(packet, op._overloadname))
    (written,) = build.extern(name, given, named, (), reason, [copy])
    found: TensorValue = written
    return found


def call(
    build: Builder,
    op: Operator,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    reason: Reason | str = LIBRARY,
    outputs: Sequence[TensorMeta | None] | None = None,
) -> Any:
    """Call `op` with lowered arguments; its value, or a tuple if the node returns several.

    `outputs` is needed if the op's results differ from those of the current node.
    """
    made = build.extern(
        str(op),
        [argument(build, a) for a in args],
        {name: argument(build, a) for name, a in kwargs.items()},
        outputs,
        reason,
    )
    several = isinstance(build.node.meta.get("val"), tuple | list)
    return made if several else made[0]


def argument(build: Builder, given: Any) -> ExternArg:
    """An argument of an FX node as an argument of an `ExternCall`."""
    if isinstance(given, TensorValue):
        value, layout = build.strided(given)
        return BufferView(value.buffer, layout)
    if isinstance(given, list | tuple):
        return tuple(argument(build, item) for item in given)
    if isinstance(given, torch.SymInt):
        return size_of(given)
    return given


ASSERTIONS = frozenset({aten._assert_async.default, aten._assert_async.msg})
"""Operators that return nothing and raise if their argument is false."""


def always_called(op: Operator) -> Reason | str | None:
    """Why an operator is called even if its result is unused; None for most operators."""
    return "assertion" if op in ASSERTIONS else COLLECTIVES.get(collective_kind(op) or "")


def _without_aliases(op: Operator, args: Sequence[Any]) -> Operator:
    """The variant of a view operator that returns new memory, so that buffers never share memory.

    A view of a computed number, such as its conjugate, shares no memory.
    """
    aliases = any(result.alias_info for result in op._schema.returns)
    if not aliases or isinstance(args[0], complex | float | int):
        return op
    name = op._schema.name.split("::")[1]
    packet = getattr(getattr(torch.ops, op.namespace), f"{name}_copy", None)
    return getattr(packet, op._overloadname, op) if packet is not None else op


def is_token(placeholder: torch.fx.Node) -> bool:
    """Is an input a token that only orders operators with effects?"""
    effects = torch.ops.higher_order.with_effects
    users = placeholder.users
    return bool(users) and all(u.target is effects and u.args[0] is placeholder for u in users)


# ---- tensors that loop nests do not support ----

_UNUSUAL = frozenset({torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4})


def needs_extern(node: torch.fx.Node, to_storage: Container[torch.fx.Node]) -> bool:
    """Does the node use a tensor that loop nests do not support (complex, sparse, quantized)?

    A view of a complex tensor needs no nest.  A write through a view of a tensor that overlaps
    itself changes all elements that share the memory.  An `as_strided` may read elements of the
    storage that are outside the tensor that was written (`leading_to_storage`).
    """
    fakes = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    flat = [t for f in fakes for t in (f if isinstance(f, list | tuple) else (f,))]
    tensors = [t for t in flat if isinstance(t, torch.Tensor)]
    return (
        any(map(_is_unusual, tensors))
        or (node.target not in VIEWS and any(t.dtype not in ELEMENTS for t in tensors))
        or (node.target in _WRITES_OF_VIEWS and (may_overlap(tensors[0]) or node in to_storage))
    )


def leading_to_storage(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The views, and writes to views, through which an `as_strided` accesses the storage."""
    found: set[torch.fx.Node] = set()
    for node in reversed(graph.nodes):
        goes_on = node.target in VIEWS or node.target in _WRITES_OF_VIEWS
        if goes_on and any(u in found or u.target is aten.as_strided.default for u in node.users):
            found.add(node)
    return found


def _is_unusual(fake: torch.Tensor) -> bool:
    return fake.dtype in _UNUSUAL or fake.layout is not torch.strided or fake.device.type == "meta"


_WRITES_OF_VIEWS = frozenset(
    {
        aten.select_scatter.default, aten.slice_scatter.default, aten.diagonal_scatter.default,
        aten.as_strided_scatter.default, aten.copy.default,
    }
)  # fmt: skip


VIEWS = frozenset(
    {
        aten.view.default, aten.alias.default, aten.detach.default, aten.permute.default,
        aten.t.default, aten.transpose.int, aten.expand.default, aten.squeeze.default,
        aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default, aten.select.int,
        aten.slice.Tensor, aten.diagonal.default, aten.split.Tensor,
        aten.split_with_sizes.default, aten.unbind.int,
    }
)  # fmt: skip
"""Operators whose result is always a strided view, of any dtype."""


# ---- devices ----

TRANSFERS = frozenset({aten._to_copy.default, aten.copy.default})
"""Operators that copy between devices on purpose."""


def to_device(build: Builder, op: Operator, given: Any) -> Any:
    """Copy the CPU tensors that a GPU operator reads to its device.

    PyTorch allows this for scalars (0-dim tensors) and for index tensors.
    """
    if op in TRANSFERS:
        return given

    def move(item: Any) -> Any:
        if isinstance(item, TensorValue) and item.device != build.result.device:
            return transfer(build, item, build.result.device)
        if isinstance(item, list | tuple):
            return type(item)(move(i) for i in item)
        if isinstance(item, dict):
            return {name: move(i) for name, i in item.items()}
        return item

    return move(given)


def transfer(build: Builder, value: TensorValue, device: str) -> TensorValue:
    """A copy of `value` on another device; a tensor that is computed from numbers is computed
    there."""
    if (number := expression_of_numbers(build.steps, value)) is not None:
        return build.pointwise(number, TensorMeta((), (), value.dtype, device))
    source, layout = build.strided(value)
    stride = TensorMeta(layout.size, layout.stride, value.dtype, device).layout.stride
    (moved,) = build.extern(
        str(aten._to_copy.default), (BufferView(source.buffer, layout),),
        {"device": torch.device(device)}, [TensorMeta(layout.size, stride, value.dtype, device)],
        reason="device copy",
    )  # fmt: skip
    return moved
