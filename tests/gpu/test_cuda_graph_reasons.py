"""CUDA graphs on a GPU: replayed parts, and the reasons of stock and of ours."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.compiler.base.errors import NotReplayed

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
OVERHEAD = {"mode": "reduce-overhead"}


def smooth(x):
    return (x.sin() + 1).softmax(-1)


def writes(x):
    x.add_(1)
    return x.sin()


@pytest.mark.parametrize("compiler", ["inductor_lab", "stock"])
def test_a_simple_call_is_replayed(compiler: str):
    x = torch.ones(64, 32, device="cuda")
    found = lab.inspect(smooth, x, compiler=compiler, options=OVERHEAD)
    assert found.cuda_graphs(require=True).all_replayed
    assert torch.allclose(found.compiled(x), smooth(x), atol=1e-5)


def test_stock_says_why_it_skips_a_graph_that_writes_to_its_input():
    x = torch.ones(64, 32, device="cuda")
    found = lab.inspect(writes, x, compiler="stock", options=OVERHEAD)
    (part,) = found.cuda_graphs().parts
    assert "mutated inputs" in part.reason
    with pytest.raises(NotReplayed, match="mutated inputs"):
        found.cuda_graphs(require=True)


def test_two_devices_are_not_replayed_by_ours():
    x = torch.ones(64, 32, device="cuda")
    found = lab.inspect(lambda a, b: (a.sin(), b.cos()), x, x.cpu(), options=OVERHEAD)
    (part,) = found.cuda_graphs().parts
    assert "several devices" in part.reason


REQUIRED = {**OVERHEAD, "require_cuda_graphs": True}


def test_required_graphs_are_replayed():
    x = torch.ones(64, 32, device="cuda")
    fast = lab.compile(smooth, options=REQUIRED)
    for _ in range(5):
        result = fast(x)
        assert torch.allclose(result, smooth(x), atol=1e-5)
        del result
    assert lab.inspect(smooth, x, compiler="stock", options=REQUIRED).cuda_graphs().all_replayed


def test_a_required_graph_that_is_missing_is_an_error():
    x = torch.ones(64, 32, device="cuda")
    with pytest.raises(NotReplayed, match="mutated inputs"):
        lab.inspect(writes, x, compiler="stock", options=REQUIRED)
    with pytest.raises(NotReplayed, match="several devices"):
        lab.inspect(lambda a, b: (a.sin(), b.cos()), x, x.cpu(), options=REQUIRED)
    fast = lab.compile(lambda x: x.sin() + 5, options=REQUIRED)
    held = []
    with pytest.raises(NotReplayed, match="still in use"):
        for _ in range(8):
            held.append(fast(x))
    assert len(held) == 4
