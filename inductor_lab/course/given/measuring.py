"""Lab 11: calls in a loop, some of which compile."""

from __future__ import annotations

from dataclasses import dataclass

import torch


def scale(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).sin()


@dataclass(frozen=True)
class Series:
    """Calls in a timed loop: sizes, or dtypes, or with gradients and without.

    again  whether `torch.compile` stands inside of the loop
    """

    name: str
    inputs: tuple[torch.Tensor, ...]
    gradient: tuple[bool, ...] = ()
    again: bool = False

    def calls(self) -> list[str]:
        """What differs from call to call, in short."""
        off = [bool(self.gradient) and not grad for grad in self.gradient or self.inputs]
        return [f"{str(x.dtype)[6:]}[{len(x)}]{' no_grad' if no else ''}"
                for x, no in zip(self.inputs, off, strict=True)]  # fmt: skip


def ones(*sizes: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.ones(size) for size in sizes)


LOOPS = (
    Series("equal", ones(100, 100, 100, 100)),
    Series("sizes", ones(100, 100, 200, 300, 200)),
    Series("dtypes", (torch.ones(9), torch.ones(9).double(), torch.ones(9))),
    Series("gradients", ones(9, 9, 9), gradient=(True, False, True)),
    Series("again", ones(9, 9, 9), again=True),
)
