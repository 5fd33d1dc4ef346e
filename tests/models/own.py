"""Small models of our own, for shapes of programs that the library's do not have."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.GroupNorm(2, outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.second(F.silu(self.norm(self.first(x)))))


class UNet(nn.Module):
    """Down by max pooling, up by interpolation and by transposed convolution, with skips."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.enter, self.down = Block(3, width), Block(width, 2 * width)
        self.bottom = Block(2 * width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, 2 * width, 2, stride=2)
        self.join, self.leave = Block(4 * width, width), Block(2 * width, width)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        high = self.enter(x)
        middle = self.down(F.max_pool2d(high, 2))
        low = self.bottom(F.max_pool2d(middle, 2))
        middle = self.join(torch.cat([middle, self.up(low)], 1))
        wide = F.interpolate(middle, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.leave(torch.cat([high, wide], 1)))


class Tagger(nn.Module):
    """Embedding, two layers of LSTM in both directions, and a classifier of each token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        states, (hidden, _) = self.lstm(self.embedding(tokens))
        return self.head(states), hidden


class GraphNet(nn.Module):
    """Message passing: gather at the sources, scatter to the targets, by sum, mean and maximum."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.message = nn.Linear(2 * width, width)
        self.update = nn.Linear(4 * width, width)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        messages = F.relu(self.message(torch.cat([nodes[source], nodes[target]], 1)))
        where = target[:, None].expand_as(messages)
        empty = torch.zeros_like(nodes)
        total = empty.index_add(0, target, messages)
        degree = torch.zeros(len(nodes)).scatter_add(0, target, torch.ones(len(target)))
        highest = empty.scatter_reduce(0, where, messages, "amax", include_self=False)
        mean = total / degree.clamp(min=1)[:, None]
        return self.update(torch.cat([nodes, total, mean, highest], 1)).tanh()


class Experts(nn.Module):
    """Two of four experts for each token, chosen by a router; dispatch by one-hot masks."""

    def __init__(self, width: int = 8, experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.inner = nn.Parameter(torch.randn(experts, width, 2 * width) / 4)
        self.outer = nn.Parameter(torch.randn(experts, 2 * width, width) / 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.router(x).softmax(-1)
        best, chosen = scores.topk(2, dim=-1)
        best = best / best.sum(-1, keepdim=True)
        share = F.one_hot(chosen, scores.shape[-1]).to(x.dtype) * best[..., None]
        hidden = F.gelu(torch.einsum("td,edh->teh", x, self.inner))
        results = torch.einsum("teh,ehd->ted", hidden, self.outer)
        balance = (scores.mean(0) * (share.sum(1) > 0).to(x.dtype).mean(0)).sum()
        return torch.einsum("tke,ted->td", share, results), balance


class RoutedExperts(Experts):
    """The same with each expert called on its own tokens only: sizes depend on values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        best, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
        result = torch.zeros_like(x)
        for expert in range(len(self.inner)):
            token, rank = torch.where(chosen == expert)
            hidden = F.gelu(x[token] @ self.inner[expert]) @ self.outer[expert]
            result = result.index_add(0, token, hidden * best[token, rank, None])
        return result
