"""Writes of a captured graph that eager mode rejects.

    x[1:].add_(x[:-1])        the call also reads the written memory at other positions
    x.expand(3).add_(1)       elements of the written tensor share memory
    n.mul_(0.5)               the result is a float, but n holds integers

A functional graph has no writes, so it would compute a result for all of these.  A graph with such
a write runs in eager mode, which raises at that call, after the writes before it.

Inductor has no counterpart: it computes a result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_arg

from inductor_lab.compiler.capture.memory import NEW_LAYOUT
from inductor_lab.compiler.capture.one_element import is_refused_by_eager
from inductor_lab.compiler.capture.span import code_line
from inductor_lab.compiler.torch_door.torch_api import OpOverload, OpOverloadPacket, pytree

aten = torch.ops.aten
AUGMENTED: Mapping[Any, str] = {
    operator.iadd: "add_", operator.isub: "sub_", operator.imul: "mul_",
    operator.itruediv: "div_", operator.ifloordiv: "floor_divide_", operator.imod: "remainder_",
    operator.ipow: "pow_", operator.iand: "bitwise_and_", operator.ior: "bitwise_or_",
    operator.ixor: "bitwise_xor_", operator.ilshift: "bitwise_left_shift_",
    operator.irshift: "bitwise_right_shift_",
}  # fmt: skip
"""Python's augmented assignments, and the tensor method of each."""
IN_PLACE_METHODS = frozenset(f"__{each.__name__}__" for each in AUGMENTED)


def refused_write(module: torch.nn.Module) -> Node | None:
    """The first call in a captured graph, or in a nested graph, whose write eager mode may
    reject."""
    graphs = (part.graph for part in module.modules() if isinstance(part, GraphModule))
    calls = (node for graph in graphs for node in graph.nodes if node.op.startswith("call_"))
    return next((node for node in calls if _may_be_refused(node)), None)


def with_lines(module: GraphModule) -> Callable[..., Any]:
    """A captured graph in eager mode; an exception gets the user's line as a note."""
    return _WithLines(module, garbage_collect_values=True).run


class _WithLines(Interpreter):
    def __init__(self, module: GraphModule, garbage_collect_values: bool) -> None:
        super().__init__(module, garbage_collect_values)
        self.extra_traceback = False

    def run_node(self, n: Node) -> Any:
        try:
            return super().run_node(n)
        except Exception as error:
            if line := code_line(n.stack_trace or ""):
                error.add_note(line)
            raise


# ---- one call --------------------------------------------------------------------------------


def _may_be_refused(node: Node) -> bool:
    name = _name_of(node)
    if not (_is_in_place(name) or "out" in node.kwargs or node.target is operator.setitem):
        return False
    if name in NEW_LAYOUT:
        return False
    args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda n: n.meta.get("example_value"))
    elementwise = _is_elementwise(name)
    in_place = elementwise or name == "copy_" or node.target is operator.setitem
    with suppress(RuntimeError), torch.no_grad():  # a size is known only at run time
        for written, read, copied in _pairs(node, args, kwargs):
            if shares_with_itself(written) or any(
                overlap(written, one, in_place and copied) for one in read
            ):
                return True
    function = _function(node)
    return elementwise and function is not None and is_refused_by_eager(function, args, kwargs)


def _is_in_place(name: str) -> bool:
    """`add_` and `__iand__` write to their first argument; `__and__` and `set_` do not."""
    if name.endswith("__"):
        return name in IN_PLACE_METHODS
    return name.endswith("_") and name != "set_"


def _name_of(node: Node) -> str:
    """The name of the called operator in ATen, if it is one: `add_`."""
    if isinstance(node.target, OpOverload):
        return str(node.target._schema.name.partition("::")[2])
    if isinstance(node.target, str):
        return node.target if node.op == "call_method" else ""
    return AUGMENTED.get(node.target) or str(getattr(node.target, "__name__", ""))


def _function(node: Node) -> Callable[..., Any] | None:
    if node.op == "call_method":
        return getattr(torch.Tensor, str(node.target), None)
    return None if node.op == "call_module" else node.target  # type: ignore[return-value]


def _is_elementwise(name: str) -> bool:
    """Does each element of the result depend only on the elements at the same position?"""
    packet = getattr(aten, name, None)
    if not isinstance(packet, OpOverloadPacket):  # `__eq__` is a Python method
        return False
    overloads = [getattr(packet, each) for each in packet.overloads()]
    tagged = [torch.Tag.pointwise in op.tags for op in overloads]
    seeded = any(torch.Tag.nondeterministic_seeded in op.tags for op in overloads)
    return any(tagged) and not seeded


def _pairs(
    node: Node, args: Any, kwargs: Any
) -> Iterator[tuple[torch.Tensor, list[torch.Tensor], bool]]:
    """Each tensor that a call writes, and the tensors that it reads for that; False if it writes to
    computed positions."""
    if node.target is operator.setitem:
        base, index, value = args
        if isinstance(base, torch.Tensor):
            places = _tensors(index)
            is_computed = bool(places) or any(map(_is_test, pytree.tree_leaves(index)))
            written = base if is_computed else base[index]
            yield written, [*places, *_tensors(value)], not is_computed
    elif "out" in kwargs:
        read = _tensors((args, {k: v for k, v in kwargs.items() if k != "out"}))
        for written in _tensors(kwargs["out"]):
            yield written, read, True
    elif args and isinstance(args[0], list | tuple):
        rest = [other for other in args[1:] if isinstance(other, list | tuple)]
        for place, written in enumerate(_tensors(args[0])):
            yield written, [t for o in rest if place < len(o) for t in _tensors(o[place])], True
    elif args and isinstance(args[0], torch.Tensor):
        yield args[0], _tensors((args[1:], kwargs)), True


def _is_test(index: Any) -> bool:
    """`x[n > 0]` is a mask, also if it is a symbol."""
    return isinstance(index, bool | torch.SymBool)


def _tensors(given: Any) -> list[torch.Tensor]:
    return [
        leaf for leaf in pytree.tree_leaves(given)
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
    ]  # fmt: skip


# ---- memory ----------------------------------------------------------------------------------


def shares_with_itself(x: torch.Tensor) -> bool:
    """Do several elements surely share memory?  Eager mode only checks for strides of 0."""
    if x.layout is not torch.strided:
        return False
    return any(stride == 0 and n > 1 for n, stride in zip(x.shape, x.stride(), strict=True))


def overlap(written: torch.Tensor, read: torch.Tensor, elementwise: bool) -> bool:
    """Do two tensors share memory according to eager mode's check?

    It checks only tensors without gaps.  Elementwise operators may write a tensor that they read if
    the elements are the same.
    """
    if written.layout is not torch.strided or written.untyped_storage()._cdata != (
        read.untyped_storage()._cdata
    ):
        return False
    if not (written.numel() and read.numel() and _is_dense(written) and _is_dense(read)):
        return False
    (first, end), (other_first, other_end) = map(_bytes, (written, read))
    if first == other_first and end == other_end and written.stride() == read.stride():
        return not elementwise
    return bool(first < other_end and other_first < end)


def _bytes(x: torch.Tensor) -> tuple[Any, Any]:
    first = x.storage_offset() * x.itemsize
    return first, first + x.numel() * x.itemsize


def _is_dense(x: torch.Tensor) -> bool:
    """Do the elements, in some order, fill an interval of memory?"""
    reach = 1
    pairs = [pair for pair in zip(x.stride(), x.shape, strict=True) if pair[1] != 1]
    for stride, size in sorted(pairs, key=lambda pair: pair[0]):
        if stride != reach:
            return False
        reach *= size
    return True
