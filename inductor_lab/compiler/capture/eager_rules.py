"""The rules for graphs that have no functional form, or for which AOTAutograd's form is wrong.

Each kind is a rule: a small function of a `Graph` that returns a reason or None.  `RULES` has them
in order.  `tests/capture/test_eager_fallback.py` has, for each rule, a graph that it accepts and
one that it refuses.
"""

from __future__ import annotations

import inspect
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.fx import Node

from inductor_lab.compiler.capture.memory import (
    Memory,
    extent,
    may_overlap,
    same_layout,
    storage_of,
    tensor_of,
)
from inductor_lab.compiler.torch_door.torch_api import (
    FakeTensor,
    OpOverload,
    OpOverloadPacket,
    expression_of,
    statically_known_true,
)
from inductor_lab.compiler.torch_door.torch_names import optional

_TracingContext = optional("torch._guards.TracingContext")
_DETACH = ("detach", "detach.default", "_get_data_attr")
_OF_TORCH = (
    "aten",
    "prims",
    "prim",
    "torch",
    "inductor",
    "higher_order",
    "c10d",
    "_c10d_functional",
)


@dataclass(frozen=True)
class Graph:
    """The input of the rules: a captured graph with its inputs."""

    module: torch.nn.Module
    inputs: Sequence[Any]

    @cached_property
    def memory(self) -> Memory:
        """The writes of the graph and their targets."""
        return Memory.of(self.module)

    @cached_property
    def given(self) -> list[tuple[Node, torch.Tensor]]:
        """The inputs that are strided tensors: nodes and fake tensors."""
        return [(n, fake) for n in self.placeholders if (fake := tensor_of(n)) is not None]

    @cached_property
    def placeholders(self) -> list[Node]:
        """The nodes of all inputs, in order."""
        return list(self.module.graph.find_nodes(op="placeholder"))  # type: ignore[union-attr, operator]

    @cached_property
    def results(self) -> list[Node]:
        """The nodes that the graph returns."""
        return list(self.module.graph.output_node().all_input_nodes)  # type: ignore[union-attr, operator]


@dataclass(frozen=True)
class Reason:
    """Why a graph runs in eager mode, and the node that causes it, if there is one."""

    text: str
    node: Node | None = None


Rule = Callable[[Graph], Reason | None]
RULES: dict[str, Rule] = {}
"""All rules by name, in the order in which they are applied."""


def rule(function: Rule) -> Rule:
    """Register a rule under its function's name."""
    if function.__name__ in RULES:
        raise ValueError(f"two rules are called {function.__name__}")
    RULES[function.__name__] = function
    return function


# ---- graphs that kernels cannot compute ----


@rule
def fake_inputs(graph: Graph) -> Reason | None:
    """A user's fake tensors (not TorchDynamo's own) have no memory for kernels to read."""
    context = _TracingContext and _TracingContext.try_get()
    own = context and context.fake_mode
    fakes = (given for given in graph.inputs if isinstance(given, FakeTensor))
    if any(given.fake_mode is not own for given in fakes):
        return Reason("its arguments are fake tensors, which have no memory")
    return None


@rule
def tangents(graph: Graph) -> Reason | None:
    """Kernels do not compute the tangents of tensors inside `forward_ad.dual_level`; TorchDynamo
    guards on that."""
    if getattr(torch.autograd.forward_ad, "_current_level", -1) >= 0:
        return Reason(
            "it is called under forward-mode differentiation, whose tensors have tangents"
        )
    return None


@rule
def resized_storage(graph: Graph) -> Reason | None:
    """Storage resizing has no functional form, so the graph runs in eager mode.  FSDP resizes
    storages."""
    for node in graph.memory.nodes:
        if "inductor.resize_storage_bytes_" in str(node.target):
            return Reason("it resizes the storage of a tensor", node)
    return None


@rule
def replaced_storage(graph: Graph) -> Reason | None:
    """`weight.data = x` gives a tensor another storage, and gradients would be lost."""
    for node in graph.memory.nodes:
        of = node.args[0] if node.args else None
        if not torch.is_grad_enabled() or not isinstance(of, Node):
            continue
        if _replaces_trained_storage(graph, node.target, of):
            return Reason("it replaces the storage of a tensor that requires a gradient", node)
    return None


# ---- positions in a storage ----


@rule
def place_in_a_moved_storage(graph: Graph) -> Reason | None:
    """A read at an absolute position in a storage depends on the storage offset of an input.
    TorchDynamo does not guard on that offset, and AOTAutograd's functional tensors lose it in a
    write:

        x = storage[2:]; x[1].mul_(2); y = x.as_strided((3,), (1,), 4)     y[0] is x[2], not x[4]
    """
    node = next(_placed(graph.memory.nodes), None)
    if node is not None and any(map(_is_moved, graph.inputs)):
        return Reason("it reads at an absolute position in the storage of an argument", node)
    return None


@rule
def other_elements_at_an_unknown_place(graph: Graph) -> Reason | None:
    """A result is a view of an input with another dtype, and its offset is read from a tensor:
    AOTAutograd does not know the offset."""
    dtypes = {storage_of(fake): fake.dtype for _, fake in reversed(graph.given)}
    for node in graph.results:
        fake = tensor_of(node)
        if fake is None or dtypes.get(storage_of(fake), fake.dtype) == fake.dtype:
            continue
        if isinstance(fake.storage_offset(), torch.SymInt):
            text = "a result is a view of an argument with another dtype at an unknown offset"
            return Reason(text, node)
    return None


# ---- writes for which AOTAutograd's functional form is wrong ----


@rule
def overlapping_write(graph: Graph) -> Reason | None:
    """A write through a view whose elements share memory.  The functional form adds up all
    elements, but eager mode writes one element:

        e = x.expand(3, -1); e[1].add_(4)     x + sum(new e - e), which is not exact
        x.expand(3, -1).zero_()               x - 3 * x, which is wrong
    """
    for writing in graph.memory.writings:
        for view in graph.memory.views_behind(writing.target):
            fake = tensor_of(view)
            if fake is not None and may_overlap(fake):
                return Reason("it writes through a view whose elements share memory", writing.node)
    return None


@rule
def write_through_gaps(graph: Graph) -> Reason | None:
    """After a write through windows (`unfold`) with gaps, the elements in the gaps would be
    zero."""
    for writing in graph.memory.writings:
        for view in graph.memory.views_behind(writing.target):
            if view.target in ("unfold", torch.Tensor.unfold) or "aten.unfold" in str(view.target):
                fake, of = tensor_of(view), tensor_of(view.all_input_nodes[0])
                if fake is None or of is None or not _as_many(fake, of):
                    return Reason("it writes through windows with gaps between them", writing.node)
    return None


@rule
def view_of_a_shared_argument(graph: Graph) -> Reason | None:
    """Arguments that share memory, one of which is written, become one input of AOTAutograd.  A
    result that is a view of one of the arguments is then computed from that input as if it were the
    argument:

        def f(t, rows): t.add_(1); return rows.view(-1)         f(t, t[1:]) gives t.view(-1)
    """
    for shared in _shared(graph).values():
        if not graph.memory.written(shared[0]):
            continue
        mine = storage_of(_fake(shared[0]))
        for node in graph.results:
            fake = tensor_of(node)
            if fake is not None and storage_of(fake) == mine and not _is_input(node, shared):
                text = "it returns a view of one of two arguments that share memory and are written"
                return Reason(text, node)
    return None


@rule
def write_to_an_argument_of_shared_memory(graph: Graph) -> Reason | None:
    """Arguments share memory and one of them overlaps itself: it cannot be computed from the
    others."""
    for shared in _shared(graph).values():
        if graph.memory.written(shared[0]) and any(may_overlap(_fake(node)) for node in shared):
            return Reason("two arguments share memory, one overlaps itself, and it is written to",
                          _writer(graph, shared[0]))  # fmt: skip
    return None


@rule
def returned_input_that_is_written(graph: Graph) -> Reason | None:
    """AOTAutograd returns wrong values if an input that requires a gradient is written, and an
    input that requires none is written and returned itself:

        def forward(self, x): x.mul_(2); self.calls += 1; return x + 1       returns the calls
    """
    given = [(node, fake) for node, fake in graph.given if graph.memory.written(node)]
    plain = [node for node, fake in given if not fake.requires_grad]
    returned = [node for node in graph.results if tensor_of(node) is not None]
    counters = [node for node in returned if _is_input(node, plain)]
    if not counters:
        return None
    trained = {storage_of(fake) for _, fake in given if fake.requires_grad}
    for writing in graph.memory.written_with_gradients():
        if not trained.isdisjoint(graph.memory.storages_of(writing.target)):
            text = "it writes to a tensor that requires a gradient, and to another that it returns"
            return Reason(text, writing.node)
    return None


@rule
def operator_with_an_alias(graph: Graph) -> Reason | None:
    """The result of a custom operator shares memory with an argument, which has no functional
    form."""
    for node in graph.memory.nodes:
        if not isinstance(node.target, OpOverload | OpOverloadPacket) or _is_of_torch(node.target):
            continue
        results = graph.memory.storages_of(node)
        if any(not results.isdisjoint(graph.memory.storages_of(n)) for n in node.all_input_nodes):
            return Reason("a result of a custom operator shares memory with an argument", node)
    return None


@rule
def operator_that_writes_detached(graph: Graph) -> Reason | None:
    """A custom operator writes two arguments that share memory, and one was detached separately.
    The functional form keeps only one of the writes:

        op(x.detach()[:1], x.detach()[1:])
    """
    written: dict[Node, list[Node]] = defaultdict(list)
    for writing in graph.memory.writings:
        written[writing.node].append(writing.target)
    for node, targets in written.items():
        if _is_of_torch(node.target):
            continue
        for one, other in itertools.combinations(targets, 2):
            shared = not graph.memory.storages_of(one).isdisjoint(graph.memory.storages_of(other))
            if shared and _detached(graph, one) != _detached(graph, other):
                text = "a custom operator writes two arguments that share memory, one detached"
                return Reason(text, node)
    return None


# ---- gradients that PyTorch loses ----


@rule
def write_after_retain_grad(graph: Graph) -> Reason | None:
    """The graph ends where the program calls `retain_grad`.  If it then writes to that tensor,
    PyTorch looks for the hook under the wrong number, unless the tensor is result 0 of its
    `grad_fn`, and calls a null pointer.  All results of a compiled graph have one `grad_fn`:

        y, z = x.sin(), x.cos(); z.retain_grad(); z[0] = 1; (y + z).sum().backward()
    """
    trained = [node for node in graph.results if (fake := tensor_of(node)) is not None
               and fake.requires_grad]  # fmt: skip
    end = getattr(graph.module, "compile_subgraph_reason", None)
    lines = [frame.line or "" for frame in end.user_stack] if end is not None else []
    if len(trained) > 1 and any("retain_grad" in line for line in lines):
        text = "it ends at `retain_grad()`, and PyTorch would lose that hook in a write"
        return Reason(text, trained[1])
    return None


# ---- operators that torch's definitions have wrong ----

_RESIZING = {
    "nearest": (1, 2),
    "linear": (1,),
    "bilinear": (1,),
    "trilinear": (1,),
    "bicubic": (1,),
}
"""By mode: the ratios of new to old size for which eager kernels ignore the scale."""


@rule
def resize_without_its_scale(graph: Graph) -> Reason | None:
    """A resize with a scale that eager kernels ignore and torch's decompositions use.

    Eager kernels copy a dimension if its size does not change, whatever the scale is:

        F.interpolate(x[3, 3], scale_factor=1.3)     eager: rows 0, 1, 2; decomposed: 0, 0, 1
    """
    for node in graph.memory.nodes:
        if node.target is torch.nn.functional.interpolate and _ignores_scale(node):
            text = "it resizes by a scale that eager mode ignores, as the size is the same or twice"
            return Reason(text, node)
    return None


def _ignores_scale(node: Node) -> bool:
    call = inspect.signature(torch.nn.functional.interpolate).bind(*node.args, **node.kwargs)
    call.apply_defaults()
    kept = _RESIZING.get(call.arguments["mode"], ())
    scales = call.arguments["scale_factor"]
    new, old = tensor_of(node), tensor_of(call.arguments["input"])
    if scales is None or call.arguments["recompute_scale_factor"] or new is None or old is None:
        return False
    sizes = list(zip(new.shape[2:], old.shape[2:], strict=True))
    factors = scales if isinstance(scales, list | tuple) else [scales] * len(sizes)
    return any(
        factor != times and statically_known_true(new == old * times)
        for (new, old), factor in zip(sizes, factors, strict=True)
        for times in kept
    )


# ---- helpers of the rules ----


def _replaces_trained_storage(graph: Graph, target: Any, of: Node) -> bool:
    """Is this the operation of `of.data = y`, where `of` requires a gradient?

    The operation is `set_` until torch 2.13.  The later one also replaces `requires_grad` of the
    fake tensor, so a value that the graph computes counts if any input requires a gradient.
    """
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    fake = tensor_of(of)
    if fake is None or name.split(".")[0] not in ("set_", "shallow_copy_data_"):
        return False
    if fake.requires_grad or name == "set_":
        return fake.requires_grad
    of_input = dict(zip(graph.placeholders, graph.inputs, strict=False))
    asked = [of_input[of]] if of in of_input else graph.inputs
    return any(isinstance(given, torch.Tensor) and given.requires_grad for given in asked)


def _detached(graph: Graph, node: Node) -> set[Node]:
    """The calls of `detach`, or reads of `data`, through which it is a view."""
    return {view for view in graph.memory.views_behind(node)
            if getattr(view.target, "__name__", view.target) in _DETACH}  # fmt: skip


def _fake(node: Node) -> torch.Tensor:
    fake = tensor_of(node)
    assert fake is not None, "an input that is a tensor"
    return fake


def _as_many(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Do two tensors have equally many elements for all values of the symbols?"""
    return bool(expression_of(one.numel()) == expression_of(other.numel()))


def _shared(graph: Graph) -> dict[int, list[Node]]:
    """The inputs of each storage in which two inputs may overlap."""
    by_storage: dict[int, list[Node]] = defaultdict(list)
    for node, fake in graph.given:
        by_storage[storage_of(fake)].append(node)
    return {storage: nodes for storage, nodes in by_storage.items() if _overlap(nodes)}


def _overlap(nodes: Sequence[Node]) -> bool:
    ends = sorted(extent(_fake(node)) for node in nodes)
    return any(first < last for (_, last), (first, _) in itertools.pairwise(ends))


def _is_input(node: Node, inputs: Sequence[Node]) -> bool:
    """Is this an input, or the result of writes to one?"""
    while node.op != "placeholder" and node.args and isinstance(node.args[0], Node):
        if not same_layout(_fake(node), tensor_of(node.args[0])):
            return False
        node = node.args[0]
    return node in inputs


def _writer(graph: Graph, of: Node) -> Node | None:
    mine = graph.memory.storages_of(of)
    writings = graph.memory.writings
    found = (w.node for w in writings if not mine.isdisjoint(graph.memory.storages_of(w.target)))
    return next(found, None)


def _is_of_torch(target: Any) -> bool:
    name = str(getattr(target, "namespace", "") or str(target).split(".")[0])
    return name in _OF_TORCH


def _placed(nodes: Iterable[Node]) -> Iterator[Node]:
    """The calls of `as_strided` with a storage offset."""
    strided = (node for node in nodes if "as_strided" in str(node.target))
    return (node for node in strided if node.args[3:] or "storage_offset" in node.kwargs)


def _is_moved(given: Any) -> bool:
    if not isinstance(given, torch.Tensor) or given.layout is not torch.strided:
        return False
    offset = given.storage_offset()
    return isinstance(offset, torch.SymInt) or offset != 0


def where_storage_begins(
    module: torch.nn.Module, compiled: Callable[..., Any]
) -> Callable[..., Any]:
    """The compiled graph, except if it reads at an absolute position of a storage and a tensor has
    a storage offset: then it runs in eager mode."""
    if next(_placed(Memory.of(module).nodes), None) is None:
        return compiled
    return lambda *args: (module.forward if any(map(_is_moved, args)) else compiled)(*args)


def captured(nodes: Iterable[Node]) -> list[torch.Tensor]:
    """The strided tensors among nodes of a TorchDynamo graph."""
    return [fake for node in nodes if (fake := tensor_of(node)) is not None]
