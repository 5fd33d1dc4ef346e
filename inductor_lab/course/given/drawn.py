"""Small tensor programs drawn from a name: the same name gives the same programs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch

HOW_MANY = 3
OVER = ("{}.sum(-1, keepdim=True)", "{}.amax(-1, keepdim=True)", "{}.sum(0)", "{}.T", "{}.mean()")
UNARY = ("torch.sin({})", "torch.relu({})", "torch.exp(-{})")
BINARY = ("{} + {}", "{} * {}", "{} - {}")


@dataclass(frozen=True)
class Drawn:
    """A function of x and w, 64 x 64 floats each: its name, and its text."""

    name: str
    source: str

    def function(self) -> Any:
        """The program as a Python function."""
        made: dict[str, Any] = {"torch": torch}
        exec(self.source, made)
        return made[self.name]

    def __str__(self) -> str:
        return self.source


def drawn(name: str) -> tuple[Drawn, ...]:
    """The programs of a student."""
    draw = random.Random(name)
    return tuple(_program(draw, f"program_{n}", lines=4 + n) for n in range(HOW_MANY))


def _program(draw: random.Random, name: str, lines: int) -> Drawn:
    """Each line reads the line before it, so each is needed; one is a matrix product."""
    product = draw.randrange(lines)
    text, known, before = [f"def {name}(x, w):"], ["w"], "x"
    for n in range(lines):
        kind = draw.choice(("unary", "binary", "over"))
        if n == product:
            value = f"({before} + x) @ w"
        elif kind == "unary":
            value = draw.choice(UNARY).format(before)
        elif kind == "binary":
            value = draw.choice(BINARY).format(before, draw.choice(known))
        else:
            value = f"{before} - {draw.choice(OVER).format(before)}"
        known.append(before)
        before = f"t{n}"
        text.append(f"    {before} = {value}")
    return Drawn(name, "\n".join([*text, f"    return {before}"]))
