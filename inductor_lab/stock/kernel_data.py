"""What each kernel of stock computes, as data: ordered operations, buffers, recomputed values.

A value is recomputed if several kernels compute it from the same inputs: stock inlines cheap
operations into every reader.  A node of the scheduler computes an FX node if it is one of its
origins and all inputs are there: computed by the same node, or loaded from a buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from inductor_lab.compiler.capture.fx_graph import FxNode
from inductor_lab.compiler.ir.flops import FIRST, SECOND, call_flops
from inductor_lab.stock.decide import StockSchedule
from inductor_lab.stock.kernel_places import KernelCall, parameters
from inductor_lab.stock.output_code import operator_of
from inductor_lab.stock.scheduler_nodes import LayoutFacts, NodeFacts
from inductor_lab.stock.stock_compilation import (
    Filling,
    RecomputedValue,
    StockBuffer,
    StockKernel,
    StockOperation,
    StockPart,
)

VIEWS = frozenset((
    "alias", "as_strided", "detach", "diagonal", "expand", "getitem", "permute", "reshape",
    "select", "slice", "squeeze", "t", "transpose", "unsqueeze", "view",
))  # fmt: skip
"""Operators that compute nothing."""


def with_operations(part: StockPart) -> StockPart:
    """The part, whose kernels have operations, buffers and recomputed values; unchanged if stock
    did not report its IR."""
    if not part.ir_before:
        return part
    data = KernelData(StockSchedule.of(part))
    return replace(part, kernels=tuple(data.of(kernel) for kernel in part.kernels))


class KernelData:
    """Makes the data of the kernels of one part."""

    def __init__(self, schedule: StockSchedule) -> None:
        self.schedule, self.part = schedule, schedule.part
        self.graph: Mapping[str, FxNode] = {node.name: node for node in schedule.part.last.nodes}
        self.layouts: dict[str, LayoutFacts] = {}
        for node in schedule.facts.values():
            self.layouts |= node.layouts

    def of(self, kernel: StockKernel) -> StockKernel:
        """The kernel with its data."""
        nodes = list(self._nodes(kernel.name))
        calls = [call for call in self.schedule.calls if call.kernel == kernel.name]
        stored = {name for call in calls for name in call.names}
        flops = sum(node.flops for node in nodes)
        if kernel.language == "extern":
            flops = sum(map(self._library_flops, kernel.nodes))
        return replace(
            kernel,
            operations=tuple(self._operation(n, stored) for n in nodes if n.is_generated),
            buffers=tuple(self._buffers(kernel, calls[0])) if calls else (),
            recomputed=tuple(self._recomputed(kernel.name)),
            flops=flops,
        )

    def _nodes(self, kernel: str) -> Iterator[NodeFacts]:
        """The nodes that a kernel computes, in the order of its code."""
        for name in (name for node in self.part.ir_after for name in node.members):
            place = self.schedule.places.get(name)
            if place is not None and place.kernel == kernel:
                yield self.schedule.facts[name]

    def _operation(self, node: NodeFacts, stored: set[str]) -> StockOperation:
        return StockOperation(
            node=node.name,
            nest=node.nest,
            buffer=node.buffer,
            role="stored" if {*node.outputs, *node.mutates} & stored else "register",
            axes=node.iterates or (),
            reduce_axes=node.reduced,
            reads=node.reads,
            text="\n".join(node.body),
            origins=node.origins,
        )

    # ---- buffers ------------------------------------------------------------------------------

    def _buffers(self, kernel: StockKernel, call: KernelCall) -> Iterator[StockBuffer]:
        """The buffers of a call with their roles, in the order of the parameters."""
        for name, (parameter, roles) in zip(call.arguments, parameters(kernel), strict=False):
            layout = self.layouts.get(name)
            for role in roles if layout is not None else ():
                assert layout is not None
                yield StockBuffer(name, parameter, role, self._filled_by(name), layout.dtype,
                                  layout.size, layout.stride, layout.nbytes)  # fmt: skip

    def _filled_by(self, name: str) -> Filling:
        for node in self.schedule.facts.values():
            if name in node.outputs:
                return "computed" if node.is_generated else "extern"
        return "constant" if name.startswith("constant") else "input"

    # ---- values -------------------------------------------------------------------------------

    def _recomputed(self, kernel: str) -> Iterator[RecomputedValue]:
        for value, kernels in self._computed_in.items():
            others = tuple(sorted(kernels - {kernel}))
            if kernel in kernels and others:
                yield RecomputedValue(value, others)

    @cached_property
    def _computed_in(self) -> Mapping[str, frozenset[str]]:
        """FX node → the kernels that compute it."""
        found: dict[str, set[str]] = {}
        for name, node in self.schedule.facts.items():
            place = self.schedule.places.get(name)
            if place is not None and node.is_generated:
                for value in self._computes(node):
                    found.setdefault(value, set()).add(place.kernel)
        return {name: frozenset(kernels) for name, kernels in found.items()}

    def _computes(self, node: NodeFacts) -> set[str]:
        """The FX nodes that a node of the scheduler computes from what it loads."""
        loaded = {*node.reads}.union(*(self._held[name] for name in node.reads
                                       if name in self._held))  # fmt: skip
        found: set[str] = set()
        for name, fx in self.graph.items():
            there = [each for each in fx.inputs if self._tensor(each)]
            if there and all(each in loaded or each in found for each in there):
                if operator_of(fx) in VIEWS:
                    loaded.add(name)
                elif name in node.origins:
                    found.add(name)
        return found

    def _tensor(self, name: str) -> bool:
        node = self.graph.get(name)
        return node is not None and node.tensor is not None

    @cached_property
    def _held(self) -> Mapping[str, frozenset[str]]:
        """Buffer → the FX nodes whose value it holds."""
        found = {}
        for name, node in self.schedule.facts.items():
            origins = self.schedule.origins(name)
            known = [self.graph[each] for each in origins if each in self.graph]
            held = origins.difference(*(each.inputs for each in known))
            found.update(dict.fromkeys(node.outputs, held))
        return found

    def _library_flops(self, name: str) -> int:
        """The arithmetic of a matrix product; 0 for other functions and symbolic sizes."""
        node = self.graph.get(name)
        operator = operator_of(node) if node is not None else ""
        if node is None or node.tensor is None or operator not in FIRST | SECOND:
            return 0
        inputs = [self.graph[each].tensor for each in node.inputs if each in self.graph]
        shapes = [_numbers(each.shape) for each in inputs if each is not None]
        made = _numbers(node.tensor.shape)
        if made is None or len(shapes) < 2 or None in shapes:
            return 0
        return call_flops(node.target.removeprefix("torch.ops."), shapes, made)


def _numbers(shape: Iterable[str]) -> tuple[int, ...] | None:
    sizes = tuple(shape)
    return tuple(map(int, sizes)) if all(size.isdigit() for size in sizes) else None

