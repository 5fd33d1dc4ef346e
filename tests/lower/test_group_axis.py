"""Consumers of statistics over groups of channels, on a GPU that this machine does not have.

torch runs the programs nest by nest and kernel by kernel.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import inductor_lab as lab
from inductor_lab.compiler.ir.verify import verify
from inductor_lab.compiler.schedule.verify import verify_schedule
from tests.codegen.triton_programs import loads_of_rows


def normed(x: Any, w: Any, b: Any, groups: int) -> Any:
    return F.silu(F.group_norm(x, groups, w, b))


def of_pairs(x: Any, w: Any, b: Any, groups: int) -> Any:
    """Nested groups: groups of four depend on groups of two."""
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


def repeated(x: Any) -> Any:
    """Each row mean twice: computed in groups of two."""
    return x.mean(1).repeat_interleave(2)


def rows_put(x: Any, at: Any) -> Any:
    return torch.outer(repeated(x), x[0]).index_copy(0, at, x)


def rows_added(x: Any, at: Any) -> Any:
    made = repeated(x)
    made[at] += 1
    return made, made.index_add(0, at, x[:, 0])


def put_by_a_mask(x: Any, at: Any) -> Any:
    made = repeated(x)
    return made.index_put((at,), x[:, 0], accumulate=True), made.scatter(0, at, 5.0)


def given_to_a_library(x: Any, at: Any) -> Any:
    made = repeated(x)
    return made.sort().values, made.view(-1, 2).t() @ x[at % 3]


@pytest.mark.parametrize(
    "function", [rows_put, rows_added, put_by_a_mask, given_to_a_library], ids=lambda f: f.__name__
)
def test_grouped_buffers_are_written_in_place(function: Any) -> None:
    torch.manual_seed(0)
    x, at = torch.randn(3, 8), torch.tensor([4, 0, 3])
    found = lab.inspect(function, x, at, options={"target": "cuda:90"})
    graph = found.graphs[0].forward
    assert any(len(step.axes) == 2 for step in graph.loops.steps), "no result has groups"
    verify(graph.loops)
    verify_schedule(graph.schedule)
    wanted = function(x, at)
    for run in (graph.loops.run, graph.schedule.run):
        made = run(x, at)
        assert_close(made[0] if isinstance(wanted, torch.Tensor) else tuple(made), wanted)


def test_a_group_is_read_once() -> None:
    x, w = torch.randn(4, 320, 64, 64), torch.randn(320)
    found = lab.inspect(normed, x, w, w, 32, options={"target": "cuda:90"})
    (kernel,) = found.graphs[0].forward.kernels
    assert kernel.launch["xnumel"] == 4 * 32
    assert len(loads_of_rows(kernel, 0)) == 1
    assert kernel.ladder("cuda:90")["cubin"]
