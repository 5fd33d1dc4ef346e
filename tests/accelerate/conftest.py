from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from inductor_lab.compiler.accelerate.packing import WEIGHTS
from inductor_lab.compiler.accelerate.step_runs import InRuns


@pytest.fixture
def runs_made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[InRuns]]:
    """The calls with runs that are made, with no packed weights before and after."""
    torch._dynamo.reset()
    WEIGHTS.release()
    found: list[InRuns] = []
    start = InRuns.__init__

    def remembered(self: InRuns, *given: Any) -> None:
        start(self, *given)
        found.append(self)

    monkeypatch.setattr(InRuns, "__init__", remembered)
    yield found
    WEIGHTS.release()
