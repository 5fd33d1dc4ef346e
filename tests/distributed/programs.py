"""A small network, trained in each of the ways in which torch.distributed shares work out."""

from __future__ import annotations

import copy
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.functional import cross_entropy, gelu
from torch.nn.parallel import DistributedDataParallel

import inductor_lab as lab
from inductor_lab.ir.program import ExternCall

WORDS, WIDTH, STEPS = 50, 32, 20


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embedding(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


Compile = Callable[[nn.Module], nn.Module]
"""Compiles a module, in place or by wrapping it; or leaves it as it is."""


def mesh() -> Any:
    return init_device_mesh("cpu", (dist.get_world_size(),))


def ddp(net: Net, compiled: Compile) -> nn.Module:
    """With buckets so small that TorchDynamo cuts the graph."""
    dist._DEFAULT_FIRST_BUCKET_BYTES = 4096
    return compiled(DistributedDataParallel(net, bucket_cap_mb=0.02))


def ddp_whole(net: Net, compiled: Compile) -> nn.Module:
    torch._dynamo.config.optimize_ddp = False
    return compiled(DistributedDataParallel(net))


def ddp_python(net: Net, compiled: Compile) -> nn.Module:
    torch._dynamo.config.optimize_ddp = "python_reducer"
    return compiled(DistributedDataParallel(net))


def fsdp(net: Net, compiled: Compile) -> nn.Module:
    shard = mesh()
    for block in net.blocks:
        fully_shard(block, mesh=shard)
    fully_shard(net, mesh=shard)
    return compiled(net)


def fsdp_blocks(net: Net, compiled: Compile) -> nn.Module:
    shard = mesh()
    for number, block in enumerate(net.blocks):
        net.blocks[number] = fully_shard(compiled(block), mesh=shard)
    return fully_shard(net, mesh=shard)


def tensor_parallel(net: Net, compiled: Compile) -> nn.Module:
    for block in net.blocks:
        parallelize_module(block, mesh(), {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return compiled(net)


def sequence_parallel(net: Net, compiled: Compile) -> nn.Module:
    """Between the products each rank has its part of every sequence."""
    for block in net.blocks:
        parallelize_module(block, mesh(), {
            "norm": SequenceParallel(),
            "up": ColwiseParallel(input_layouts=Shard(1)),
            "down": RowwiseParallel(output_layouts=Shard(1)),
        })  # fmt: skip
    parallelize_module(net, mesh(), {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    })  # fmt: skip
    return compiled(net)


SHARED_OUT = (ddp, ddp_whole, ddp_python, fsdp, fsdp_blocks, tensor_parallel, sequence_parallel)
SAME_DATA = (tensor_parallel, sequence_parallel)
"""Ways in which all ranks see one batch together."""


def losses(way: Callable[..., nn.Module], options: dict[str, Any] | None, steps: int) -> Any:
    """The loss of each training step; `options` of the compiler, None for eager."""
    torch._dynamo.reset()
    torch._dynamo.config.optimize_ddp = True
    torch.manual_seed(0)
    net = Net()

    def compiled(module: nn.Module) -> nn.Module:
        if options is not None:
            module.compile(backend="inductor_lab", options=options)
        return module

    model = way(copy.deepcopy(net), compiled)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=way not in SAME_DATA)
    drawn = torch.Generator().manual_seed(0 if way in SAME_DATA else dist.get_rank())
    found = []
    for _ in range(steps):
        words = torch.randint(0, WORDS, (4, 16), generator=drawn)
        loss = cross_entropy(model(words).flatten(0, 1), words.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


def every_way(names: tuple[str, ...], times: int) -> dict[str, Any]:
    """Losses in eager mode, and compiled so many times, by the name of the way."""
    ways = {way.__name__: way for way in SHARED_OUT}
    runs = (None, *({} for _ in range(times)))
    return {name: [losses(ways[name], options, STEPS) for options in runs] for name in names}


def with_options(options: list[dict[str, Any]]) -> Any:
    """Each rank compiles with its own options, a cache of its own, or one that is filled."""
    mine = options[dist.get_rank()]
    return losses(tensor_parallel, None, 3), losses(tensor_parallel, mine, 3)


def total(x: torch.Tensor) -> torch.Tensor:
    """All ranks' sum, which is used beside work that does not need it."""
    summed = funcol.all_reduce(x * 2, "sum", dist.group.WORLD)
    return (x @ x).relu() + 1, summed + 1


def compiled_together(broken: int, how: str) -> Any:
    """Rank `broken` fails: it cannot compile, or is killed between two calls."""
    x, mine = torch.ones(64, 64), dist.get_rank() == broken
    fast = torch.compile(total, backend="inductor_lab")
    if how == "compile":
        if mine:
            with lab.override(lowering={torch.ops.aten.relu.default: _cannot}):
                fast(x)
        return fast(x)
    fast(x)
    if mine:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1.0)  # the other one is gone for sure
    return fast(x)


def _cannot(*given: Any) -> Any:
    raise ValueError("the seeded fault")


def schedule() -> Any:
    """The order that a rank runs its steps in, and who lies in whose memory."""
    found = lab.inspect(total, torch.ones(64, 64)).graphs[0].forward.schedule
    names = [s.op if isinstance(s, ExternCall) else s.name for s in found.steps]
    lives = {life.buffer: (life.first, life.last) for life in found.memory.lifetimes}
    sent = [s for s in found.steps if isinstance(s, ExternCall) and s.reason == "collective"]
    read = [view.buffer for call in sent for view in call.views]
    return names, [lives[name] for name in read], dict(found.memory.reuse)


def save_step(folder: str) -> int:
    """A training step, tensor parallel, inspected and saved by each rank."""
    net = tensor_parallel(Net(), lambda module: module)
    words = torch.randint(0, WORDS, (4, 16), generator=torch.Generator().manual_seed(0))

    def step(words: torch.Tensor) -> torch.Tensor:
        return cross_entropy(net(words).flatten(0, 1), words.flatten())

    torch.manual_seed(0)
    rank = dist.get_rank()
    lab.inspect(step, words).save(f"{folder}/rank{rank}.lab.json")
    return rank
