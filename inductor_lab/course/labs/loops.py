"""Lab 4, loops: views as strides, broadcasting, reshaping, an interpreter, a user's lowering."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, TypeAlias

import torch

from inductor_lab.course.exercise import Exercise, exercise, expected, run_there
from inductor_lab.course.given.loops import sigmoid_by
from inductor_lab.course.labs.wrong_values import lines, matrices
from inductor_lab.course.language import say
from inductor_lab.course.pictures import Picture

View: TypeAlias = tuple[Any, ...]
"""("transpose", d, e), ("select", d, i) or ("slice", d, start, stop, step)."""


@dataclass(frozen=True)
class Viewed:
    """A contiguous tensor of some sizes, and views taken one after the other."""

    size: tuple[int, ...]
    views: tuple[View, ...]

    def tensors(self) -> Iterator[torch.Tensor]:
        """The tensor after each view; raises IndexError for a view that is not possible."""
        tensor = torch.arange(prod(self.size)).reshape(self.size)
        yield tensor
        for kind, dim, *rest in self.views:
            if dim >= tensor.dim() or (kind == "transpose" and rest[0] >= tensor.dim()):
                raise IndexError(kind)
            if kind == "transpose":
                tensor = tensor.transpose(dim, rest[0])
            elif kind == "select":
                tensor = tensor.select(dim, rest[0])
            else:
                tensor = tensor[(slice(None),) * dim + (slice(*rest),)]
            yield tensor

    def last(self) -> torch.Tensor:
        return list(self.tensors())[-1]

    def __str__(self) -> str:
        return "\n".join([say("size {s}, contiguous", s=list(self.size)), *map(str, self.views)])


def layout_of(tensor: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(size, stride, offset) of a tensor, in elements."""
    return tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset())


def places(size: Iterable[int], stride: Iterable[int], offset: int = 0) -> list[int]:
    """The positions of the elements in memory, row by row."""
    steps = [range(0, length * step, step) if step else [0] * length
             for length, step in zip(size, stride, strict=True)]  # fmt: skip
    return [offset + sum(place) for place in product(*steps)]


@exercise("4.1", "Views are index arithmetic", "视图就是下标运算", points=3)
class Views(Exercise):
    """`view(size, stride, offset, op)`: (size, stride, offset) after one view."""

    def cases(self, draw: random.Random) -> Iterator[Viewed]:
        for n in range(90):
            size = tuple(draw.randint(2, 5) for _ in range(draw.randint(1, 3)))
            case = Viewed(size, ())
            for _ in range(1 + n // 30):
                shape = case.last().shape
                if not shape:
                    break
                dim = draw.randrange(len(shape))
                start = draw.randrange(shape[dim])
                stop, step = draw.randint(start + 1, shape[dim]), draw.randint(1, 3)
                views: list[View] = [
                    ("transpose", dim, draw.randrange(len(shape))),
                    ("select", dim, start),
                    ("slice", dim, start, stop, step),
                ]
                case = replace(case, views=(*case.views, draw.choice(views)))
            yield case

    def smaller(self, case: Viewed) -> Iterable[Viewed]:
        for n in range(len(case.views)):
            shorter = replace(case, views=case.views[:n] + case.views[n + 1 :])
            try:
                list(shorter.tensors())
            except IndexError:
                continue
            yield shorter

    def judge(self, solution: Any, case: Viewed) -> str | None:
        tensors = list(case.tensors())
        for op, before, after in zip(case.views, tensors, tensors[1:], strict=False):
            found = solution(*layout_of(before), op)
            wrong = expected(tuple, found)
            if wrong:
                return wrong
            wanted = layout_of(after)
            if len(found) != 3 or (tuple(found[0]), tuple(found[1]), found[2]) != wanted:
                return say(
                    "{op} of {b} gives (size, stride, offset) = {w}; your answer: {f}",
                    op=op, b=layout_of(before), w=wanted, f=found,
                )  # fmt: skip
        return None

    def picture(self, solution: Any, case: Viewed) -> Picture:
        tensors = list(case.tensors())
        for op, before, after in zip(case.views, tensors, tensors[1:], strict=False):
            found, right = solution(*layout_of(before), op), layout_of(after)
            if (tuple(found[0]), tuple(found[1]), found[2]) != right:
                break
        title = say("places in memory, in the order of the view")
        return lines(title, places(*right), places(*found))


@dataclass(frozen=True)
class Shapes:
    """Two sizes."""

    first: tuple[int, ...]
    second: tuple[int, ...]

    def __str__(self) -> str:
        return say("{a} and {b}", a=list(self.first), b=list(self.second))


@exercise("4.2", "Broadcasting is a stride of 0", "广播就是步长为 0", points=2)
class Broadcast(Exercise):
    """`broadcast(size, wanted)`: strides to read a contiguous tensor with that size."""

    def cases(self, draw: random.Random) -> Iterator[Shapes]:
        for n in range(80):
            wanted = tuple(draw.randint(1, 4) for _ in range(min(1 + n // 20, 4)))
            kept = wanted[draw.randrange(len(wanted)) :] if n % 2 else wanted
            yield Shapes(tuple(1 if draw.random() < 0.4 else length for length in kept), wanted)

    def judge(self, solution: Any, case: Shapes) -> str | None:
        found = solution(case.first, case.second)
        wrong = expected((tuple, list), found)
        wanted = torch.empty(case.first).expand(case.second)
        if wrong or len(found) != wanted.dim():
            return wrong or say(
                "the result needs {n} strides, one for each of its dimensions, not {f}",
                n=wanted.dim(), f=list(found),
            )  # fmt: skip
        for place, (length, right, mine) in enumerate(
            zip(case.second, wanted.stride(), found, strict=True)
        ):
            if length > 1 and right != mine:
                return say(
                    "the stride of dimension {d} is {a}; your answer: {b}",
                    d=place, a=right, b=mine,
                )  # fmt: skip
        return None

    def picture(self, solution: Any, case: Shapes) -> Picture:
        right = torch.empty(case.first).expand(case.second).stride()
        mine = solution(case.first, case.second)
        title = say("places in memory, in the order of the result")
        return lines(title, places(case.second, right), places(case.second, mine))


@dataclass(frozen=True)
class Reshaped:
    """A layout, and the sizes that it shall be read as."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    wanted: tuple[int, ...]

    def __str__(self) -> str:
        return say(
            "size {s}, stride {t}, wanted {w}", s=self.size, t=self.stride, w=self.wanted
        )  # fmt: skip

    def strides(self) -> tuple[int, ...] | None:
        """torch's answer: the strides of a view, or None if it has to copy."""
        tensor = torch.empty(1000).as_strided(self.size, self.stride)
        try:
            return tensor.view(self.wanted).stride()
        except RuntimeError:
            return None


@exercise("4.3", "When a reshape is a view", "什么时候 reshape 只是视图", points=3)
class Reshape(Exercise):
    """`reshape(size, stride, wanted)`: the new strides, or None if data must be copied."""

    def cases(self, draw: random.Random) -> Iterator[Reshaped]:
        for _ in range(150):
            primes = [draw.choice([2, 3, 5]) for _ in range(draw.randint(1, 3))]
            size, wanted = self._sizes(draw, primes), self._sizes(draw, primes)
            tensor = torch.empty(size)
            if draw.random() < 0.4:
                order = list(range(len(size)))
                draw.shuffle(order)
                tensor = tensor.permute(order)
            if draw.random() < 0.2:
                tensor = torch.empty(*tensor.shape, 2)[..., 0]
            yield Reshaped(tuple(tensor.shape), tensor.stride(), wanted)

    def _sizes(self, draw: random.Random, primes: list[int]) -> tuple[int, ...]:
        sizes = [primes[0]]
        for prime in primes[1:]:
            if draw.random() < 0.5:
                sizes.append(prime)
            else:
                sizes[-1] *= prime
        return tuple(sizes)

    def judge(self, solution: Any, case: Reshaped) -> str | None:
        found, wanted = solution(case.size, case.stride, case.wanted), case.strides()
        wrong = None if found is None else expected((tuple, list), found)
        if wrong:
            return wrong
        if found is None and wanted is not None:
            return say("no copy is needed: the strides are {w}", w=wanted)
        if found is not None and wanted is None:
            return say(
                "no strides can do this, so the data must be copied; your answer: "
                "{f}", f=tuple(found)
            )
        if found is not None and tuple(found) != wanted:
            return say("the strides are {w}; your answer: {f}", w=wanted, f=tuple(found))
        return None

    def picture(self, solution: Any, case: Reshaped) -> Picture:
        found = solution(case.size, case.stride, case.wanted)
        title = say("places in memory, in the order in which they should be read")
        mine = [] if found is None else places(case.wanted, found)
        return lines(title, places(case.size, case.stride), mine)


Nest: TypeAlias = tuple[str, str, Any]
"""(name, kind, body): kind is "pointwise", "sum" or "max" (along each row); a body is a buffer's
name, a number, or (op, left, right)."""

OPERATIONS: dict[str, Callable[[Any, Any], torch.Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
}


@dataclass(frozen=True)
class Rows:
    """A program over a matrix of small whole numbers."""

    nests: tuple[Nest, ...]
    x: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        lines = [f"{name} = {kind} {body}" for name, kind, body in self.nests]
        return "\n".join([f"x = {[list(row) for row in self.x]}", *lines])

    def value(self) -> list[list[int]]:
        """The last buffer, by torch; a reduction has one column."""
        buffers = {"x": torch.tensor(self.x)}

        def of(body: Any) -> torch.Tensor:
            if isinstance(body, tuple):
                return OPERATIONS[body[0]](of(body[1]), of(body[2]))
            return buffers[body] if isinstance(body, str) else torch.tensor([[body]])

        for name, kind, body in self.nests:
            value = of(body)
            if kind == "sum":
                value = value.sum(-1, keepdim=True)
            elif kind == "max":
                value = value.amax(-1, keepdim=True)
            buffers[name] = value
        return [list(row) for row in buffers[self.nests[-1][0]].tolist()]


@exercise("4.4", "Run the loops", "执行循环", points=3)
class RunLoops(Exercise):
    """`run(nests, x)`: the rows of the last buffer."""

    def cases(self, draw: random.Random) -> Iterator[Rows]:
        for n in range(80):
            columns = draw.randint(1, 3)
            x = tuple(
                tuple(draw.randint(-4, 4) for _ in range(columns))
                for _ in range(draw.randint(1, 3))
            )
            known, nests = ["x"], list[Nest]()
            for k in range(1 + n // 20):
                kind = draw.choice(["pointwise", "sum", "max"])
                sides = [draw.choice([*known, 2]) for _ in range(2)]
                body = (draw.choice(list(OPERATIONS)), draw.choice(known), sides[0])
                nests.append((f"b{k}", kind, body if draw.random() < 0.8 else draw.choice(known)))
                known.append(f"b{k}")
            yield Rows(tuple(nests), x)

    def smaller(self, case: Rows) -> Iterable[Rows]:
        if len(case.x) > 1:
            yield replace(case, x=case.x[:1])
        for n in range(len(case.nests)):
            gone, rest = case.nests[n][0], case.nests[:n] + case.nests[n + 1 :]
            if rest:
                yield replace(case, nests=tuple((m, k, _renamed(b, gone)) for m, k, b in rest))

    def judge(self, solution: Any, case: Rows) -> str | None:
        found = solution(list(case.nests), [list(row) for row in case.x])
        wrong = expected((list, tuple), found)
        if wrong or [list(row) for row in found] == case.value():
            return wrong
        return say("it should be {a}; your answer: {b}", a=case.value(), b=found)

    def picture(self, solution: Any, case: Rows) -> Picture:
        mine = solution(list(case.nests), [list(row) for row in case.x])
        return matrices(say("rows of the last buffer"), case.value(), mine)


def _renamed(body: Any, gone: str) -> Any:
    if isinstance(body, tuple):
        return (body[0], *(_renamed(part, gone) for part in body[1:]))
    return "x" if body == gone else body


@exercise("4.5", "A lowering in the compiler", "把你的 lowering 装进编译器", points=3, limit=90.0)
class Lowering(Exercise):
    """`sigmoid(build, x)`: the body of a loop, of `exp`, `add`, `neg` and `truediv`."""

    def cases(self, draw: random.Random) -> Iterator[torch.Tensor]:
        for values in ([0.0, 1.0, -2.0], [80.0, -80.0, 3.0], [200.0, -200.0, float("inf")]):
            yield torch.tensor(values)

    def described(self, case: torch.Tensor) -> str:
        return f"x = {case.tolist()}"

    def judge(self, solution: Any, case: torch.Tensor) -> str | None:
        found, wanted = _by(solution, case), torch.sigmoid(case)
        if torch.allclose(found, wanted, atol=1e-6):
            return None
        return say(
            "torch.sigmoid gives {a}, your kernel {b}",
            a=wanted.tolist(), b=found.tolist(),
        )  # fmt: skip

    def picture(self, solution: Any, case: torch.Tensor) -> Picture:
        return lines("sigmoid", torch.sigmoid(case).tolist(), _by(solution, case).tolist())


def _by(solution: Any, case: torch.Tensor) -> torch.Tensor:
    """The sigmoid compiled here, with the expression that the solution builds there."""

    def compute(build: Any, x: Any) -> Any:
        def op(name: str, *args: Any) -> Any:
            return build.op(name, *args)

        return run_there(solution, "inductor_lab.course.given.loops:body_of", solution, op, x)

    found: torch.Tensor = sigmoid_by(compute, case).result / 2
    return found
