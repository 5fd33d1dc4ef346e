"""Ten training steps whose memory is known from the kernel of the system as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def softmax_chain(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.softmax(x @ w, -1)
    y = torch.tanh(scores) @ v
    return (y * y).sum()


def long_chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    for _ in range(6):
        y = torch.sin(y) * y
    return y.mean()


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts
        weights = torch.softmax(q @ k.transpose(-1, -2) / 8.0, -1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        return self.out(mixed).square().mean()


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class Blocks(nn.Module):
    def __init__(self, width: int, depth: int, checkpointed: bool = False) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.checkpointed = checkpointed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            if self.checkpointed:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return x.square().mean()


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.norm = nn.BatchNorm2d(32)
        self.second = nn.Conv2d(32, 32, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm(self.first(x)))
        return functional.relu(self.second(x)).mean()


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20_000, 128)
        self.out = nn.Linear(128, 20_000)

    def forward(self, words: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self.out(self.table(words)), labels)


class Dropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1024, 4096)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.dropout(torch.relu(self.layer(x)), 0.5).sum()


def in_place(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    y.mul_(2.0).add_(1.0)
    return torch.relu_(y).sum()


class Trainer:
    """A step with its backward and its update inside."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(1024, 4096), nn.Tanh(), nn.Linear(4096, 1024))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


@dataclass(frozen=True)
class TrainingStep:
    name: str
    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


def _weights(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [(torch.randn(shape) / shape[0] ** 0.5).requires_grad_() for shape in shapes]


STEPS = [
    TrainingStep("softmax_chain", lambda: (softmax_chain, (
        torch.randn(2048, 256), *_weights((256, 4096), (4096, 128))))),
    TrainingStep("long_chain", lambda: (long_chain, (
        torch.randn(2048, 128), *_weights((128, 2048))))),
    TrainingStep("attention", lambda: (Attention(256, 4), (torch.randn(4, 768, 256),))),
    TrainingStep("blocks", lambda: (Blocks(256, 4), (torch.randn(2048, 256),))),
    TrainingStep("checkpointed", lambda: (Blocks(256, 4, True), (torch.randn(4096, 256),))),
    TrainingStep("convolutions", lambda: (Convolutions(), (torch.randn(16, 3, 96, 96),))),
    TrainingStep("classifier", lambda: (Classifier(), (
        torch.randint(20_000, (768,)), torch.randint(20_000, (768,))))),
    TrainingStep("dropped", lambda: (Dropped(), (torch.randn(2048, 1024),))),
    TrainingStep("in_place", lambda: (in_place, (torch.randn(4096, 128), *_weights((128, 4096))))),
    TrainingStep("trainer", lambda: (Trainer(), (torch.randn(2048, 1024),))),
]  # fmt: skip
BY_NAME = {step.name: step for step in STEPS}
