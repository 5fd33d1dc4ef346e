"""Dtypes and numbers that eager kernels reject: ATen is called and raises the error of eager mode.

    frac(x: i64)   →   an extern call; PrimTorch's x - trunc(x) would return a result

For elementwise operators the check runs the eager kernel (`capture/one_element.py`).  For others
there is a table that a command generated with eager kernels.  If ATen accepts a call after all, on
another device or in another release of torch, the call succeeds.

Inductor has no counterpart: it computes a result.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import torch

from inductor_lab.compiler.capture.one_element import is_refused_by_eager
from inductor_lab.compiler.capture.operands import by_name
from inductor_lab.compiler.torch_door.torch_api import pytree

TABLE_FILE = Path(__file__).with_name("accepted.toml")
CODES: Mapping[str, torch.dtype] = {
    "b": torch.bool, "B": torch.uint8, "S": torch.uint16, "I": torch.uint32, "L": torch.uint64,
    "c": torch.int8, "s": torch.int16, "i": torch.int32, "l": torch.int64,
    "h": torch.float16, "y": torch.bfloat16, "f": torch.float32, "d": torch.float64,
}  # fmt: skip
"""One letter for each dtype in the table."""
LETTERS = {dtype: letter for letter, dtype in CODES.items()}
BY_DEVICE = "hy"
"""Dtypes whose support depends on the device; the table is for a CPU."""


FILLED = frozenset({"aten.masked_fill.Tensor", "aten.index_fill.int_Tensor"})
"""Operators that write the number in their last tensor to another tensor, whose dtype must hold
it."""


class Row(NamedTuple):
    """The dtypes that eager kernels of one operator reject.

    first   the name of its first floating-point argument (or of its first argument)
    alone   letters of the rejected dtypes of that argument
    pairs   for another argument and a letter of the first: letters that are rejected with it
    """

    first: str
    alone: str
    pairs: Mapping[tuple[str, str], str]


@cache
def table() -> Mapping[str, Row]:
    """Operator → the dtypes that eager mode rejects."""
    read = tomllib.loads(TABLE_FILE.read_text(encoding="utf-8"))
    return {name: Row(first, alone, dict(_pairs(pairs)))
            for name, (first, alone, pairs) in read.items()}  # fmt: skip


def _pairs(pairs: Mapping[str, str]) -> Any:
    """`{"weight": "fd:hb i:fd"}` by argument and letter."""
    for argument, groups in pairs.items():
        for group in groups.split():
            letters, _, refused = group.partition(":")
            yield from (((argument, letter), refused) for letter in letters)


def is_elementwise(operator: Any) -> bool:
    """Does each element of the result depend only on the elements at the same position?"""
    random = torch.Tag.nondeterministic_seeded in operator.tags
    return torch.Tag.pointwise in operator.tags and not random


def is_refused(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Does the eager kernel reject the dtypes of these arguments?"""
    if getattr(operator, "namespace", "") != "aten":
        return False
    if str(operator) in FILLED and _may_not_fit(args):
        return True
    if is_elementwise(operator):
        return is_refused_by_eager(operator, args, kwargs)
    row = table().get(str(operator))
    if row is None:
        return False
    given = {name: _letters(value) for name, value in by_name(operator, args, kwargs).items()}
    first = given.get(row.first, "")
    if not first or "?" in first:
        return False
    return any(letter in row.alone for letter in first) or any(
        letter in row.pairs.get((name, first[0]), "") for name in given for letter in given[name]
    )


def _may_not_fit(args: Sequence[Any]) -> bool:
    first, last = args[0].dtype, args[-1].dtype
    return torch.promote_types(first, last) is not first


def _letters(given: Any) -> str:
    """The dtypes of an argument, a tensor or a list; "?" for a dtype that is not in the table."""
    tensors = [one for one in pytree.tree_leaves(given) if isinstance(one, torch.Tensor)]
    found = (LETTERS.get(one.dtype, "?") for one in tensors)
    if any(one.device.type != "cpu" for one in tensors):
        return "".join("?" if letter in BY_DEVICE else letter for letter in found)
    return "".join(found)


def keep_rejected_operators(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Any]:
    """Definitions that leave an operator in the graph if eager mode rejects its arguments."""

    def definition(operator: Any, made: Callable[..., Any], *given: Any, **more: Any) -> Any:
        return NotImplemented if is_refused(operator, given, more) else made(*given, **more)

    return {operator: partial(definition, operator, made) for operator, made in table.items()}


def range_of(dtype: torch.dtype) -> tuple[float, float]:
    """The smallest and the largest number that a dtype accepts; unsigned dtypes accept negative
    integers, which wrap around."""
    highest = (torch.finfo if dtype.is_floating_point else torch.iinfo)(dtype).max
    return -highest if dtype.is_floating_point else torch.iinfo(dtype).min or -highest, highest


def fits(number: float, dtype: torch.dtype) -> bool:
    """Does eager mode convert a known number to a dtype?  Floats may also be infinite or NaN."""
    if dtype is torch.bool or dtype.is_complex:
        return True
    lowest, highest = range_of(dtype)
    if isinstance(number, float) and not dtype.is_signed:
        lowest = 0
    return lowest <= number <= highest or (dtype.is_floating_point and not isfinite(number))
