"""Random programs: a strategy whose values are functions with their source and their inputs."""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from hypothesis import strategies as st

from tests.fuzz.lines import KINDS
from tests.fuzz.values import Values

SHAPES = [(), (1,), (5,), (4, 6), (6,), (3, 1), (2, 3, 4), (4, 1, 6), (17,), (0, 3), (2, 2, 3, 4)]
DTYPES = ["float32", "float32", "float32", "float64", "int64", "int32", "uint8", "bool", "bfloat16",
          "float16", "int16", "int8"]  # fmt: skip
WEIGHTS = {"unary": 3, "binary": 4, "view": 3, "reduce": 3, "write": 2}

_numbers = itertools.count()


@dataclass(frozen=True)
class Input:
    """`exact` numbers, the same each time, of a dtype and a shape."""

    dtype: str
    shape: tuple[int, ...]
    seed: int

    def make(self) -> torch.Tensor:
        count = torch.Size(self.shape).numel()
        numbers = (torch.arange(count) * 37 + 11 * self.seed + 5) % 29
        if self.dtype == "bool":
            return (numbers % 2 == 0).reshape(self.shape)
        if self.dtype.startswith(("float", "bfloat")):
            numbers = (numbers - 14) / 4
        elif self.dtype != "uint8":
            numbers = numbers - 14
        return numbers.reshape(self.shape).to(getattr(torch, self.dtype))


@dataclass(frozen=True)
class Program:
    """Source text of a function `program(x0, x1, ...)`, and its inputs."""

    lines: tuple[str, ...]
    results: tuple[str, ...]
    inputs: tuple[Input, ...]

    def __str__(self) -> str:
        names = ", ".join(f"x{n}" for n in range(len(self.inputs)))
        returned = f"return {', '.join(self.results)},"
        body = "\n".join(f"    {line}" for line in (*self.lines, returned))
        made = "\n".join(f"# x{n}: {given}" for n, given in enumerate(self.inputs))
        return f"{made}\ndef program({names}):\n{body}\n"

    def __repr__(self) -> str:
        return f"\n{self}"

    def make(self) -> list[torch.Tensor]:
        return [given.make() for given in self.inputs]

    def with_copies(self) -> Program:
        """The same program working on copies of its inputs, so that it may write to them."""
        copied = (f"x{n} = x{n}.clone()" for n in range(len(self.inputs)))
        return replace(self, lines=(*copied, *self.lines))

    def function(self, precise: bool = False) -> Callable[..., Any]:
        """The function; `precise` converts to float64 what it converts to less."""
        text = str(self)
        if precise:
            text = re.sub(
                r"\.to\(torch\.(bfloat16|float16|float32)\)", ".to(torch.float64, copy=True)", text
            )
        file = f"<random program {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
        exec(compile(text, file, "exec"), scope)
        return scope["program"]


@st.composite
def programs(draw: st.DrawFn, shortest: int = 10, longest: int = 40) -> Program:
    """A program of some lines; values that no line reads, and some others, are its results."""
    inputs = tuple(
        Input(draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SHAPES)), number)
        for number in range(draw(st.integers(1, 4)))
    )
    values = Values()
    for number, given in enumerate(inputs):
        values.env[f"x{number}"] = given.make()
        values.names.append(f"x{number}")
    kinds = [name for name in KINDS for _ in range(WEIGHTS.get(name, 1))]
    length = draw(st.integers(shortest, longest))
    for _ in range(4 * length):
        if len(values.lines) >= length:
            break
        KINDS[draw(st.sampled_from(kinds))](values, draw)
    own = [name for name in values.names if name.startswith("v")] or values.names
    read = {name for line in values.lines for name in re.findall(r"\bv\d+", line.partition("=")[2])}
    some = draw(st.lists(st.sampled_from(own), max_size=3, unique=True))
    results = tuple(dict.fromkeys([*(name for name in own if name not in read), *some]))
    return Program(tuple(values.lines), results, inputs)
