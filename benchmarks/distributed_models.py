"""Models for several ranks, and how they are parallelized; large on GPUs, small on CPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention, silu
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True)
class Size:
    """The sizes of a model; `batch` is the batch size of each rank."""

    layers: int
    width: int
    heads: int
    words: int
    length: int
    batch: int
    dtype: torch.dtype


GPT = {
    "cuda": Size(12, 768, 12, 50_257, 1024, 8, torch.bfloat16),
    "cpu": Size(2, 64, 4, 500, 64, 2, torch.float32),
}
"""GPT-2 small on GPUs."""
LLAMA = {
    "cuda": Size(4, 4096, 32, 32_000, 2048, 2, torch.bfloat16),
    "cpu": Size(2, 64, 4, 500, 64, 2, torch.float32),
}
"""Four of the layers of a LLaMA of 7 billion parameters on GPUs."""


class Attention(nn.Module):
    def __init__(self, size: Size, bias: bool) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (
            nn.Linear(size.width, size.width, bias=bias) for _ in range(4)
        )
        self.head = size.width // size.heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        shape = batch, length, -1, self.head  # a rank may have only some of the heads
        q, k, v = (f(x).view(shape).transpose(1, 2) for f in (self.q, self.k, self.v))
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))


class GptBlock(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.attention = Attention(size, bias=True)
        self.up = nn.Linear(size.width, 4 * size.width)
        self.down = nn.Linear(4 * size.width, size.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(gelu(self.up(self.norm2(x)), approximate="tanh"))


class LlamaBlock(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(size.width), nn.RMSNorm(size.width)
        self.attention = Attention(size, bias=False)
        inner = 256 * (size.width * 8 // 3 // 256 + 1)
        self.gate, self.up = (nn.Linear(size.width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, size.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(silu(self.gate(y)) * self.up(y))


class Language(nn.Module):
    """A language model: takes tokens, returns the loss of predicting the next token."""

    def __init__(self, size: Size, block: Callable[[Size], nn.Module]) -> None:
        super().__init__()
        self.word = nn.Embedding(size.words, size.width)
        self.place = nn.Embedding(size.length, size.width)
        self.blocks = nn.ModuleList(block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.words, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.word(words) + self.place.weight
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return cross_entropy(logits[:, :-1].flatten(0, 1).float(), words[:, 1:].flatten())


def ddp(device: str) -> nn.Module:
    net = Language(GPT[device], GptBlock).to(device, GPT[device].dtype)
    return DistributedDataParallel(net)


def fsdp(device: str) -> nn.Module:
    net = Language(GPT[device], GptBlock).to(device, GPT[device].dtype)
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    for block in net.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(net, mesh=mesh)
    return net


def tensor_parallel(device: str) -> nn.Module:
    net = Language(LLAMA[device], LlamaBlock).to(device, LLAMA[device].dtype)
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    columns = ("attention.q", "attention.k", "attention.v", "gate", "up")
    plan: dict[str, Any] = {name: ColwiseParallel() for name in columns}
    plan |= {name: RowwiseParallel() for name in ("attention.out", "down")}
    for block in net.blocks:
        parallelize_module(block, mesh, plan)
    return net


CASES: dict[str, tuple[Callable[[str], nn.Module], dict[str, Size], bool]] = {
    "GPT-2, DDP": (ddp, GPT, False),
    "GPT-2, FSDP2": (fsdp, GPT, False),
    "LLaMA blocks, tensor parallel": (tensor_parallel, LLAMA, True),
}
"""By name: how it is built, how large it is, and whether all ranks see one batch together."""
