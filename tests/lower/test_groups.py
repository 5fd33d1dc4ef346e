"""Results that wait for groups of channels, on a GPU that is not here: the programs are run nest by
nest, and kernel by kernel, with torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.ir.verify import verify
from inductor_lab.schedule.verify import verify_schedule
from tests.codegen.triton_programs import loads_of_rows


def normed(x: Any, w: Any, b: Any, groups: int) -> Any:
    return F.silu(F.group_norm(x, groups, w, b))


def of_pairs(x: Any, w: Any, b: Any, groups: int) -> Any:
    """Groups of groups: what is read by fours waits for what was read by twos."""
    twos = x - x.unflatten(1, (-1, 2)).sum((2, 3, 4))[..., None, None].repeat_interleave(2, 1)
    fours = twos.unflatten(1, (-1, 4)).amax((2, 3, 4))[..., None, None].repeat_interleave(4, 1)
    return twos * w[:, None, None] / fours + b[:, None, None]


@pytest.mark.parametrize("channels, groups", [(40, 4), (12, 2), (8, 8), (12, 1), (8, 4)])
@pytest.mark.parametrize("function", [normed, of_pairs])
def test_values(function: Any, channels: int, groups: int) -> None:
    torch.manual_seed(0)
    given = (torch.randn(3, channels, 5, 4), torch.randn(channels), torch.randn(channels))
    for x in given:
        x.requires_grad_()
    c = lab.inspect(function, *given, groups, options={"target": "cuda:90"})
    wanted = function(*given, groups)
    graph = c.graphs[0].forward
    verify(graph.loops)
    verify_schedule(graph.schedule)
    for run in (graph.loops.run, graph.schedule.run):
        assert_close(run(*given)[0], wanted, rtol=1e-4, atol=1e-5)


def test_a_group_is_read_once() -> None:
    x, w = torch.randn(4, 320, 64, 64), torch.randn(320)
    found = lab.inspect(normed, x, w, w, 32, options={"target": "cuda:90"})
    (kernel,) = found.graphs[0].forward.kernels
    assert kernel.launch["xnumel"] == 4 * 32
    assert len(loads_of_rows(kernel, 0)) == 1
    assert kernel.ladder("cuda:90")["cubin"]
