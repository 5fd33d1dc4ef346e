"""Programs that are compiled in a process that refuses to import some of our packages:

    python -m tests.project.deleted inductor_lab.compiler.accelerate inductor_lab.debug

Prints the modules of ours that were imported, in order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from typing import Any


class Refuses(MetaPathFinder):
    """Makes packages look as if they had been deleted."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith(tuple(f"{refused}." for refused in self.names)) or name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def programs() -> Iterator[tuple[str, Callable[[], Sequence[Any]]]]:
    """A function of each program, which returns what it computes, gradients included."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    mlp = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))
    image = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()).eval()
    x, labels = torch.randn(32, 64), torch.randint(0, 10, (32,))
    rows, pictures = torch.randn(64, 1000), torch.randn(2, 3, 32, 32)
    index = torch.randint(0, 64, (100,))

    def training_step() -> Sequence[Any]:
        loss = F.cross_entropy(mlp(x), labels)
        return [loss, *torch.autograd.grad(loss, list(mlp.parameters()))]

    yield "softmax", lambda: [rows.softmax(-1)]
    yield "training step", training_step
    yield "convolution", lambda: [image(pictures)]
    yield "reductions", lambda: [rows.sum(0), rows.amax(1), rows.argmax(1), rows.var(1)]
    yield "gather and scatter", lambda: [rows[index], rows.index_add(0, index, rows[index])]
    yield "scan and sort", lambda: [rows.cumsum(1), rows.sort(1).values]
    yield "half", lambda: [(rows.half() * 2).sum(1), rows.bfloat16().exp()]
    yield "transpose", lambda: [(rows.T.contiguous() + 1), F.pad(rows, (1, 2)).tanh()]


def compare(options: dict[str, Any]) -> None:
    import torch
    from torch.testing import assert_close

    torch.manual_seed(0)
    for name, program in programs():
        torch.compiler.reset()
        fast = torch.compile(program, backend="inductor_lab", options=options)
        for _ in range(2):
            for ours, eager in zip(fast(), program(), strict=True):
                assert_close(ours, eager, rtol=1e-3, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


def main() -> None:
    options: dict[str, Any] = {"passes_off": "all", "accelerators_off": "all"}
    bare = "--bare" in sys.argv
    sys.meta_path.insert(0, Refuses([name for name in sys.argv[1:] if name != "--bare"]))
    compare(options if bare else {})
    print(*(name for name in sys.modules if name.split(".")[0] == "inductor_lab"), sep="\n")


if __name__ == "__main__":
    main()
