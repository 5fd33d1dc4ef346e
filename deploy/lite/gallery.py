"""The gallery: six programs, each compiled by us and by stock torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import inductor_lab as lab
from inductor_lab.bench.demo.programs import gpt2_loss
from inductor_lab.course.language import Language


@dataclass(frozen=True)
class Entry:
    """`make()` returns a function and its arguments."""

    name: str
    titles: dict[Language, str]
    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.layer_norm(x, x.shape[-1:])


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1) @ v


def _mlp() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))

    def loss(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(x), labels)

    return loss, (torch.randn(32, 64), torch.randint(0, 10, (32,)))


def _residual() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    layers = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16),
                           nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1, bias=False),
                           nn.BatchNorm2d(16)).eval()  # fmt: skip

    def block(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return torch.relu(x + layers(x))

    return block, (torch.randn(2, 16, 32, 32),)


GALLERY = (
    Entry("softmax", {"en": "softmax of 512 × 1,024", "zh": "512 × 1,024 的 softmax"},
          lambda: (softmax, (torch.randn(512, 1024),))),
    Entry("layer_norm", {"en": "layer norm of 512 × 1,024", "zh": "512 × 1,024 的层归一化"},
          lambda: (layer_norm, (torch.randn(512, 1024),))),
    Entry("attention", {"en": "attention of 8 heads, 128 × 64", "zh": "8 个头的注意力，128 × 64"},
          lambda: (attention, tuple(torch.randn(8, 128, 64) for _ in range(3)))),
    Entry("mlp", {"en": "a training step of an MLP", "zh": "MLP 的一个训练步"}, _mlp),
    Entry("residual", {"en": "a residual block with two convolutions, eval",
                       "zh": "含两个卷积的残差块，eval"}, _residual),
    Entry("gpt2", {"en": "a training step of a small GPT-2", "zh": "小型 GPT-2 的一个训练步"},
          gpt2_loss),
)  # fmt: skip


def write_gallery(folder: Path) -> None:
    """Compile and save all of them: `softmax.lab.json`, `softmax-stock.lab.json` and so on."""
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    for entry in GALLERY:
        function, arguments = entry.make()
        lab.inspect(function, *arguments).save(folder / f"{entry.name}.lab.json")
        torch.compiler.reset()
        stock = lab.inspect(function, *arguments, compiler="stock")
        stock.save(folder / f"{entry.name}-stock.lab.json")
