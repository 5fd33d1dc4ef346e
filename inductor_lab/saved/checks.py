"""Check that a value read from a file has the type that the record's field declares.

    tuple[str, ...]        ("a", "b") yes     "ab" no
    int | sympy.Expr       7 yes              "7" no

A damaged or malicious file is therefore refused when it is loaded, not later when it is displayed.
"""

from __future__ import annotations

import collections.abc
import sys
import types
from collections.abc import Callable, Mapping
from functools import cache
from numbers import Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from inductor_lab.compiler.torch_door.torch_types import torch

Check = Callable[[Any], bool]
CONTAINERS = (tuple, list, set, frozenset, collections.abc.Sequence, collections.abc.Collection,
              collections.abc.Iterable, collections.abc.Set)  # fmt: skip


def anything(value: Any) -> bool:
    return True


@cache
def checks_of(cls: type, names: Callable[[], Mapping[str, Any]]) -> Mapping[str, Check]:
    """A check for each field of a dataclass.

    `names` has the names in annotations that the module does not import at run time.
    """
    known = {**names(), **vars(sys.modules[cls.__module__])}
    return {name: check_for(hint) for name, hint in get_type_hints(cls, None, known).items()}


@cache
def check_for(declared: Any) -> Check:
    """A check whether a value and everything in it have the declared type.

    >>> check_for(tuple[int, ...])((1, 2)), check_for(tuple[int, ...])((1, "2"))
    (True, False)
    """
    origin, inner = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        each = [check_for(one) for one in inner]
        return lambda value: any(check(value) for check in each)
    if origin is Literal:
        return lambda value: value in inner
    if origin is tuple and not (len(inner) == 2 and inner[1] is ...):
        return _row([check_for(one) for one in inner])
    if origin in CONTAINERS:
        return _all_of(origin, check_for(inner[0]))
    if origin in (dict, collections.abc.Mapping):
        return _pairs_of(check_for(inner[0]), check_for(inner[1]))
    if declared is None:
        return lambda value: value is None
    if declared is float:
        return lambda value: isinstance(value, Real) and not isinstance(value, bool)
    if declared is torch.Tensor:  # None, because large tensors are not saved
        return lambda value: value is None or isinstance(value, torch.Tensor)
    if isinstance(declared, type) and origin is None and declared not in (object, Any):
        return lambda value: isinstance(value, declared)
    return anything


def _row(each: list[Check]) -> Check:
    def check(value: Any) -> bool:
        right = isinstance(value, tuple) and len(value) == len(each)
        return right and all(one(item) for one, item in zip(each, value, strict=True))

    return check


def _all_of(kind: Any, one: Check) -> Check:
    if one is anything:
        return lambda value: isinstance(value, kind)
    return lambda value: (
        isinstance(value, kind) and not isinstance(value, str) and all(map(one, value))
    )


def _pairs_of(key: Check, item: Check) -> Check:
    return lambda value: (
        isinstance(value, Mapping) and all(key(k) and item(v) for k, v in value.items())
    )
