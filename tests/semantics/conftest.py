"""Each test compiles again, with the same random state."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
