"""torch may give up a capture in the middle, and start again: only the last attempt is shown."""

from __future__ import annotations

import torch

import inductor_lab as lab


def test_a_double_without_dimensions() -> None:
    x = torch.tensor(2.0, dtype=torch.float64)
    c = lab.inspect(lambda x: -x, x)
    assert [graph.captured.name for graph in c.graphs] == ["graph0"]
    assert torch.equal(c.result, -x)
