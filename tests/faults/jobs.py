"""Small programs that compare their results with eager mode, run under faults."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.testing import assert_close

import inductor_lab as lab


def wave(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() + x.cos()).tanh()


def bowl(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return ((x * w).exp() - 1).square().sum()


def infer() -> None:
    """A compiled function returns the result of the function."""
    _into_temporary_folder()
    x = torch.linspace(-2, 2, 1000)
    assert_close(torch.compile(wave, backend="inductor_lab")(x), wave(x))


def without_us() -> None:
    """The same function with a backend of torch."""
    torch.compile(wave, backend="aot_eager")(torch.ones(8))


def train() -> None:
    """The same for its gradient."""
    _into_temporary_folder()
    grads = []
    for fn in (torch.compile(bowl, backend="inductor_lab"), bowl):
        w = torch.linspace(-1, 1, 64, requires_grad=True)
        fn(torch.linspace(0, 2, 64), w).backward()
        grads.append(w.grad)
    assert_close(*grads)


def both() -> None:
    infer()
    train()


def look() -> str:
    """The complete record, its text and its page."""
    c = lab.inspect(bowl, torch.ones(64), torch.ones(64, requires_grad=True))
    page = c.report(os.path.join(tempfile.gettempdir(), "page.html"))
    return f"{len(str(c))} {page.stat().st_size}"


def steps(model: nn.Module, call: Callable[..., Any], count: int = 3) -> list[float]:
    """The losses of a few steps of training."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for step in range(count):
        x = torch.linspace(-1, 1, 8 * 16).reshape(8, 16) + step
        optimizer.zero_grad()
        loss = call(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))


def learn() -> None:
    """Compiled and eager training have the same losses."""
    found = small_model()
    expected = copy.deepcopy(found)
    assert_close(steps(found, lab.compile(found)), steps(expected, expected), rtol=1e-4, atol=1e-5)


def _into_temporary_folder() -> None:
    """Python remembers where temporary files go; the setting may have another folder."""
    tempfile.tempdir = None
