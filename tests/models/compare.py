"""A compiled model against the same model in eager mode: outputs, gradients, buffers."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

import inductor_lab as lab

TOLERANCE = {"rtol": 2e-3, "atol": 2e-5}


def tensors(result: Any) -> list[torch.Tensor]:
    """The floating-point tensors of a model's output, whatever holds them."""
    if hasattr(result, "to_tuple"):
        result = result.to_tuple()
    return [t for t in tree_leaves(result) if torch.is_tensor(t) and t.is_floating_point()]


def loss_of(result: Any) -> torch.Tensor:
    """A number that depends on every element of every output, each in its own way."""
    parts = []
    for tensor in tensors(result):
        # the weights are exact in every dtype, so that each computes the same function
        weights = torch.arange(tensor.numel(), dtype=torch.float64).cos().bfloat16()
        wide = torch.promote_types(tensor.dtype, torch.float32)
        parts.append((tensor.to(wide) * weights.to(wide).view(tensor.shape)).sum())
    return torch.stack(parts).sum()


def pairs(one: Any, other: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    found, expected = tensors(one), tensors(other)
    assert expected
    return zip(found, expected, strict=True)


def check_eval(model: torch.nn.Module, inputs: Mapping[str, Any], **options: Any) -> None:
    model.eval()
    compiled = lab.compile(model, **options)
    with torch.no_grad():
        for found, expected in pairs(compiled(**inputs), model(**inputs)):
            assert_close(found, expected, **TOLERANCE)


def check_step(model: torch.nn.Module, inputs: Mapping[str, Any], **options: Any) -> None:
    """Gradients and buffers after one forward and backward in training mode."""
    model.train()
    reference = copy.deepcopy(model)
    expected = reference(**inputs)
    found = lab.compile(model, **options)(**inputs)
    loss_of(expected).backward()
    loss_of(found).backward()
    for a, b in pairs(found, expected):
        assert_close(a, b, **TOLERANCE)
    count = 0
    for (name, ours), theirs in zip(
        model.named_parameters(), reference.parameters(), strict=True
    ):
        assert (ours.grad is None) == (theirs.grad is None), name
        if ours.grad is not None:
            count += 1
            scale = float(theirs.grad.abs().max())
            assert_close(
                ours.grad, theirs.grad, rtol=2e-3, atol=2e-5 * max(1.0, scale),
                msg=lambda text, name=name: f"gradient of {name}: {text}",
            )  # fmt: skip
    assert count
    for ours, theirs in zip(model.buffers(), reference.buffers(), strict=True):
        assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
