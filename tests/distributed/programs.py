"""A small network, trained with each kind of parallelism of torch.distributed."""

from __future__ import annotations

import copy
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
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
from inductor_lab.compiler.ir.effects import Effect
from inductor_lab.compiler.ir.program import ExternCall
from inductor_lab.compiler.runtime.rank_failures import Collectives
from inductor_lab.compiler.runtime.toolchain.find_compiler import Toolchain

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
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embedding(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


Compile = Callable[[nn.Module], nn.Module]
"""Compiles a module, in place or by wrapping it; or leaves it as it is."""


def place() -> torch.device:
    """The device of the group's tensors: a GPU for NCCL."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def mesh() -> Any:
    return init_device_mesh(place().type, (dist.get_world_size(),))


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
    """Between the matrix products, each rank has its part of every sequence."""
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
"""Kinds of parallelism in which all ranks process one batch together."""


def losses(way: Callable[..., nn.Module], options: dict[str, Any] | None, steps: int) -> Any:
    """The loss of each training step; `options` of the compiler, None for eager."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._dynamo.config.optimize_ddp = True
    torch.manual_seed(0)
    net = Net()

    def compiled(module: nn.Module) -> nn.Module:
        if options is not None:
            module.compile(backend="inductor_lab", options=options)
        return module

    model = way(copy.deepcopy(net).to(place()), compiled)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=way not in SAME_DATA)
    drawn = torch.Generator().manual_seed(0 if way in SAME_DATA else dist.get_rank())
    found = []
    for _ in range(steps):
        words = torch.randint(0, WORDS, (4, 16), generator=drawn).to(place())
        loss = cross_entropy(model(words).flatten(0, 1), words.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    made = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert (made > 0) is (options is not None), "the net is compiled, and in eager mode it is not"
    return found


def every_way(names: tuple[str, ...], times: int) -> dict[str, Any]:
    """Losses in eager mode, and compiled so many times, by the name of the way."""
    ways = {way.__name__: way for way in SHARED_OUT}
    runs = (None, *({} for _ in range(times)))
    return {name: [losses(ways[name], options, STEPS) for options in runs] for name in names}


CACHES = ("INDUCTOR_LAB_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")


def each_its_own(options: list[dict[str, Any]], caches: list[str]) -> Any:
    """Losses, the collectives that were begun, and what AOTAutograd found on disk.

    Each rank compiles with its own options, and with a cache that is empty or filled."""
    os.environ.update(dict.fromkeys(CACHES, caches[dist.get_rank()]))
    begun, call = list[str](), Collectives.__call__

    def noted(collective: Collectives, *args: Any, **kwargs: Any) -> Any:
        begun.append(str(collective))
        return call(collective, *args, **kwargs)

    Collectives.__call__ = noted
    found = losses(sequence_parallel, options[dist.get_rank()], 3)
    counted = torch._dynamo.utils.counters["aot_autograd"]
    return found, [name for name in begun if "wait" not in name], dict(counted)


def total(x: torch.Tensor) -> torch.Tensor:
    """The sum over all ranks, followed by work that does not depend on it."""
    summed = funcol.all_reduce(x * 2, "sum", dist.group.WORLD)
    return (x @ x).relu() + 1, summed + 1


def compiled_together(broken: int, how: str) -> Any:
    """Rank `broken` fails: it cannot compile, or it is killed in its first compile (in
    lowering, or while the C++ compiler writes), or between two calls."""
    x, mine = torch.ones(64, 64), dist.get_rank() == broken
    # kernels that the others do not have, or another rank may have built them
    options = {"fusion": {"enabled": False}} if mine else None
    fast = torch.compile(total, backend="inductor_lab", options=options)
    if how == "between calls":
        fast(x)
        if mine:
            _killed()
        time.sleep(1.0)  # the other rank has certainly ended
    elif mine and how == "in the C++ compiler":
        Toolchain.compile = _killed_while_writing
    elif mine and how in LOWERINGS:
        with lab.override(lowering={torch.ops.aten.relu.default: LOWERINGS[how]}):
            fast(x)
    return fast(x)[1].tolist()


def _cannot(*given: Any) -> Any:
    raise ValueError("the seeded fault")


def _killed(*given: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _killed_while_writing(toolchain: Toolchain, source: Path, library: Path) -> Any:
    library.write_bytes(b"half of a library")
    _killed()


LOWERINGS = {"cannot compile": _cannot, "in lowering": _killed}


def mesh_of(size: int) -> Any:
    """Create a mesh of another size than the group; then use the group with its own size."""
    try:
        init_device_mesh("cpu", (size,))
    except RuntimeError as problem:
        summed = torch.compile(total, backend="inductor_lab")(torch.ones(2, 2))[1]
        return str(problem), summed.tolist()


def schedule() -> Any:
    """The order in which a rank runs its steps, and the buffers that share memory."""
    found = lab.inspect(total, torch.ones(64, 64)).graphs[0].forward.schedule
    names = [s.op if isinstance(s, ExternCall) else s.name for s in found.steps]
    lives = {life.buffer: (life.first, life.last) for life in found.memory.lifetimes}
    sent = [s for s in found.steps if isinstance(s, ExternCall) and s.effect is Effect.COLLECTIVE]
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
    lab.inspect(gathered, torch.ones(4)).save(f"{folder}/gathered{rank}.lab.json")
    return rank


def gathered(x: torch.Tensor) -> torch.Tensor:
    return funcol.all_gather_tensor(x * 2, 0, dist.group.WORLD) + 1


def gradients(x: torch.Tensor, weights: list[torch.Tensor]) -> Any:
    """Means over all ranks, whose results are not awaited, and a sum that is used."""
    means, y = [], x
    for w in weights:
        y = torch.tanh(y @ w)
        means.append(funcol.all_reduce(y.sum(0), "sum", dist.group.WORLD) / dist.get_world_size())
    needed = funcol.all_reduce(y, "sum", dist.group.WORLD)
    return means, funcol.all_reduce(needed.relu().sum(1), "sum", dist.group.WORLD)


def in_place(x: torch.Tensor) -> torch.Tensor:
    """Collectives that write into a tensor of the program, an input, and an empty buffer."""
    y, whole = x * 2, x.new_empty(dist.get_world_size() * x.shape[0], x.shape[1])
    dist.all_reduce(y)
    dist.all_reduce(x)
    dist.all_gather_into_tensor(whole, y)
    return whole + x.repeat(dist.get_world_size(), 1)


def small_messages() -> Any:
    """Do joined messages and in-place collectives equal eager mode, and which ones were sent?"""
    torch.manual_seed(dist.get_rank())
    x, *weights = (torch.randn(n, 8).to(place()) for n in (16, 8, 8, 8, 8))
    c = lab.inspect(gradients, x, weights)
    sent = [s.op for s in c.graphs[0].forward.schedule.steps if isinstance(s, ExternCall)]
    torch.testing.assert_close(c.result, gradients(x, weights))
    given, mine = x.clone(), x.clone()
    fast = torch.compile(in_place, backend="inductor_lab")
    torch.testing.assert_close(fast(mine), in_place(given))
    torch.testing.assert_close(mine, given)
    fired = c.graphs[0].forward.rewrites.steps[0].fired
    return [op.split(".")[1] for op in sent if "all_" in op], [str(one) for one in fired]


def with_checks(steps: int) -> Any:
    """FSDP2 frees storages of parameters between uses: is every read of a kernel in bounds?"""
    return losses(fsdp, None, steps), losses(fsdp, {"check_bounds": True}, steps)
