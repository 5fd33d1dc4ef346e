"""Awkward cases, derived from examples: other sizes, strides, offsets, values, dtypes and aliases.

Sizes that are equal in an example change together.  A case that the reference refuses is dropped,
so the reference decides what a valid call is.  Everything is drawn from a secret, so a candidate
cannot know the cases.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch

from inductor_lab.compiler.torch_door.torch_api import pytree

Kind = Literal["given", "values", "special values", "sizes", "empty", "0-d", "strides", "alias",
               "dtypes"]  # fmt: skip
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional arguments, and arguments by keyword."""
SMALL = 1 << 14
"""Examples with more elements than this are made smaller, except for the given cases."""
ODD_SIZES = (3, 5, 7, 13, 17, 31, 33, 63, 65, 97, 127, 129, 131, 257)
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, 1e4)
"""No number whose square overflows: whether a sum of squares does depends on the algorithm."""
SMALL_VALUES = 2.0**-12
OTHER_DTYPES = (torch.float64, torch.float16, torch.bfloat16)


@dataclass(frozen=True, eq=False)
class CaseArguments:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def case(*args: Any, **kwargs: Any) -> CaseArguments:
    """An example for `lab.judge`: `lab.case(x, dim=1)` stands for the call `f(x, dim=1)`."""
    return CaseArguments(args, kwargs)


def arguments_of_case(given: Any) -> Arguments:
    """The arguments of an example: a tuple, an object with `args` and `kwargs`, or one argument."""
    if isinstance(given, tuple):
        return given, {}
    if isinstance(getattr(given, "args", None), tuple) and hasattr(given, "kwargs"):
        return given.args, dict(given.kwargs)
    return (given,), {}


@dataclass(frozen=True, eq=False)
class Case:
    """Arguments of one call; `about` says what is awkward."""

    kind: Kind
    about: str
    args: Arguments

    def __str__(self) -> str:
        text = ", ".join(_text_of(leaf) for leaf in pytree.tree_leaves(self.args))
        return f"{self.about}: {text}" if self.about else text


def _text_of(leaf: Any) -> str:
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)[:40]
    text = f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
    return text if leaf.is_contiguous() else f"{text} with strides {list(leaf.stride())}"


@dataclass(frozen=True)
class Values:
    """The range of a tensor: normal, uniform, or integers between its limits.

    uniform  whether numbers are uniform in the range; if not, they are normal
    """

    dtype: torch.dtype
    low: float = -math.inf
    high: float = math.inf
    uniform: bool = False
    mean: float = 0.0
    deviation: float = 1.0

    @staticmethod
    def of(like: torch.Tensor) -> Values:
        """The range of this tensor's values."""
        dtype = like.dtype
        if dtype is torch.bool or dtype.is_complex:
            return Values(dtype)
        if not dtype.is_floating_point:
            least, most = (int(like.min()), int(like.max())) if like.numel() else (0, 1)
            return Values(dtype, least, most, uniform=True)
        known = like.detach().double().flatten()
        known = known[known.isfinite()]
        if not known.numel():
            return Values(dtype)
        low, high = float(known.min()), float(known.max())
        if low < 0:
            scale = float(known.std()) if known.numel() > 1 else 0.0
            return Values(dtype, low, high, mean=float(known.mean()), deviation=scale) if scale \
                else Values(dtype)  # fmt: skip
        if low == high:
            low, high = 0.5 * low, 1.5 * high or 1.0
        return Values(dtype, low, high, uniform=True)

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
        """New values, on the device of the generator."""
        size, where = tuple(shape), generator.device
        if self.dtype is torch.bool:
            return torch.randint(0, 2, size, generator=generator, device=where).bool()
        if self.dtype.is_complex:
            parts = torch.randn(*size, 2, generator=generator, dtype=torch.float64, device=where)
            return torch.view_as_complex(parts).to(self.dtype)
        if not self.dtype.is_floating_point:
            drawn = torch.randint(int(self.low), int(self.high) + 1, size, generator=generator,
                                  device=where)  # fmt: skip
            return drawn.to(self.dtype)
        draws = torch.rand if self.uniform else torch.randn
        made = draws(size, generator=generator, dtype=torch.float64, device=where)
        if self.uniform:
            return (self.low + (self.high - self.low) * made).to(self.dtype)
        return (made * self.deviation + self.mean).clamp(self.low, self.high).to(self.dtype)


class Cases:
    """Cases from examples and a secret.

    accepts  whether the reference computes a case
    fixed    whether a candidate is for the sizes, strides and dtypes of the examples alone
    """

    def __init__(
        self, examples: Sequence[Arguments], secret: int, accepts: Callable[[Arguments], bool],
        fixed: bool = False,
    ) -> None:  # fmt: skip
        self.examples, self.accepts, self.fixed = examples, accepts, fixed
        self.draw = random.Random(secret)
        self.generator = torch.Generator().manual_seed(secret)

    def all(self) -> Iterator[Case]:
        """Given cases first, then those derived from each example."""
        for example in self.examples:
            yield Case("given", "given", example)
            yield Case("values", "other values", self.redrawn(example))
        for example in self.examples:
            derived = self._of_these_sizes(example) if self.fixed else self._derived(example)
            for case in derived:
                if self.accepts(case.args):
                    yield case

    def redrawn(self, args: Arguments) -> Arguments:
        """The same arguments with other values, of about the same range."""
        return self._mapped(args, lambda one: _like(one, self._values(one, one.shape)))

    def redraws(self, args: Arguments) -> Callable[[], Arguments]:
        """A function that returns the arguments with other values each time, drawn on the device
        of each tensor."""
        leaves, tree = pytree.tree_flatten(args)
        drawn = {n: Values.of(leaf) for n, leaf in enumerate(leaves)
                 if isinstance(leaf, torch.Tensor)}  # fmt: skip
        devices = {leaves[n].device for n in drawn}
        secret = self.draw.getrandbits(62)
        generators = {
            device: self.generator if device.type == "cpu"
            else torch.Generator(device).manual_seed(secret) for device in devices
        }  # fmt: skip

        def fresh() -> Arguments:
            made = [
                _like(leaf, drawn[n].draw(leaf.shape, generators[leaf.device])) if n in drawn
                else leaf for n, leaf in enumerate(leaves)
            ]  # fmt: skip
            found: Arguments = pytree.tree_unflatten(made, tree)
            return found

        return fresh

    def _of_these_sizes(self, example: Arguments) -> Iterator[Case]:
        for number in range(2):
            yield Case("values", f"other values {number}", self.redrawn(example))
        small = self._mapped(self.redrawn(example), _divided)
        yield Case("values", "small values", small)
        yield Case("values", "one value", self._mapped(self.redrawn(example), _all_equal))
        special = self._mapped(example, self._special)
        yield Case("special values", "NaN, infinities and zeros", special)

    def _derived(self, given: Arguments) -> Iterator[Case]:
        example = self._small(given)
        yield from self._of_these_sizes(example)
        yield from self._other_sizes(example)
        for name, layout in LAYOUTS.items():
            yield Case("strides", name, self._mapped(self.redrawn(example), layout))
        yield from self._aliases(example)
        for dtype in OTHER_DTYPES:
            if any(one.dtype is torch.float32 for one in _tensors(example)):
                yield Case("dtypes", str(dtype).removeprefix("torch."),
                           self._mapped(example, partial(_converted, dtype=dtype)))  # fmt: skip

    def _other_sizes(self, example: Arguments) -> Iterator[Case]:
        sizes = sorted({length for one in _tensors(example) for length in one.shape})
        if not sizes:
            return
        for number in range(3):
            yield Case("sizes", f"odd sizes {number}", self._sized(example, self._odd(example)))
        yield Case("sizes", "sizes of 1", self._sized(example, dict.fromkeys(sizes, 1)))
        for length in sizes:
            new = {n: 0 if n == length else n for n in sizes}
            yield Case("empty", f"0 for {length}", self._sized(example, new))
        yield Case("0-d", "0-d", self._mapped(example, _first_element))

    def _odd(self, example: Arguments) -> dict[int, int]:
        """An odd size for each size, so that the tensors are not large: `{5: 13, 8: 3}`."""
        sizes = sorted({length for one in _tensors(example) for length in one.shape})
        for most in reversed(ODD_SIZES):
            chosen = [length for length in ODD_SIZES if length <= most]
            new = {n: self.draw.choice(chosen) if n > 1 else n for n in sizes}
            elements = sum(math.prod(new[n] for n in one.shape) for one in _tensors(example))
            if elements <= 4 * SMALL:
                return new
        return {n: n for n in sizes}

    def _aliases(self, example: Arguments) -> Iterator[Case]:
        """The same tensor for two arguments."""
        leaves, tree = pytree.tree_flatten(self.redrawn(example))
        first: dict[Any, torch.Tensor] = {}
        for number, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                leaves[number] = first.setdefault((leaf.shape, leaf.dtype, leaf.stride()), leaf)
        if len(first) < len(_tensors(example)):
            yield Case("alias", "one tensor twice", pytree.tree_unflatten(leaves, tree))

    def _small(self, example: Arguments) -> Arguments:
        if sum(one.numel() for one in _tensors(example)) <= SMALL:
            return example
        sizes = {length for one in _tensors(example) for length in one.shape}
        for most in (96, 24):
            new = {n: n if n <= most // 2 else self.draw.randint(most // 2, most) for n in sizes}
            smaller = self._sized(example, new)
            fits = sum(one.numel() for one in _tensors(smaller)) <= 4 * SMALL
            if fits and self.accepts(smaller):
                return smaller
        return example

    def _sized(self, args: Arguments, new: dict[int, int]) -> Arguments:
        def resized(one: torch.Tensor) -> torch.Tensor:
            return self._values(one, [new[length] for length in one.shape])

        return self._mapped(args, resized)

    def _mapped(self, args: Arguments, change: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
        found: Arguments = pytree.tree_map_only(torch.Tensor, change, args)
        return found

    def _values(self, like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        """Values in the range of a tensor."""
        return Values.of(like).draw(shape, self.generator).to(like.device)

    def _special(self, one: torch.Tensor) -> torch.Tensor:
        """A tenth of the elements of a float tensor is special."""
        if not one.dtype.is_floating_point:
            return one.clone()
        made = one.detach().clone()
        flat = made.view(-1) if made.is_contiguous() else made.contiguous().view(-1)
        for value in SPECIAL:
            for _ in range(max(1, flat.numel() // 100) if flat.numel() else 0):
                flat[self.draw.randrange(flat.numel())] = value
        return flat.view(one.shape)


def _tensors(args: Arguments) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]


def _like(old: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Values in memory with the strides and the offset of another tensor."""
    if old.is_contiguous() and not old.storage_offset():
        return values
    span = sum((n - 1) * s for n, s in zip(old.shape, old.stride(), strict=True)) + 1
    if not old.numel():
        return values
    flat = torch.zeros(old.storage_offset() + span, dtype=old.dtype, device=old.device)
    made = flat.as_strided(old.shape, old.stride(), old.storage_offset())
    if any(s == 0 and n > 1 for n, s in zip(old.shape, old.stride(), strict=True)):
        flat.copy_(values.flatten()[:1].expand_as(flat))
        return made
    return made.copy_(values)


def _first_element(one: torch.Tensor) -> torch.Tensor:
    return one.flatten()[0].clone() if one.numel() else one.new_zeros(())


def _divided(one: torch.Tensor) -> torch.Tensor:
    return one * SMALL_VALUES if one.dtype.is_floating_point else one


def _all_equal(one: torch.Tensor) -> torch.Tensor:
    """The first value everywhere, in memory with the same strides."""
    return _like(one, _first_element(one).expand(one.shape).clone())


def _converted(one: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return one.to(dtype) if one.dtype is torch.float32 else one


def _transposed(one: torch.Tensor) -> torch.Tensor:
    return one.transpose(-1, -2).contiguous().transpose(-1, -2) if one.dim() > 1 else one


def _every_second(one: torch.Tensor) -> torch.Tensor:
    """Values at every second place of the last axis."""
    if not one.dim():
        return one
    wide = one.new_full((*one.shape[:-1], 2 * one.shape[-1]), 7)
    wide[..., ::2] = one
    return wide[..., ::2]


def _with_offset(one: torch.Tensor) -> torch.Tensor:
    """The same values, three elements into a larger storage."""
    flat = one.new_full((one.numel() + 5,), 7)
    flat[3 : 3 + one.numel()] = one.flatten()
    return flat[3 : 3 + one.numel()].view(one.shape)


def _expanded(one: torch.Tensor) -> torch.Tensor:
    """The first row at every place of the first axis, without memory of its own."""
    return one[:1].expand(one.shape) if one.dim() and one.shape[0] else one


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": _transposed,
    "every second element": _every_second,
    "storage offset": _with_offset,
    "expanded": _expanded,
}
