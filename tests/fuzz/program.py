"""Random programs: a strategy whose values are functions with their source and their inputs."""

from __future__ import annotations

import itertools
import linecache
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from hypothesis import strategies as st

from tests.fuzz import layers  # noqa: F401  (adds its kinds)
from tests.fuzz.lines import KINDS
from tests.fuzz.numbers import CALLS, NUMBER_KINDS, Number, drawn
from tests.fuzz.reach import RARELY, reach
from tests.fuzz.values import Values, copied

SHAPES = [(), (1,), (5,), (4, 6), (6,), (3, 1), (2, 3, 4), (4, 1, 6), (17,), (0, 3), (2, 2, 3, 4),
          (33, 20), (20, 33), (150,), (2, 70), (5, 5), (2, 8, 3, 3)]  # fmt: skip
DTYPES = ["float32", "float32", "float32", "float64", "int64", "int32", "uint8", "bool", "bfloat16",
          "float16", "int16", "int8"]  # fmt: skip
WEIGHTS = {"unary": 3, "binary": 4, "view": 3, "reduce": 3, "write": 2}

_numbers = itertools.count()


VIEWS = [
    "",
    "",
    "",
    "",
    "x.mT",
    "x[..., ::2]",
    "x[1:]",
    "x.flip(0).movedim(0, -1)",
    "x[:1].expand(3, *x.shape[1:])",
    "x.as_strided((2, 2), (1, 1))",
    "x.view(-1)[1:]",
]


@dataclass(frozen=True)
class Input:
    """`exact` numbers, the same each time: a view of a tensor of a dtype and a shape.

    One that is `shared` is a view of the input before it.
    """

    dtype: str
    shape: tuple[int, ...]
    seed: int
    view: str = ""
    shared: bool = False

    def make(self, precise: bool = False, before: torch.Tensor | None = None) -> torch.Tensor:
        """The tensor, in float64 instead of other floats if `precise`."""
        base = before if self.shared and before is not None else self._base(precise)
        return eval(self.view, {"x": base}) if self.view else base

    def _base(self, precise: bool) -> torch.Tensor:
        count = torch.Size(self.shape).numel()
        numbers = (torch.arange(count) * 37 + 11 * self.seed + 5) % 29
        dtype = getattr(torch, self.dtype)
        if dtype is torch.bool:
            return (numbers % 2 == 0).reshape(self.shape)
        if dtype.is_floating_point:
            wide = torch.float64 if precise else dtype
            return ((numbers - 14) / 4).reshape(self.shape).to(wide)
        if dtype is not torch.uint8:
            numbers = numbers - 14
        return numbers.reshape(self.shape).to(dtype)


@dataclass(frozen=True)
class Program:
    """Source text of a function `program(x0, x1, .., n0, ..)`, its inputs, and its numbers in the
    call whose `turn` it is."""

    lines: tuple[str, ...]
    results: tuple[str, ...]
    inputs: tuple[Input, ...]
    numbers: tuple[Number, ...] = ()
    turn: int = 0

    def __str__(self) -> str:
        known = [f"x{n}" for n in range(len(self.inputs))]
        known += [f"n{n}" for n in range(len(self.numbers))]
        names = ", ".join(known)
        returned = f"return {', '.join(self.results)},"
        items = [f"n{n} = n{n}.item()" for n, given in enumerate(self.numbers) if given.item]
        body = "\n".join(f"    {line}" for line in (*items, *self.lines, returned))
        given = zip(known, (*self.inputs, *self.numbers), strict=True)
        made = "\n".join(f"# {name}: {one}" for name, one in given)
        return f"{made}\ndef program({names}):\n{body}\n"

    def __repr__(self) -> str:
        return f"\n{self}"

    def make(self, precise: bool = False) -> list[torch.Tensor]:
        """The inputs and the numbers; if `precise`, floats are float64."""
        made: list[Any] = []
        for given in self.inputs:
            made.append(given.make(precise, made[-1] if made else None))
        return [*made, *(number.make(self.turn) for number in self.numbers)]

    def calls(self) -> list[Program]:
        """The program with the numbers of each call."""
        return [replace(self, turn=turn) for turn in range(CALLS)]

    def resized(self, lengths: Mapping[int, int]) -> Program:
        """The same lines for inputs of other sizes."""

        def other(given: Input) -> Input:
            return replace(given, shape=tuple(lengths.get(n, n) for n in given.shape))

        return replace(self, inputs=tuple(map(other, self.inputs)))

    def with_copies(self) -> Program:
        """The same program working on copies of its inputs, so that it may write to them."""
        copied = (f"x{n} = x{n}.clone()" for n in range(len(self.inputs)))
        return replace(self, lines=(*copied, *self.lines))

    def function(self, precise: bool = False) -> Callable[..., Any]:
        """The function; `precise` converts to float64 what it converts to less."""
        text = str(self)
        if precise:
            low = r"torch\.(bfloat16|float16|float32)"
            made = r"\.to\(torch\.(bfloat16|float16|float32|float64)\)"
            text = re.sub(made, ".to(torch.float64, copy=True)", text)
            text = re.sub(f"={low}", "=torch.float64", text)
        file = f"<random program {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "math": math}
        exec(compile(text, file, "exec"), scope)
        return scope["program"]


@st.composite
def programs(
    draw: st.DrawFn, shortest: int = 10, longest: int = 40, numbers: bool = False
) -> Program:
    """A program of some lines; values that no line reads, and some others, are its results."""
    inputs: list[Input] = []
    values = Values()
    for number in range(draw(st.integers(1, 4))):
        dtype, shape = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SHAPES))
        shared = number > 0 and draw(st.integers(0, 9)) == 9
        one = Input(dtype, shape, number, draw(st.sampled_from(VIEWS)), shared)
        before = values[f"x{number - 1}"] if number else None
        try:
            made = one.make(before=before)
        except (RuntimeError, IndexError):
            one = replace(one, view="", shared=False)
            made = one.make()
        inputs.append(one)
        values.env[f"x{number}"] = made
        values.names.append(f"x{number}")
    kinds = [name for name in KINDS for _ in range(WEIGHTS.get(name, 1))]
    given = drawn(draw) if numbers else ()
    values.others = [copied(values.env) for _ in range(CALLS - 1) if given]
    for turn, env in enumerate((values.env, *values.others)):
        env.update({f"n{n}": number.value(turn) for n, number in enumerate(given)})
    kinds += [name for name in NUMBER_KINDS for _ in range(4)] if numbers else []
    length = draw(st.integers(shortest, (shortest + longest) // 2 if numbers else longest))
    reaching = draw(st.integers(1, length)) if draw(st.integers(1, RARELY)) == RARELY else 0
    for _ in range(4 * length):
        if len(values.lines) >= length:
            break
        if reaching and len(values.lines) >= reaching and reach(values, draw):
            reaching = 0
        chosen = draw(st.sampled_from(kinds))
        (KINDS.get(chosen) or NUMBER_KINDS[chosen])(values, draw)
    own = [name for name in values.names if name.startswith("v")] or values.names
    read = {name for line in values.lines for name in re.findall(r"\bv\d+", line.partition("=")[2])}
    some = draw(st.lists(st.sampled_from(own), max_size=3, unique=True))
    raised = [values.raised] if values.raised else []
    results = tuple(dict.fromkeys([*(name for name in own if name not in read), *some, *raised]))
    return Program(tuple(values.lines), results, tuple(inputs), given)
