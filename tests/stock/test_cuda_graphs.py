"""Which parts are replayed as CUDA graphs, and why not: what can be known without a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import NotReplayed
from tests.stock.functions import recomputing

OVERHEAD = {"mode": "reduce-overhead"}
SKIPPED = "skipping cudagraphs due to mutated inputs (1 instances)"


def test_the_mode_is_a_reason(attended):
    found = attended.cuda_graphs()
    assert [part.part for part in found.parts] == ["g0.forward", "g0.backward"]
    assert not found.all_replayed
    assert all('mode is "default"' in part.reason for part in found.parts)
    ours = lab.inspect(lambda x: x.sin(), torch.ones(4)).cuda_graphs()
    assert 'mode is "default"' in ours.parts[0].reason


def test_a_call_on_a_cpu_is_not_replayed():
    found = lab.inspect(lambda x: x.sin() + 1, torch.ones(4), options=OVERHEAD)
    (part,) = found.cuda_graphs().parts
    assert part.reason == "no tensor is on a CUDA GPU" and "not replayed" in str(part)
    with pytest.raises(NotReplayed, match="no tensor is on a CUDA GPU"):
        found.cuda_graphs(require=True)


def test_our_compiler_for_a_gpu_that_is_not_here_is_replayed():
    found = lab.inspect(
        lambda x: x.sin() + 1, torch.ones(64), target="cuda:90", options=OVERHEAD
    ).cuda_graphs(require=True)
    assert found.all_replayed and "1 of 1 parts replayed" in str(found)


def test_the_reasons_that_stock_logs_are_recorded():
    """On a CPU stock logs no reason, so its own function is called in one of its passes."""
    from torch._inductor import config, cudagraph_utils  # noqa: TID251

    def skip(graph: torch.fx.Graph) -> None:
        cudagraph_utils.log_cudagraph_skip_and_bump_counter(SKIPPED)

    with config.patch(post_grad_custom_post_pass=skip):
        found = lab.inspect(recomputing, torch.ones(64, 32), compiler="stock", options=OVERHEAD)
    (part,) = found.parts
    assert part.cuda_graph_skips == (SKIPPED,)
    (answer,) = found.cuda_graphs().parts
    assert answer.reason == f"no tensor is on a CUDA GPU ({SKIPPED})"
    with pytest.raises(NotReplayed, match="mutated inputs"):
        found.cuda_graphs(require=True)


def test_reasons_are_saved(attended, tmp_path):
    graph = attended.graphs[0]
    skipped = replace(graph.forward, cuda_graph_skips=(SKIPPED,))
    saved = replace(attended, graphs=(replace(graph, forward=skipped),))
    loaded = lab.load(saved.save(tmp_path / "stock.json"))
    assert "mutated inputs" in loaded.cuda_graphs().parts[0].reason
