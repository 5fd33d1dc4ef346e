"""Convolutions for images: channels next to each other in memory, what follows channel by channel
folded into the weights (on the CPU).

    conv(x, w)                           →       conv(channels_last(x), channels_last(w))

    y = conv(x, w)                               w' = w * (r * gamma);  b' = beta - mean * r * gamma
    ((y - mean) * r) * gamma + beta      →       conv(x, w', b')

A parameter goes to an operator of ours that keeps it, times the factors, as the library wants it
(`runtime/packing.py`).  Other weights, and those of graphs with a backward, are computed in each
call, in one pass of ours that also lays them out; there the rewrite pays where images are larger
than weights.  Both are right whatever was changed.

Inductor: `freezing_patterns.py`, `binary_folding.py` (for frozen weights only) and `compile_fx.py`,
layout_optimization.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.capture.operands import operand
from inductor_lab.library_ops import OWN_CONVOLUTION, packs_convolutions
from inductor_lab.rewrite.adding import Adder, computed, flat
from inductor_lab.rewrite.aliases import facts, same_sizes
from inductor_lab.torch_api import is_own, size_hint

aten = torch.ops.aten
CHANNELS_LAST = {"memory_format": torch.channels_last}
ROW_MAJOR = {"memory_format": torch.contiguous_format}
SMALLEST = 2**18
"""Elements of images below which all of it is over before a layout matters."""
SMALLEST_KEPT = 2**15
"""Elements of a weight below which computing it in each call takes less than asking whether it is
still the one that was packed (about 30 us)."""
WEIGHT = 1.5
"""How much larger than the weights, which are copied in each call, the images must be.  A MB of
images saves about 0.15 ms of one thread in the library, a MB of weights costs 0.17 ms."""
RESULT = 4
"""What an image costs that has to be changed back for who gets it, as a multiple of its size."""


def convolutions_of(module: GraphModule) -> list[Node]:
    """The convolutions of float32 images that a CPU does; their sizes must be known."""
    nodes = module.graph.find_nodes(op="call_function", target=aten.convolution.default)
    return [node for node in nodes if _is_known(node)]


def _is_known(node: Node) -> bool:
    values = [node.meta["val"], *(operand(node, k).meta["val"] for k in (0, 1))]
    if any(v.device.type != "cpu" or v.dtype is not torch.float32 for v in values):
        return False
    return all(v.dim() == 4 and all(isinstance(n, int) for n in v.shape) for v in values) and (
        not node.args[6]
    )


# ---- layout ----------------------------------------------------------------------------------


class ChannelsLast:
    """Lays the images of a graph out with the channels next to each other, or leaves all as it was.

    Every node gets the facts that follow; results of the graph keep their strides.  Training
    returns nearly all images, for the backward, so there it does not pay.  Weights that are `kept`
    packed stay as they are.
    """

    def __init__(self, module: GraphModule, convolutions: list[Node], kept: set[Node]) -> None:
        self.graph, self.convolutions, self.kept = module.graph, convolutions, kept
        self.before = {node: node.meta["val"] for node in self.graph.nodes if "val" in node.meta}
        self.added: list[Node] = []
        self.images = sum(n.meta["val"].numel() + _numel(operand(n)) for n in convolutions)
        weights = (operand(node, 1) for node in convolutions)
        self.weights = sum(_numel(weight) for weight in weights if weight not in kept)

    def apply(self) -> bool:
        """Did it pay, and work?"""
        if self.images < SMALLEST or self.images < WEIGHT * self.weights:
            return False
        if any(map(_looks_at_storage, self.graph.nodes)):
            return False
        if all(_is_last(operand(node).meta["val"]) for node in self.convolutions):
            return False
        given = {node: (node.args, node.kwargs) for node in self.graph.nodes}
        if self._relay() and self._restore_outputs():
            return True
        for node, (args, kwargs) in given.items():
            node.args, node.kwargs = args, kwargs
        for node, value in self.before.items():
            node.meta["val"] = value
        for node in reversed(self.added):
            self.graph.erase_node(node)
        return False

    def _relay(self) -> bool:
        changed: set[Node] = set()
        for node in list(self.graph.nodes):
            if node in self.convolutions:
                x, weight, *rest = node.args
                weight = weight if weight in self.kept else self._last(node, weight)
                node.args = (self._last(node, x), weight, *rest)
            elif node.op != "call_function" or changed.isdisjoint(node.all_input_nodes):
                continue
            elif not is_own(node.target) and node.target is not operator.getitem:
                if not self._restore(node, [n for n in node.all_input_nodes if n in changed]):
                    return False
                continue
            try:
                new = computed(node)
            except Exception:  # a view of what was row-major
                node.args = tuple(self._row_major(node, a, changed) for a in node.args)
                continue
            if new is None or _shapes(new) != _shapes(self.before[node]):
                return False
            node.meta["val"] = new
            if _strides(new) != _strides(self.before[node]):
                changed.add(node)
        return True

    def _last(self, user: Node, x: Node) -> Node:
        return x if _is_last(x.meta["val"]) else self._copy(user, x, CHANNELS_LAST)

    def _row_major(self, user: Node, x: Any, changed: set[Node]) -> Any:
        return self._copy(user, x, ROW_MAJOR) if isinstance(x, Node) and x in changed else x

    def _copy(self, user: Node, x: Node, how: dict[str, Any]) -> Node:
        copy = Adder(user, [x if user.op == "output" else user])(aten.clone.default, x, **how)
        self.added.append(copy)
        return copy

    def _restore_outputs(self) -> bool:
        """Give the results the strides that they had; too many of them, and nothing is won."""
        (output,) = self.graph.find_nodes(op="output")
        results = [node for node in output.all_input_nodes if node in self.before]
        moved = [n for n in results if _strides(n.meta["val"]) != _strides(self.before[n])]
        if WEIGHT * self.weights + RESULT * sum(map(_numel, moved)) > self.images:
            return False
        return self._restore(output, moved)

    def _restore(self, user: Node, moved: list[Node]) -> bool:
        """Give `user` the strides that it had; False if that is not possible."""
        for node in moved:
            copy = self._copy(user, node, ROW_MAJOR)
            if facts(copy.meta["val"]) != facts(self.before[node]):
                return False
            user.replace_input_with(node, copy)
        return True


def _numel(node: Node) -> int:
    return sum(math.prod(map(size_hint, tensor.shape)) for tensor in flat((node.meta["val"],)))


def _looks_at_storage(node: Node) -> bool:
    """May the result depend on how an operand lies in memory, or on what is in it?"""
    name = str(node.target)
    return "stride" in name or "storage" in name or "unbacked_bindings" in node.meta


def _is_last(value: Any) -> bool:
    return bool(value.is_contiguous(memory_format=torch.channels_last))


def _shapes(value: Any) -> list[tuple[Any, ...]]:
    return [facts(tensor)[:-1] for tensor in flat((value,))]


def _strides(value: Any) -> list[tuple[Any, ...]]:
    return [facts(tensor) for tensor in flat((value,))]


# ---- batch norm ------------------------------------------------------------------------------


def folded_norm(convolution: Node, kept: set[Node]) -> tuple[Node, Node] | None:
    """The last of the sums and products with one number for each channel that follow a convolution,
    and a convolution that gives the same; None if nothing can be folded."""
    x, weight, bias, *rest = convolution.args
    steps = list(_affine_steps(convolution))
    if not any(step.target is aten.mul.Tensor for step, _ in steps):
        return None
    last = steps[-1][0]
    add = Adder(last, [convolution, *(step for step, _ in steps)])
    scale: Node | None = None
    shift = bias if isinstance(bias, Node) else None
    for step, given in steps:
        number = add(aten.view.default, given, [-1])
        if step.target is aten.mul.Tensor:
            scale = number if scale is None else add(aten.mul.Tensor, scale, number)
            shift = shift and add(aten.mul.Tensor, shift, number)
        elif shift is None:
            is_sum = step.target is aten.add.Tensor
            shift = number if is_sum else add(aten.neg.default, number)
        else:
            shift = add(step.target, shift, number)
    if weight in kept:
        return last, _packed(add, convolution, scale, shift)
    column = add(aten.view.default, scale, [-1, 1, 1, 1])
    weight = add(aten.mul.Tensor, weight, column)
    return last, add(aten.convolution.default, x, weight, shift, *rest)


def _affine_steps(node: Node) -> Iterator[tuple[Node, Node]]:
    """The calls after `node`, each the only use of the one before it, and their other operand."""
    channels = node.meta["val"].shape[1]
    while len(node.users) == 1:
        (user,) = node.users
        if user.target not in (aten.sub.Tensor, aten.mul.Tensor, aten.add.Tensor):
            return
        if user.kwargs or len(user.args) != 2 or not isinstance(channels, int):
            return
        left, right = user.args
        given = right if left is node else left
        if user.target is aten.sub.Tensor and left is not node:
            return
        if given is node or not isinstance(given, Node) or not _is_per_channel(given, channels):
            return
        yield user, given
        node = user


def _is_per_channel(given: Node, channels: int) -> bool:
    value = given.meta["val"]
    shape = (1,) * (4 - value.dim()) + tuple(value.shape)
    return value.dtype is torch.float32 and same_sizes(shape, (1, channels, 1, 1))


# ---- packed weights --------------------------------------------------------------------------


def weights_to_keep(convolutions: list[Node]) -> set[Node]:
    """The weights of convolutions that are worth keeping packed, if oneDNN is there."""
    weights = {operand(node, 1) for node in convolutions} if packs_convolutions() else set()
    return set(filter(_is_kept, weights))


def _is_kept(weight: Node) -> bool:
    """Is it a parameter, not small, and does nothing but convolutions read it?"""
    only = all(user.target is aten.convolution.default for user in weight.users)
    is_parameter = weight.meta.get("lab_parameter", False)
    return is_parameter and only and _numel(weight) >= SMALLEST_KEPT


def packed_convolution(convolution: Node) -> Node:
    """The same by the operator that keeps the weight packed."""
    bias = operand(convolution, 2) if convolution.args[2] is not None else None
    return _packed(Adder(convolution, [convolution]), convolution, None, bias)


def _packed(add: Adder, convolution: Node, scale: Node | None, bias: Node | None) -> Node:
    x, weight, _, stride, padding, dilation, _, _, groups = convolution.args
    return add(OWN_CONVOLUTION, x, weight, scale, bias, stride, padding, dilation, groups)
