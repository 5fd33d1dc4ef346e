"""Stock compiles take seconds each, so the tests of this folder share them."""

from __future__ import annotations

import pytest
import torch

import inductor_lab as lab
from inductor_lab.stock.stock_compilation import StockCompilation
from tests.browser.conftest import browser, open_page  # noqa: F401
from tests.stock.functions import attend


@pytest.fixture(scope="session")
def attended() -> StockCompilation:
    """Fused and refused pairs, a library call, a reduction, a backward."""
    torch.manual_seed(0)
    inputs = [torch.randn(64, 64, requires_grad=True) for _ in range(3)]
    return lab.inspect(attend, *inputs, compiler="stock")
