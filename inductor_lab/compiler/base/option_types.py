"""Does a value have the declared type of an option?  If not, what is allowed?"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from numbers import Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from inductor_lab.compiler.base.errors import BadOption

IN_WORDS: Mapping[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    type(None): "None",
    tuple[str, ...]: 'a list of names, such as ["a", "b"]',
    tuple[tuple[str, ...], ...]: 'a list of pairs of names, such as [("buf0", "buf3")]',
}


def check_types(options: Any, path: str = "") -> None:
    """Raises BadOption for the first field of a dataclass whose value does not have the declared
    type."""
    kind: type = type(options)
    declared = _declared(kind)
    for field in fields(options):
        value = getattr(options, field.name)
        if not admits(declared[field.name], value):
            raise BadOption(path + field.name, value, in_words(declared[field.name]))


@cache
def _declared(cls: type) -> Mapping[str, Any]:
    return get_type_hints(cls)


def admits(declared: Any, value: Any) -> bool:
    """Is it a value of this type?  A bool is not a number, and neither is infinity.

    >>> admits(float | None, 1), admits(float, True), admits(tuple[str, ...], "ab")
    (True, False, False)
    """
    origin, inner = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        return any(admits(each, value) for each in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin is tuple:
        return isinstance(value, tuple) and all(admits(inner[0], each) for each in value)
    if declared in (int, float):
        number = isinstance(value, int if declared is int else Real)
        return number and not isinstance(value, bool) and abs(value) < math.inf
    return isinstance(value, declared)


def in_words(declared: Any) -> str:
    """The allowed values, in words.

    >>> in_words(Literal["cpp", "triton"] | None)
    "'cpp', 'triton' or None"
    """
    if declared in IN_WORDS:
        return IN_WORDS[declared]
    if get_origin(declared) is Literal:
        return ", ".join(map(repr, get_args(declared)))
    if is_dataclass(declared):
        return f"a dict of {', '.join(field.name for field in fields(declared))}, or True or False"
    *first, last = map(in_words, get_args(declared))
    return " or ".join(filter(None, [", ".join(first), last]))
