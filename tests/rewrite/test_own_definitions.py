"""Our own definitions compared with eager mode: values and gradients, without any library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.lower.lowering import Lowered, assert_same

GRADIENT = {"aten._cdist_backward.default"}
POWERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))


def rows(*shape: int) -> torch.Tensor:
    """Numbers with several equal rows, so that some distances are 0."""
    torch.manual_seed(5)
    x = torch.randn(shape)
    x[..., 1, :] = x[..., 0, :]
    return x.requires_grad_()


def check(
    function: Callable[..., Any], *inputs: torch.Tensor, library: set[str] | None = None
) -> None:
    expected = function(*inputs)
    lowered = Lowered()
    actual = lowered.aot(function)(*inputs)
    assert_same(actual, expected, rtol=1e-5, atol=1e-5)
    wanted = [x for x in inputs if x.requires_grad]
    if wanted:
        weights = torch.randn_like(expected)
        gradients = [torch.autograd.grad(y, wanted, weights) for y in (actual, expected)]
        assert_same(*gradients, rtol=1e-4, atol=1e-5)
    called = set(lowered.externs()) - {"inductor_lab.evaluated.default"}  # a check
    assert called <= (library or set())


@pytest.mark.parametrize("p", POWERS)
def test_distances_of_two_sets(p: float) -> None:
    check(lambda x, y: torch.cdist(x, y, p), rows(4, 3), rows(5, 3), library=GRADIENT)


def test_batches_of_distances_broadcast() -> None:
    check(lambda x, y: torch.cdist(x, y), rows(2, 1, 4, 3), rows(3, 5, 3), library=GRADIENT)
    nothing = rows(4, 3).detach()[:, :0]
    check(lambda x, y: torch.cdist(x, y, 1.0), nothing, nothing)


def test_many_euclidean_distances_use_a_matrix_product() -> None:
    library = {"aten.mm.default", "aten.bmm.default"}
    x, y = rows(30, 3).detach(), rows(4, 3).detach()
    check(lambda x, y: torch.cdist(x, y), x, y, library=library)


@pytest.mark.parametrize("dim", [0, -1])
def test_cross_products_use_no_index_tables(dim: int) -> None:
    a, b = rows(3, 4, 3), torch.randn(3, 1, 3, requires_grad=True)
    check(lambda a, b: torch.linalg.cross(a, b, dim=dim), a, b)
    lowered = Lowered()
    lowered.aot(lambda a, b: torch.linalg.cross(a, b, dim=dim))(a.detach(), b.detach())
    assert not any(buffer.dtype is torch.int64 for buffer in lowered.programs[0].buffers.values())


def test_bilinear() -> None:
    check(F.bilinear, rows(4, 3), rows(4, 5), torch.randn(2, 3, 5, requires_grad=True))


@pytest.mark.parametrize("pad", [(2, 1), (0, 3), (-1, 2), (1, -2), (-4, 5), (3, 0, 1, 2)])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 1)])
def test_replicated_edges(pad: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if len(pad) // 2 != len(shape) - 2:
        pad = (pad * 2)[: 2 * (len(shape) - 2)]
    pad = tuple(max(p, 0) for p in pad) if shape[-1] == 1 else pad
    check(lambda x: F.pad(x, pad, mode="replicate"), torch.randn(shape, requires_grad=True))
