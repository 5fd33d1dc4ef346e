"""A graph with copied calls equals the graph of a complete trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.fx import GraphModule

from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.rewrite.decompose import trace_reuse
from inductor_lab.compiler.rewrite.decompose.decompositions import decomposition_table
from inductor_lab.compiler.rewrite.decompose.trace_reuse import Repeats
from inductor_lab.compiler.torch_door import torch_aot

TABLE = decomposition_table(lowered())


class Traced(Exception):
    """Raised when AOTAutograd has traced the graph."""


def graph_of(fn: Any, args: tuple[Any, ...], table: dict[Any, Any], **how: Any) -> GraphModule:
    """The inference or joint graph that AOTAutograd passes to a compiler."""
    found: list[GraphModule] = []

    def stop(graph: GraphModule, *_: Any, **__: Any) -> Any:
        found.append(graph)
        raise Traced

    def backend(module: GraphModule, inputs: Any) -> Any:
        return torch_aot.aot_autograd(
            module, inputs, fw_compiler=stop, bw_compiler=stop, partition_fn=stop,
            decompositions=table,
        )  # fmt: skip

    torch.compiler.reset()
    with pytest.raises(Exception, match="Traced"):
        torch.compile(fn, backend=backend, **how)(*args)
    return found[0]


def described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.stride(), value.dtype, value.device
    if isinstance(value, list | tuple):
        return [described(item) for item in value]
    return re.sub(r"0x\w+|graph_id=\d+", "", str(value))


def lines(graph: GraphModule) -> Iterator[tuple[Any, ...]]:
    """Each node with its metadata, without numbers of this process."""
    nodes = graph.graph.nodes
    first = min((n.meta["seq_nr"] for n in nodes if "seq_nr" in n.meta), default=0)
    for node in nodes:
        meta = {name: described(value) for name, value in node.meta.items()}
        if "seq_nr" in meta:
            meta["seq_nr"] = node.meta["seq_nr"] - first
        yield node.format_node(), meta


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators whose calls were copied."""
    names: list[str] = []
    copy = trace_reuse._copied

    def noted(trace: Any, *rest: Any) -> Any:
        names.append(str(trace.nodes[-1].target))
        return copy(trace, *rest)

    monkeypatch.setattr(trace_reuse, "_copied", noted)
    return names


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers = (torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True) for _ in range(3))
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x.softmax(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_training_graph_equals_a_trace(copied: list[str], dtype: torch.dtype) -> None:
    model, x = Layers().to(dtype), torch.randn(2, 8, 16, dtype=dtype, requires_grad=True)
    traced = list(lines(graph_of(model, (x,), TABLE)))
    assert not copied
    assert list(lines(graph_of(model, (x,), Repeats(TABLE).definitions))) == traced
    assert len(copied) >= 10  # six norms and their gradients


PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "norms": lambda x: F.layer_norm(F.layer_norm(x, (8,)).sin(), (8,)),
    "one tensor twice": lambda x: torch.dist(x, x + 1) + torch.dist(x, x) + torch.dist(x + 1, x),
    "zeros": lambda x: (1 / F.threshold(x, 9.0, 0.0), 1 / F.threshold(x, 9.0, -0.0)),
    "numbers": lambda x: (x.long().clamp(1) ** 2, x.long().clamp(1) ** 2.0),
    "dropout": lambda x: (F.dropout(x, 0.5) - F.dropout(x, 0.5)).abs().sum(),
    "written": lambda x: (x.softmax(1).add_(1), x.softmax(1), x.softmax(1).mul_(2)),
    "views": lambda x: [F.pixel_shuffle(y.view(1, 4, 2, 4), 2) for y in (x, x + 1)],
    "left whole": lambda x: [torch.frac(x.long() + n) for n in (0, 1)],
    "several": lambda x: [torch.aminmax(part, dim=1) for part in x.chunk(2)],
    "branches": lambda x: torch.cond(
        x.sum() > 0, lambda y: y.softmax(1).softmax(1), lambda y: y.softmax(1) * 2, (x,)
    ),
}  # fmt: skip


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_equal_traces(name: str, dynamic: bool) -> None:
    x = torch.randn(4, 8)
    traced = lines(graph_of(PROGRAMS[name], (x,), TABLE, dynamic=dynamic))
    made = lines(graph_of(PROGRAMS[name], (x,), Repeats(TABLE).definitions, dynamic=dynamic))
    assert [line for line, _ in made] == [line for line, _ in traced]


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"dropout", "left whole"}))
def test_results_equal_eager_mode(name: str) -> None:
    torch.compiler.reset()
    x = torch.randn(4, 8)
    made, right = torch.compile(PROGRAMS[name], backend="inductor_lab")(x), PROGRAMS[name](x)
    torch.testing.assert_close(made, right)


def test_a_random_call_is_never_copied() -> None:
    torch.compiler.reset()
    x = torch.ones(1000)
    both = torch.compile(lambda x: (F.dropout(x), F.dropout(x)), backend="inductor_lab")(x)
    assert not both[0].equal(both[1])
