"""Stock's graphs before and after each of its passes, and the wrapper that it wrote.

    captured graph ─ pre_grad_passes ─▸ AOTAutograd ─ joint_graph_passes ─▸ partition
        ─ post_grad_passes ─▸ GraphLowering ─▸ wrapper module with its kernels

Passes run inside of `GraphTransformObserver`, which knows their names; `StockRecord.recording`
listens there while stock compiles, and restores what it found.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule, Node

from inductor_lab.compiler.torch_door import torch_api


@dataclass(frozen=True)
class Snapshot:
    """A graph after a pass; `label` is `"joint_graph_passes: remove_noop_ops"`."""

    label: str
    module: GraphModule


@dataclass(frozen=True)
class BufferFacts:
    """What stock knows of a buffer: the node whose value it holds, its layout, and the names of
    the buffers that it writes to."""

    node: str
    size: tuple[int, ...] | None
    stride: tuple[int, ...] | None
    writes_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class WrapperCode:
    """The wrapper that stock wrote for one part: its module, its text, its buffers in order."""

    module: Any
    text: str
    buffers: Mapping[str, BufferFacts]
    provenance: Mapping[str, list[str]]


@dataclass
class StockRecord:
    """What one graph went through: chains of snapshots by place (`"pre_grad"`, `"joint"`,
    `"forward"`, `"backward"`), and the wrapper of each part.

    Stock runs its passes on the graphs of branches and loop bodies, too.  A chain has the outermost
    graph, which contains those; `inner` are the inner ones.  `lowered` is the node that is being
    lowered: it is still set if its lowering raised.
    """

    chains: dict[str, list[Snapshot]] = field(default_factory=dict)
    wrappers: dict[str, WrapperCode] = field(default_factory=dict)
    part: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    sources: dict[str, list[GraphModule]] = field(default_factory=dict)
    inner: list[GraphModule] = field(default_factory=list)
    lowered: Node | None = None

    def keep(self, label: str, module: GraphModule, place: str) -> None:
        """Add a snapshot of the outermost graph if it, or a graph inside it, has changed."""
        if any(module is each for each in self.inner):
            if not self.sources.get(place):
                return
            module, label = self.sources[place][-1], f"{label} (inner graph)"
        graphs = [each for each in module.modules() if isinstance(each, GraphModule)]
        self.inner += graphs[1:]
        self._drop_inner(place)
        text = "\n".join(str(each.graph) for each in graphs)
        if self.texts.get(place) != text:
            self.texts[place] = text
            snapshot = Snapshot(label, _copy_with_inner(module))
            self.chains.setdefault(place, []).append(snapshot)
            self.sources.setdefault(place, []).append(module)

    def _drop_inner(self, place: str) -> None:
        """Passes run on inner graphs first: drop those that have turned out to be inner ones."""
        chain, sources = self.chains.get(place, []), self.sources.get(place, [])
        stay = [n for n, source in enumerate(sources)
                if not any(source is each for each in self.inner)]  # fmt: skip
        chain[:], sources[:] = [chain[n] for n in stay], [sources[n] for n in stay]

    def _place(self, subsystem: str) -> str:
        return self.part or {"pre_grad_passes": "pre_grad"}.get(subsystem, "joint")

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Listen to the passes and to the code generator of stock in this block."""
        observer: Any = importlib.import_module(
            "torch.fx.passes.graph_transform_observer"
        ).GraphTransformObserver
        lowering: Any = importlib.import_module("torch._inductor.graph").GraphLowering
        enter, leave, compile_it, lower = (
            observer.__enter__, observer.__exit__, lowering.compile_to_module, lowering.run_node,
        )  # fmt: skip

        def entered(this: Any) -> Any:
            found = enter(this)
            subsystem = this.subsystem or "passes"
            self.keep(f"{subsystem}: before {this.passname}", this.gm, self._place(subsystem))
            return found

        def left(this: Any, kind: Any, *more: Any) -> None:
            leave(this, kind, *more)
            if kind is None:
                subsystem = this.subsystem or "passes"
                self.keep(f"{subsystem}: {this.passname}", this.gm, self._place(subsystem))

        def compiled(this: Any) -> Any:
            if self.part and isinstance(this.module, GraphModule):
                self.keep("post_grad_passes: the last ones", this.module, self.part)
            made = compile_it(this)
            if self.part:
                self.wrappers[self.part] = _wrapper_of(this, made)
            return made

        def lowered(this: Any, n: Node) -> Any:
            self.lowered = n
            made = lower(this, n)
            self.lowered = None
            return made

        observer.__enter__, observer.__exit__ = entered, left
        lowering.compile_to_module, lowering.run_node = compiled, lowered
        try:
            yield
        finally:
            observer.__enter__, observer.__exit__ = enter, leave
            lowering.compile_to_module, lowering.run_node = compile_it, lower


def _copy_with_inner(module: GraphModule) -> GraphModule:
    """A copy that runs: stock makes some operators write in place, which then return None, and
    leaves the unused nodes that read their results."""
    copied = torch_api.copy_of(module)
    for node in tuple(copied.graph.find_nodes(op="call_function", target=operator.getitem)):
        if not node.users:
            copied.graph.erase_node(node)
    for name, child in module.named_children():
        if isinstance(child, GraphModule):
            setattr(copied, name, _copy_with_inner(child))
    return copied


def _wrapper_of(lowering: Any, made: Any) -> WrapperCode:
    text = Path(made.__file__).read_text(encoding="utf-8")
    found = {name: _facts(buffer) for name, buffer in lowering.name_to_buffer.items()}
    debug = importlib.import_module("torch._inductor.debug")
    told = getattr(debug, "_inductor_triton_kernel_to_post_grad_node_info", {})
    provenance = {name: list(nodes) for name, nodes in told.items()}
    return WrapperCode(made, text, found, provenance)


def _facts(buffer: Any) -> BufferFacts:
    node = buffer.get_origin_node()
    if node is None and (data := getattr(buffer, "data", None)) is not None:
        node = getattr(data, "origin_node", None)
    layout = getattr(buffer, "layout", None)
    size, stride = (_ints(getattr(layout, what, None)) for what in ("size", "stride"))
    return BufferFacts(node.name if node is not None else "", size, stride,
                       tuple(buffer.get_mutation_names()))  # fmt: skip


def _ints(sizes: Any) -> tuple[int, ...] | None:
    """Sizes that are numbers; None for symbols, and for what has no sizes."""
    try:
        return tuple(int(size) for size in sizes)
    except (TypeError, ValueError):
        return None


def stock_settings() -> contextlib.AbstractContextManager[Any]:
    """Stock's settings while a call is examined: no caches, one process."""
    config = importlib.import_module("torch._inductor.config")
    known = config.get_config_copy()
    wanted = {
        "fx_graph_cache": False, "fx_graph_remote_cache": False, "compile_threads": 1,
        "trace.provenance_tracking_level": 1,
    }  # fmt: skip
    patched: contextlib.AbstractContextManager[Any] = config.patch(
        {name: value for name, value in wanted.items() if name in known}
    )
    return patched


def stock_decompositions() -> dict[Any, Any]:
    """The table by which stock decomposes operators."""
    table: dict[Any, Any] = importlib.import_module(
        "torch._inductor.decomposition"
    ).select_decomp_table()
    return table


def numbers(values: Any) -> list[torch.Tensor]:
    """The tensors among the leaves of what a graph returns."""
    return [v for v in torch_api.pytree.tree_leaves(values) if isinstance(v, torch.Tensor)]
