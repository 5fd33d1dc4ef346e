"""The table of decompositions has its documented entries, and none for operators with a
lowering."""

from __future__ import annotations

import torch

from inductor_lab.compiler.lower.graph import lowered
from inductor_lab.compiler.overrides import definitions
from inductor_lab.compiler.rewrite.decompose.decompositions import ADDED, decomposition_table
from inductor_lab.compiler.torch_door import torch_api

aten = torch.ops.aten
COMPOSITE = {aten.linear.default, aten.scaled_dot_product_attention.default, aten.square.default}


def test_added_decompositions_are_not_in_the_core_table() -> None:
    assert not set(ADDED) & set(torch_api.core_decompositions())
    assert not set(ADDED) & lowered()


def test_no_operator_is_both_lowered_and_decomposed() -> None:
    """Except a few that PyTorch may decompose earlier."""
    assert lowered() & set(decomposition_table(lowered())) <= COMPOSITE


def test_the_table_is_kept_until_someone_registers_a_definition(monkeypatch) -> None:
    def own(x: torch.Tensor) -> torch.Tensor:
        return x.neg()

    operator = next(op for op in ADDED if op in torch_api.known_decompositions())
    table = definitions()
    assert definitions() == table
    monkeypatch.setitem(torch._decomp.decomposition_table, operator, own)
    assert definitions()[operator].args[1] is own
    table.clear()
    assert definitions()[operator].args[1] is own, "each caller gets its own table"
    monkeypatch.undo()
    assert definitions()[operator].args[1] is not own


def test_softmax_is_recorded_with_its_decomposition() -> None:
    table = decomposition_table(lowered())
    module = torch.fx.experimental.proxy_tensor.make_fx(
        lambda x: x.softmax(1), decomposition_table=table, tracing_mode="fake"
    )(torch.randn(2, 3))
    names = [str(n.target) for n in module.graph.nodes if n.op == "call_function"]
    assert names == [
        "aten.amax.default",
        "aten.sub.Tensor",
        "aten.exp.default",
        "aten.sum.dim_IntList",
        "aten.div.Tensor",
    ]
