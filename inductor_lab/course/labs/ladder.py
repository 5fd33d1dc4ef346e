"""Lab 14, the Triton ladder: eight kernels, from a copy to flash attention.

Each kernel runs twice, the second time with the last program first.  It is judged by what it
stores, by accesses outside of its tensors, by races between programs, and by its loads.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from inductor_lab.course.exercise import Exercise, exercise, run_there
from inductor_lab.course.gpu import Trace
from inductor_lab.course.labs.gpu import power, stored_wrong
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture
from inductor_lab.course.races import Access

LAUNCHED = "inductor_lab.course.gpu:launched"
TOLERANCE = 1e-4
"""Of sums in another order, and of exponentials."""


def blocks(length: int, block: int) -> int:
    """How many blocks a length needs."""
    return -(-length // block)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a launch, the length of its blocks, and the seed of its numbers."""

    rows: int
    columns: int
    inner: int
    block: int
    seed: int

    def __str__(self) -> str:
        return f"rows={self.rows}, columns={self.columns}, inner={self.inner}, BLOCK={self.block}"

    def numbers(self, *shape: int, at: int = 0) -> torch.Tensor:
        """Small whole numbers, other ones for each `at`."""
        draw = torch.Generator().manual_seed(self.seed + at)
        return torch.randint(-9, 9, shape, generator=draw).float()


class _Rung(Exercise):
    """A kernel `f(*tensors, out, *sizes, BLOCK)`.

    most   for each tensor, how often each of its elements may be loaded, on average
    """

    blocks: ClassVar[tuple[int, ...]] = (4, 8)

    def tensors(self, case: Sizes) -> list[torch.Tensor]:
        raise NotImplementedError

    def wanted(self, *tensors: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def grid(self, case: Sizes) -> tuple[int, ...]:
        raise NotImplementedError

    def sizes(self, case: Sizes) -> tuple[Any, ...]:
        """The numbers that the kernel gets behind its tensors."""
        raise NotImplementedError

    def constants(self, case: Sizes) -> Mapping[str, int]:
        return {"BLOCK": case.block}

    def most(self, case: Sizes) -> tuple[int, ...]:
        return (1,) * len(self.tensors(case))

    def out(self, wanted: torch.Tensor) -> torch.Tensor:
        """What the result is before the kernel runs."""
        return torch.full_like(wanted, torch.nan)

    def cases(self, draw: random.Random) -> Iterator[Sizes]:
        for n in range(8):
            rows, columns, inner = (draw.randint(1, 3 + 3 * n) for _ in range(3))
            yield Sizes(rows, columns, inner, draw.choice(self.blocks), draw.randrange(99))

    def smaller(self, case: Sizes) -> Iterable[Sizes]:
        for name in ("rows", "columns", "inner"):
            if (size := getattr(case, name)) > 1:
                yield replace(case, **{name: size // 2})
                yield replace(case, **{name: size - 1})

    def judge(self, solution: Any, case: Sizes) -> str | None:
        tensors = self.tensors(case)
        wanted = self.wanted(*tensors)
        for backwards in (False, True):
            found, outside, seen = self._launched(solution, case, wanted, backwards)
            if outside:
                return str(outside)
            wrong = stored_wrong(found, wanted, TOLERANCE)
            trace = Trace({n: one.numel() for n, one in enumerate(tensors)},
                          [Access(*each) for each in seen])  # fmt: skip
            race = next(iter(trace.races()), None)
            if race is not None:
                return str(race)
            if wrong:
                return wrong
        return self._too_many_loads(trace, case)

    def _too_many_loads(self, trace: Trace, case: Sizes) -> str | None:
        for argument, most in enumerate(self.most(case)):
            loaded = trace.times(argument)
            if loaded > most:
                return say(
                    "argument {n} is loaded {a:.1f} times per element; {b} is enough",
                    n=argument, a=loaded, b=most,
                )  # fmt: skip
        return None

    def _launched(
        self, solution: Any, case: Sizes, wanted: torch.Tensor, backwards: bool = False
    ) -> Any:
        return run_there(
            solution, LAUNCHED, solution, self.grid(case), self.tensors(case), self.out(wanted),
            self.sizes(case), dict(self.constants(case)), backwards,
        )  # fmt: skip

    def picture(self, solution: Any, case: Sizes) -> Picture | None:
        """What each program accesses of the first tensor, up to the first error."""
        tensors = self.tensors(case)
        _, _, seen = self._launched(solution, case, self.wanted(*tensors))
        return Trace({0: tensors[0].numel()}, [Access(*each) for each in seen]).picture(0)


@exercise("14.1", "Copy", "复制", points=1, limit=60.0)
class Copy(_Rung):
    """`copy(x, out, count, BLOCK)`: a block of elements for each program."""

    def tensors(self, case: Sizes) -> list[torch.Tensor]:
        return [case.numbers(case.rows * case.columns)]

    def wanted(self, *tensors: torch.Tensor) -> torch.Tensor:
        return tensors[0].clone()

    def grid(self, case: Sizes) -> tuple[int, ...]:
        return (blocks(case.rows * case.columns, case.block),)

    def sizes(self, case: Sizes) -> tuple[Any, ...]:
        return (case.rows * case.columns,)


@exercise("14.2", "Add a bias", "加偏置", points=1, limit=60.0)
class AddBias(_Rung):
    """`add_bias(x, bias, out, rows, columns, BLOCK)`: a block of rows and columns each."""

    def tensors(self, case: Sizes) -> list[torch.Tensor]:
        return [case.numbers(case.rows, case.columns), case.numbers(case.columns, at=1)]

    def wanted(self, *tensors: torch.Tensor) -> torch.Tensor:
        return tensors[0] + tensors[1]

    def grid(self, case: Sizes) -> tuple[int, ...]:
        return blocks(case.rows, case.block), blocks(case.columns, case.block)

    def sizes(self, case: Sizes) -> tuple[Any, ...]:
        return case.rows, case.columns

    def most(self, case: Sizes) -> tuple[int, ...]:
        return 1, blocks(case.rows, case.block)


@exercise("14.3", "Transpose", "转置", points=2, limit=60.0)
class Transpose(_Rung):
    """`transpose(x, out, rows, columns, BLOCK)`: a tile for each program."""

    def tensors(self, case: Sizes) -> list[torch.Tensor]:
        return [case.numbers(case.rows, case.columns)]

    def wanted(self, *tensors: torch.Tensor) -> torch.Tensor:
        return tensors[0].T.contiguous()

    def grid(self, case: Sizes) -> tuple[int, ...]:
        return blocks(case.rows, case.block), blocks(case.columns, case.block)

    def sizes(self, case: Sizes) -> tuple[Any, ...]:
        return case.rows, case.columns


@exercise("14.4", "Sums of long rows", "长行求和", points=2, limit=60.0)
class RowSums(_Rung):
    """`row_sums(x, out, columns, BLOCK)`: a program for each row, and a loop over its blocks."""

    def tensors(self, case: Sizes) -> list[torch.Tensor]:
        return [case.numbers(case.rows, case.columns)]

    def wanted(self, *tensors: torch.Tensor) -> torch.Tensor:
        return tensors[0].sum(-1)

    def grid(self, case: Sizes) -> tuple[int, ...]:
        return (case.rows,)

    def sizes(self, case: Sizes) -> tuple[Any, ...]:
        return (case.columns,)


@exercise("14.5", "Softmax of long rows", "长行 softmax", points=3, limit=60.0)
class LongSoftmax(RowSums):
    """`long_softmax(x, out, columns, BLOCK)`: each element is loaded at most twice."""

    def wanted(self, *tensors: torch.Tensor) -> torch.Tensor:
        return torch.softmax(tensors[0], -1)

    def most(self, case: Sizes) -> tuple[int, ...]:
        return (2,)


@exercise("14.6", "Histogram", "直方图", points=2, limit=60.0)
class Histogram(Copy):
    """`histogram(x, out, count, BLOCK)`: how often each whole number occurs; out begins with 0."""

    def tensors(self, case: Sizes) -> list[torch.Tensor]:
        return [(case.numbers(case.rows * case.columns) + 9).to(torch.int32) % 8]

    def wanted(self, *tensors: torch.Tensor) -> torch.Tensor:
        return torch.bincount(tensors[0].long(), minlength=8).float()

    def out(self, wanted: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(wanted)


@exercise("14.7", "Matrix product", "矩阵乘法", points=3, limit=90.0)
class Product(_Rung):
    """`product(a, b, out, rows, columns, inner, BLOCK)`: a tile of the result for each program."""

    def tensors(self, case: Sizes) -> list[torch.Tensor]:
        return [case.numbers(case.rows, case.inner), case.numbers(case.inner, case.columns, at=1)]

    def wanted(self, *tensors: torch.Tensor) -> torch.Tensor:
        return tensors[0] @ tensors[1]

    def grid(self, case: Sizes) -> tuple[int, ...]:
        return blocks(case.rows, case.block), blocks(case.columns, case.block)

    def sizes(self, case: Sizes) -> tuple[Any, ...]:
        return case.rows, case.columns, case.inner

    def most(self, case: Sizes) -> tuple[int, ...]:
        return blocks(case.columns, case.block), blocks(case.rows, case.block)


@exercise("14.8", "Flash attention", "分块注意力：flash attention", points=4, limit=90.0)
class FlashAttention(_Rung):
    """`attention(q, k, v, out, length, inner, scale, BLOCK, WIDTH)`: a block of queries for each
    program; keys and values are loaded once for each block of queries."""

    def tensors(self, case: Sizes) -> list[torch.Tensor]:
        return [case.numbers(case.rows, case.inner, at=n) for n in range(3)]

    def wanted(self, *tensors: torch.Tensor) -> torch.Tensor:
        q, k, v = tensors
        return torch.softmax(q @ k.T * _scale(q.shape[1]), -1) @ v

    def grid(self, case: Sizes) -> tuple[int, ...]:
        return (blocks(case.rows, case.block),)

    def sizes(self, case: Sizes) -> tuple[Any, ...]:
        return case.rows, case.inner, _scale(case.inner)

    def constants(self, case: Sizes) -> Mapping[str, int]:
        return {"BLOCK": case.block, "WIDTH": power(case.inner)}

    def most(self, case: Sizes) -> tuple[int, ...]:
        return 1, blocks(case.rows, case.block), blocks(case.rows, case.block)


def _scale(inner: int) -> float:
    return 1 / (8 * math.sqrt(inner))
