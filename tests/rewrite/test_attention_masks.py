"""Attention masks that allow everything, or that are causal, are removed; results do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.rewrite.captured.attention_masks import ATTENTION, simplify_masks
from inductor_lab.compiler.torch_door.torch_api import fake_mode

N, H, ROWS, D = 2, 3, 12, 8
Mask = Callable[[torch.Tensor], torch.Tensor]


def bidirectional(x: torch.Tensor) -> torch.Tensor:
    """The mask of transformers for BERT."""
    places = torch.arange(x.shape[-2], device=x.device) + 0
    allowed = places[None, None, :, None] >= 0
    return allowed.expand(x.shape[0], -1, x.shape[-2], x.shape[-2])


def causal(x: torch.Tensor) -> torch.Tensor:
    places = torch.arange(x.shape[-2], device=x.device)
    return (places[None, :] <= places[:, None])[None, None].expand(x.shape[0], 1, -1, -1)


def packed(x: torch.Tensor, longest: int = ROWS) -> torch.Tensor:
    """The mask of transformers for a decoder.

    Packed sequences would begin where the positions do.  An embedding reads the positions too, and
    so do angles.
    """
    places = torch.arange(x.shape[-2], device=x.device)[None] % longest
    angles = places[:, None].float().transpose(1, 2) @ x[0, 0, :1]
    x = x + F.embedding(places, x[0, 0]) + angles.cos()
    places = places.expand(x.shape[0], -1)
    changes = torch.diff(places, prepend=places[:, :1] - 1, dim=-1) != 1
    sequence, steps = changes.cumsum(-1), torch.arange(x.shape[-2], device=x.device)
    batch = torch.arange(x.shape[0], device=x.device)[:, None, None, None]
    row, column = steps[None, None, :, None], steps[None, None, None, :]
    same = sequence[batch, row] == sequence[batch, column]
    return column.new_ones((), dtype=torch.bool) & same & (column <= row)


def two_packed(x: torch.Tensor) -> torch.Tensor:
    return packed(x, ROWS // 2)


def added(x: torch.Tensor) -> torch.Tensor:
    nothing = torch.zeros(x.shape[-2], x.shape[-2], device=x.device)
    return torch.where(bidirectional(x), nothing, -torch.inf)


def window(x: torch.Tensor) -> torch.Tensor:
    places = torch.arange(x.shape[-2], device=x.device)
    return (places[None, :] - places[:, None]).abs() < 4


def rows_alone(x: torch.Tensor) -> torch.Tensor:
    """Computed from the data, with gaps in its last dimension."""
    return (x[0, 0, :, :1] > -9).expand(x.shape[-2], x.shape[-2])


def attend(mask: Mask) -> Callable[[torch.Tensor], torch.Tensor]:
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x * 0.5, x + 1, attn_mask=mask(x))

    return function


def changed(mask: Mask, device: str = "cpu") -> tuple[Any, Any]:
    """The mask and `is_causal` of the only call, after the pass.

    "meta" replaces a GPU: fake GPU tensors need a CUDA build of torch.
    """
    modules: list[torch.fx.GraphModule] = []

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        modules.append(module)
        simplify_masks(module)
        return module.forward

    torch.compiler.reset()
    with fake_mode():
        x = torch.empty(N, H, ROWS, D, device=device)
        torch.compile(attend(mask), backend=backend, fullgraph=True)(x)
    (call,) = modules[0].graph.find_nodes(op="call_function", target=ATTENTION)
    return call.kwargs.get("attn_mask"), call.kwargs.get("is_causal", False)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_mask_that_allows_everything_is_removed(device: str) -> None:
    assert changed(bidirectional, device) == (None, False)
    assert changed(causal, device) == (None, True)


def test_one_packed_sequence_is_causal_and_two_are_not() -> None:
    assert changed(packed) == (None, True)
    mask, is_causal = changed(two_packed)
    assert mask is not None and is_causal is False


def test_an_additive_mask_of_zeros_is_removed() -> None:
    assert changed(added) == (None, False)


def test_other_masks_are_kept() -> None:
    mask, is_causal = changed(window)
    assert mask is not None and is_causal is False
    mask, is_causal = changed(rows_alone)
    assert mask.target == "expand" and is_causal is False


def test_masks_are_contiguous_on_a_gpu() -> None:
    mask, _ = changed(rows_alone, "meta")
    assert mask.target == "contiguous"
    assert mask.meta["example_value"].stride() == (ROWS, 1)


def test_a_written_mask_is_kept() -> None:
    def half(x: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(ROWS, ROWS, dtype=torch.bool, device=x.device)
        mask.view(-1)[:5] = False
        return mask

    assert changed(half)[0] is not None
    x = torch.randn(N, H, ROWS, D)
    torch.testing.assert_close(lab.compile(attend(half))(x), attend(half)(x))


@pytest.mark.parametrize("mask", [bidirectional, causal, added, window, packed, two_packed])
def test_results_and_gradients_are_unchanged(mask: Mask) -> None:
    x = torch.randn(N, H, ROWS, D, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    expected, found = attend(mask)(x), lab.compile(attend(mask))(y)
    torch.testing.assert_close(found, expected)
    (wanted,) = torch.autograd.grad(expected.square().sum(), x)
    torch.testing.assert_close(torch.autograd.grad(found.square().sum(), y), (wanted,))


@pytest.mark.parametrize("mask", [bidirectional, causal, added])
def test_rows_of_minus_infinity_equal_eager_mode(mask: Mask) -> None:
    """Eager mode uses another kernel for a mask; the result for such rows is the same."""
    x = torch.full((N, H, ROWS, D), torch.inf)

    def function(x: torch.Tensor) -> torch.Tensor:
        ones = torch.ones_like(x)
        return F.scaled_dot_product_attention(ones, -x, ones, attn_mask=mask(x))

    expected = function(x)
    assert expected.isfinite().all()
    torch.testing.assert_close(lab.compile(function)(x), expected)


def test_the_captured_graph_is_recorded_without_the_change() -> None:
    c = lab.inspect(attend(bidirectional), torch.randn(N, H, ROWS, D))
    assert "attn_mask = mask" in str(c.capture.graphs[0]).replace("attn_mask=", "attn_mask = ")
    off = lab.inspect(
        attend(bidirectional), torch.randn(N, H, ROWS, D), options={"rewrites_off": ("masks",)}
    )
    assert len(off.graphs[0].forward.graph.nodes) > len(c.graphs[0].forward.graph.nodes)
