"""A training run whose log the tests read: a graph break, a restart, recompiles, cache misses.

    TORCH_TRACE=FOLDER INDUCTOR_PROVENANCE=1 python training.py
"""

from __future__ import annotations

import torch


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        h = torch.nn.functional.gelu(self.inner(x))
        print("in the middle")
        return torch.softmax(h, -1)


@torch.compile
def scaled(x, k):
    return (x.sin() + k).cos()


def train() -> None:
    model = Model()
    compiled = torch.compile(model)
    for rows in (4, 6):
        compiled(torch.ones(rows, 8)).pow(2).sum().backward()
    with torch.no_grad():
        for k in (1, 2):
            scaled(torch.ones(10), k)


if __name__ == "__main__":
    train()
