"""Uses the channels-last layout for convolutions of images, and folds batch norm on the CPU.

    conv(x, w)                           →       conv(channels_last(x), channels_last(w))

    y = conv(x, w)                               w' = w * (r * gamma);  b' = beta - mean * r * gamma
    ((y - mean) * r) * gamma + beta      →       conv(x, w', b')

A weight that is a parameter is passed to our own operator, which keeps it scaled and packed for the
library (`accelerate/packing.py`).  Other weights, and those of graphs with a backward, are scaled
and laid out in each call by one kernel.  This pays off if images are larger than weights.  Both
forms notice changes of a weight.  On a GPU nothing is folded: the library does not add the bias
itself, and the following kernel reads the few numbers per channel at almost no cost.

Inductor: `freezing_patterns.py`, `binary_folding.py` (for frozen weights only) and `compile_fx.py`,
layout_optimization.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.base.errors import working_on
from inductor_lab.compiler.capture.operands import operand
from inductor_lab.compiler.ir.library_ops import OWN_CONVOLUTION, packs_convolutions
from inductor_lab.compiler.rewrite.aliases import Aliases, facts, same_sizes
from inductor_lab.compiler.rewrite.facts import RewriteFacts
from inductor_lab.compiler.rewrite.insert_calls import Adder, computed, flat
from inductor_lab.compiler.rewrite.passes import dead_code, replaced
from inductor_lab.compiler.rewrite.rewrites import Fired
from inductor_lab.compiler.torch_door.torch_api import is_own, size_hint

aten = torch.ops.aten
CHANNELS_LAST = {"memory_format": torch.channels_last}
ROW_MAJOR = {"memory_format": torch.contiguous_format}
SMALLEST = 2**18
"""With fewer image elements, the layout makes no difference."""
SMALLEST_KEPT = 2**15
"""With fewer weight elements, scaling the weight in each call takes less time than checking that
the packed weight is up to date: about 30 us (2026-11-22; the machine was not noted)."""
WEIGHT = 1.5
"""The minimum ratio of the sizes of images and weights, because weights are copied in each call.  A
MB of images saves about 0.15 ms of one thread in the library, a MB of weights costs 0.17 ms
(2026-11-22; the machine and the command were not noted)."""
RESULT = 4
"""The cost of a result whose layout must be changed back, as a multiple of its size (chosen, not
measured)."""


BACKWARD = aten.convolution_backward.default
OPERANDS: dict[Any, int] = {aten.convolution.default: 2, BACKWARD: 3}
"""The number of images and weights among the first arguments of each operator."""
TRAINED_ON = ("cuda",)
"""The devices on which the layout is also used for training (others were not measured)."""
DTYPES = {"cpu": (torch.float32,), "cuda": (torch.float32, torch.float16, torch.bfloat16)}
"""The dtypes for which the library of a device is fastest in channels-last layout."""


def convolutions_of(module: GraphModule) -> list[Node]:
    """Return convolutions of images with static sizes, whose library benefits from the layout."""
    nodes = module.graph.find_nodes(op="call_function", target=aten.convolution.default)
    return [node for node in nodes if _is_known(node)]


def _is_known(node: Node) -> bool:
    values = [operand(node, k).meta["val"] for k in range(OPERANDS[node.target])]
    if any(v.dtype not in DTYPES.get(v.device.type, ()) for v in values):
        return False
    transposed = node.args[6 if node.target is aten.convolution.default else 7]
    return not transposed and all(
        v.dim() == 4 and all(isinstance(n, int) for n in v.shape) for v in values
    )


# ---- layout ----------------------------------------------------------------------------------


class ChannelsLast:
    """Changes the images of a graph to the channels-last layout, or leaves the graph unchanged.

    Every node gets updated metadata.  Results of the graph keep their strides.  A forward returns
    nearly all images for its backward, so the layout does not pay off for a forward alone.
    Therefore a joint graph is changed before it is partitioned.  Weights in `kept` are packed
    anyway, and do not change.
    """

    def __init__(self, module: GraphModule, convolutions: list[Node], kept: set[Node]) -> None:
        self.graph, self.convolutions, self.kept = module.graph, convolutions, kept
        backwards = module.graph.find_nodes(op="call_function", target=BACKWARD)
        self.relaid = {*convolutions, *filter(_is_known, backwards)}
        self.before = {node: node.meta["val"] for node in self.graph.nodes if "val" in node.meta}
        self.added: list[Node] = []
        self.images = sum(n.meta["val"].numel() + _numel(operand(n)) for n in convolutions)
        weights = (operand(node, 1) for node in convolutions)
        self.weights = sum(_numel(weight) for weight in weights if weight not in kept)

    def apply(self) -> bool:
        """Change the layout if this pays off and is possible; return whether it was changed."""
        if self.images < max(SMALLEST, WEIGHT * self.weights):
            return False
        if any(map(_looks_at_storage, self.graph.nodes)) or any(map(_loses, self.convolutions)):
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
            moved = [given for given in node.all_input_nodes if given in changed]
            if node in self.relaid:
                count = OPERANDS[node.target]
                laid = (x if x in self.kept else self._last(node, x) for x in node.args[:count])
                node.args = (*laid, *node.args[count:])
            elif node.op != "call_function" or not moved:
                continue
            known = is_own(node.target) or node.target is operator.getitem
            try:
                new = computed(node) if known else None
            except Exception:  # a view that requires a row-major operand
                new = None
            if new is None:
                if node in self.relaid or not self._restore(node, moved):
                    return False
                continue
            images = (image for image in flat((new,)) if image.dim() == 4)
            ignored = node in self.relaid and not all(map(_is_last, images))  # its own layout
            if ignored or _shapes(new) != _shapes(self.before[node]):
                return False
            node.meta["val"] = new
            if _strides(new) != _strides(self.before[node]):
                changed.add(node)
        return True

    def _last(self, user: Node, x: Node) -> Node:
        return x if _is_last(x.meta["val"]) else self._copy(user, x, CHANNELS_LAST)

    def _copy(self, user: Node, x: Node, how: dict[str, Any]) -> Node:
        copy = Adder(user, [x if user.op == "output" else user])(aten.clone.default, x, **how)
        self.added.append(copy)
        return copy

    def _restore_outputs(self) -> bool:
        """Restore the strides of results; return False if this costs more than the layout saves."""
        (output,) = self.graph.find_nodes(op="output")
        results = [node for node in output.all_input_nodes if node in self.before]
        moved = [n for n in results if _strides(n.meta["val"]) != _strides(self.before[n])]
        if WEIGHT * self.weights + RESULT * sum(map(_numel, moved)) > self.images:
            return False
        return self._restore(output, moved)

    def _restore(self, user: Node, moved: list[Node]) -> bool:
        """Restore the strides of the operands of `user`; return False if this is not possible."""
        for node in moved:
            copy = self._copy(user, node, ROW_MAJOR)
            if facts(copy.meta["val"]) != facts(self.before[node]):
                return False
            user.replace_input_with(node, copy)
        return True


def _numel(node: Node) -> int:
    return sum(math.prod(map(size_hint, tensor.shape)) for tensor in flat((node.meta["val"],)))


def _looks_at_storage(node: Node) -> bool:
    """Can the result depend on the layout of an operand, or its size on data?"""
    name = str(node.target)
    return "stride" in name or "storage" in name or "unbacked_bindings" in node.meta


def _loses(convolution: Node) -> bool:
    """Is it a grouped convolution on a GPU, for which channels-last kernels are slow?"""
    weight = operand(convolution, 1).meta["val"]
    return bool(convolution.args[8] != 1 and weight.shape[1] > 1 and weight.device.type != "cpu")


def _is_last(value: Any) -> bool:
    return bool(value.is_contiguous(memory_format=torch.channels_last))


def _shapes(value: Any) -> list[tuple[Any, ...]]:
    return [facts(tensor)[:-1] for tensor in flat((value,))]


def _strides(value: Any) -> list[tuple[Any, ...]]:
    return [facts(tensor) for tensor in flat((value,))]


# ---- batch norm ------------------------------------------------------------------------------


def folded_norm(convolution: Node, kept: set[Node]) -> tuple[Node, Node] | None:
    """Fold sums and products with one number per channel into the convolution before them.

    Returns the last of them and the new convolution, or None if nothing can be folded.
    """
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
    """Yield the chain of sums and products after `node`, each with its other operand.

    Each call is the only user of the call before it.
    """
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
        if given is node or not isinstance(given, Node) or not _folds(given, channels):
            return
        yield user, given
        node = user


def _folds(given: Node, channels: int) -> bool:
    """Does `given` have one number per channel, on the CPU, in float32?"""
    value = given.meta["val"]
    shape = (1,) * (4 - value.dim()) + tuple(value.shape)
    known = value.dtype is torch.float32 and value.device.type == "cpu"
    return known and same_sizes(shape, (1, channels, 1, 1))


# ---- packed weights --------------------------------------------------------------------------


def weights_to_keep(convolutions: list[Node]) -> set[Node]:
    """Return the weights of convolutions that are worth packing, if oneDNN is available."""
    weights = {operand(node, 1) for node in convolutions} if packs_convolutions() else set()
    return set(filter(_is_kept, weights))


def _is_kept(weight: Node) -> bool:
    """Is it a large parameter on the CPU that only convolutions read?"""
    only = all(user.target is aten.convolution.default for user in weight.users)
    of_cpu = weight.meta["val"].device.type == "cpu" and weight.meta.get("lab_parameter", False)
    return of_cpu and only and _numel(weight) >= SMALLEST_KEPT


def packed_convolution(convolution: Node) -> Node:
    """Return the same convolution by the operator that packs the weight."""
    bias = operand(convolution, 2) if convolution.args[2] is not None else None
    return _packed(Adder(convolution, [convolution]), convolution, None, bias)


def _packed(add: Adder, convolution: Node, scale: Node | None, bias: Node | None) -> Node:
    x, weight, _, stride, padding, dilation, _, _, groups = convolution.args
    return add(OWN_CONVOLUTION, x, weight, scale, bias, stride, padding, dilation, groups)


def convolutions(module: GraphModule, facts: RewriteFacts) -> Iterable[Fired]:
    """Use the channels-last layout for images, and fold batch norm into the weights."""
    if Aliases(module.graph).written or not convolutions_of(module):
        return
    yield from dead_code(module, facts)
    nodes = convolutions_of(module)
    kept = weights_to_keep(nodes)
    with working_on(tuple(node.name for node in nodes)):
        if "channels_last" in facts.off or not ChannelsLast(module, nodes, kept).apply():
            return
    for node in nodes:
        yield Fired("channels_last", node.name, node.name, facts.span_of(node))
        found = None if "batch_norm" in facts.off else folded_norm(node, kept)
        if found is not None:
            yield replaced("batch_norm", *found, facts.span_of)
        elif node.args[1] in kept:
            yield replaced("packed_weight", node, packed_convolution(node), facts.span_of)


def channels_last_training(module: GraphModule, off: frozenset[str]) -> None:
    """Use the channels-last layout in a joint graph, so that saved images have this layout too."""
    nodes = convolutions_of(module)
    there = all(node.meta["val"].device.type in TRAINED_ON for node in nodes)
    if nodes and there and off.isdisjoint({"convolutions", "channels_last"}):
        with working_on(tuple(node.name for node in nodes)):
            ChannelsLast(module, nodes, set()).apply()

