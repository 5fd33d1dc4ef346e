"""Random programs: a strategy whose values are functions with their source and their inputs."""

from __future__ import annotations

import itertools
import linecache
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from hypothesis import strategies as st

from tests.fuzz import layers  # noqa: F401  (adds its kinds)
from tests.fuzz.aliases import ALIAS_KINDS
from tests.fuzz.lines import KINDS
from tests.fuzz.numbers import CALLS, NUMBER_KINDS, Number, drawn
from tests.fuzz.reach import RARELY, reach
from tests.fuzz.values import Values, copied

SHAPES = [(), (1,), (5,), (4, 6), (6,), (3, 1), (2, 3, 4), (4, 1, 6), (17,), (0, 3), (2, 2, 3, 4),
          (33, 20), (20, 33), (150,), (2, 70), (5, 5), (2, 8, 3, 3)]  # fmt: skip
DTYPES = ["float32", "float32", "float32", "float64", "int64", "int32", "uint8", "bool", "bfloat16",
          "float16", "int16", "int8"]  # fmt: skip
WEIGHTS = {"unary": 3, "binary": 4, "view": 3, "reduce": 3, "write": 2}
RARE = {"overlap": 2, "write_again": 2, "result_in_argument": 1}
"""Of these, most programs have one or none."""

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

    One that is `shared` is a view of the input before it.  One with a `role` is a parameter or a
    buffer of the module that the program is then given.
    """

    dtype: str
    shape: tuple[int, ...]
    seed: int
    view: str = ""
    shared: bool = False
    role: Literal["", "parameter", "buffer"] = ""

    def make(self, precise: bool = False, before: torch.Tensor | None = None) -> torch.Tensor:
        """The tensor, in float64 instead of other floats if `precise`."""
        base = before.detach() if self.shared and before is not None else self._base(precise)
        made = eval(self.view, {"x": base}) if self.view else base
        if self.role != "parameter":
            return made
        return torch.nn.Parameter(made, requires_grad=made.is_floating_point())

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


class Net(torch.nn.Module):
    """The module of a program; `tensors` has its parameters and buffers."""

    def __init__(self, given: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.calls = 0
        self.names = tuple(given)
        for name, value in given.items():
            if isinstance(value, torch.nn.Parameter):
                self.register_parameter(name, value)
            else:
                self.register_buffer(name, value)

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [getattr(self, name) for name in self.names]


def tensors_of(given: Iterable[Any]) -> list[Any]:
    """What a program is given, with the tensors of a module in its place."""
    found: list[Any] = []
    for one in given:
        found += one.tensors if isinstance(one, Net) else [one]
    return found


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
        held = {f"x{n}" for n, one in enumerate(self.inputs) if one.role}
        names = ", ".join([*(name for name in known if name not in held), *(["m"] if held else [])])
        returned = f"return {', '.join(self.results)},"
        items = [f"n{n} = n{n}.item()" for n, given in enumerate(self.numbers) if given.item]
        items += [f"{name} = m.{name}" for name in sorted(held)]
        body = "\n".join(f"    {line}" for line in (*items, *self.lines, returned))
        given = zip(known, (*self.inputs, *self.numbers), strict=True)
        made = "\n".join(f"# {name}: {one}" for name, one in given)
        return f"{made}\ndef program({names}):\n{body}\n"

    def __repr__(self) -> str:
        return f"\n{self}"

    def make(self, precise: bool = False) -> list[torch.Tensor]:
        """The inputs and the numbers, then the module; if `precise`, floats are float64."""
        made: list[Any] = []
        for given in self.inputs:
            made.append(given.make(precise, made[-1] if made else None))
        pairs = list(enumerate(zip(self.inputs, made, strict=True)))
        held = {f"x{n}": value for n, (one, value) in pairs if one.role}
        plain = [value for _, (one, value) in pairs if not one.role]
        numbers = (number.make(self.turn) for number in self.numbers)
        return [*plain, *numbers, *([Net(held)] if held else [])]

    @property
    def has_parameters(self) -> bool:
        """May eager mode refuse a write that the program does outside of `torch.no_grad()`?"""
        return any(one.role == "parameter" for one in self.inputs)

    def calls(self) -> list[Program]:
        """The program with the numbers of each call."""
        return [replace(self, turn=turn) for turn in range(CALLS)]

    def resized(self, lengths: Mapping[int, int]) -> Program:
        """The same lines for inputs of other sizes."""

        def other(given: Input) -> Input:
            return replace(given, shape=tuple(lengths.get(n, n) for n in given.shape))

        return replace(self, inputs=tuple(map(other, self.inputs)))

    def with_copies(self) -> Program:
        """The same program working on copies of its inputs, so that it may write to them; what is
        a parameter stays one."""
        others = (n for n, one in enumerate(self.inputs) if one.role != "parameter")
        copied = (f"x{n} = x{n}.clone()" for n in others)
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
    draw: st.DrawFn,
    shortest: int = 10,
    longest: int = 40,
    numbers: bool = False,
    aliases: bool = False,
) -> Program:
    """A program of some lines; values that no line reads, and some others, are its results.

    With `numbers` or `aliases` there are lines of these kinds too.
    """
    inputs: list[Input] = []
    values = Values()
    is_module = aliases and draw(st.integers(0, 2)) == 2
    for number in range(draw(st.integers(1, 4))):
        dtype, shape = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SHAPES))
        shared = number > 0 and draw(st.integers(0, 9)) >= (5 if aliases else 9)
        role = draw(st.sampled_from(["", "parameter", "buffer"])) if is_module else ""
        one = Input(dtype, shape, number, draw(st.sampled_from(VIEWS)), shared, role)
        before = values[f"x{number - 1}"] if number else None
        try:
            made = one.make(before=before)
        except (RuntimeError, IndexError):
            one = replace(one, view="", shared=False)
            made = one.make()
        inputs.append(one)
        values.env[f"x{number}"] = made = made.detach()
        if role == "parameter":
            values.parameters.add(made.untyped_storage()._cdata)
        values.names.append(f"x{number}")
    if any(one.role for one in inputs):
        values.env["m"] = Net({f"x{n}": values[f"x{n}"] for n, i in enumerate(inputs) if i.role})
    kinds = [name for name in KINDS for _ in range(WEIGHTS.get(name, 1))]
    given = drawn(draw) if numbers else ()
    values.others = [copied(values.env) for _ in range(CALLS - 1) if given]
    for turn, env in enumerate((values.env, *values.others)):
        env.update({f"n{n}": number.value(turn) for n, number in enumerate(given)})
    kinds += [name for name in NUMBER_KINDS for _ in range(4)] if numbers else []
    kinds += [name for name in ALIAS_KINDS for _ in range(RARE.get(name, 4))] if aliases else []
    every = {**KINDS, **NUMBER_KINDS, **ALIAS_KINDS}
    length = draw(st.integers(shortest, (shortest + longest) // 2 if numbers else longest))
    rarely = not aliases and draw(st.integers(1, RARELY)) == RARELY
    reaching = draw(st.integers(1, length)) if rarely else 0
    for _ in range(4 * length):
        if len(values.lines) >= length:
            break
        if reaching and len(values.lines) >= reaching and reach(values, draw):
            reaching = 0
        chosen = draw(st.sampled_from(kinds))
        every[chosen](values, draw)
    own = [name for name in values.names if name.startswith("v")] or values.names
    read = {name for line in values.lines for name in re.findall(r"\bv\d+", line.partition("=")[2])}
    some = draw(st.lists(st.sampled_from(own), max_size=3, unique=True))
    raised = [values.raised] if values.raised else []
    results = tuple(dict.fromkeys([*(name for name in own if name not in read), *some, *raised]))
    return Program(tuple(values.lines), results, tuple(inputs), given)
