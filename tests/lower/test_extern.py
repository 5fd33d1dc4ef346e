"""Calls of ATen with unusual arguments or results."""

from __future__ import annotations

import pytest
import torch

from tests.lower.lowering import Lowered, assert_same


@pytest.mark.skipif(
    torch.__version__.startswith("2.11"), reason="torch 2.11 drops the check before our backend"
)
def test_a_check_that_only_raises_is_kept() -> None:
    """linalg.cholesky calls `_linalg_check_errors`, an op with effects and without results."""
    compiled = Lowered().aot(torch.linalg.cholesky)
    good, bad = torch.eye(3) * 4, -torch.eye(3)
    assert_same(compiled(good), torch.linalg.cholesky(good))
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        compiled(bad)


def test_effects_keep_their_order(capfd: pytest.CaptureFixture[str]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        torch.ops.aten._print("first")
        y = x.sin()
        torch.ops.aten._print("second")
        return y

    compiled = Lowered().aot(function)
    capfd.readouterr()
    x = torch.randn(3)
    assert_same(compiled(x), x.sin())
    assert capfd.readouterr().out.split() == ["first", "second"]


def test_a_sparse_result_is_unchanged() -> None:
    x = torch.eye(3)
    result = Lowered().aot(lambda x: (x * 2).to_sparse())(x)
    assert result.layout is torch.sparse_coo
    assert_same(result.to_dense(), x * 2)
