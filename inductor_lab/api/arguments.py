"""Check the arguments of public calls against the declared types.  A wrong argument raises
`BadArguments`, which names the expected type, before anything runs.

    @checked
    def profile(self, steps: Count = 20) -> Profile: ...

    c.profile(steps=0)
    BadArguments: profile(): steps must be a whole number of 1 or more, got 0

Parameters declared `Any` are not checked, such as the arguments of the user's own function.  Python
itself reports missing and unexpected arguments.
"""

from __future__ import annotations

import inspect
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import GenericAlias, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from inductor_lab.compiler.base.errors import BadArguments
from inductor_lab.compiler.base.option_types import IN_WORDS, admits
from inductor_lab.compiler.base.options import TARGETS

C = TypeVar("C", bound=Callable[..., Any])
OURS = {
    "Path": "a path",
    "Record": "a compilation by inductor_lab (lab.inspect(f, x))",
    "Compilation": "a compilation by inductor_lab (to compare with stock: "
    "lab.compare(compilation, stock))",
    "StockCompilation": 'a stock compilation (lab.inspect(f, x, compiler="stock"); '
    "for two of inductor_lab: before.compare(after))",
    "Measurement": "a torch.utils.benchmark.Measurement",
    "OperatorBase": "an operator, such as torch.ops.aten.sin.default",
    "OpOverloadPacket": "an operator packet, such as torch.ops.aten.sin",
}
"""Type name → its description in error messages."""
SEVERAL = (Iterable, Sequence, tuple)


@dataclass(frozen=True)
class Only:
    """In an annotation: a condition on values of a type, and its description."""

    holds: Callable[[Any], Any]
    description: str


Seconds = Annotated[float, Only(lambda n: n >= 0, "a number of seconds, 0 or more")]
Count = Annotated[int, Only(lambda n: n >= 1, "a whole number of 1 or more")]
Gpu = Annotated[str, Only(TARGETS.fullmatch, 'a GPU such as "cuda:90" or "hip:gfx942"')]


def checked(call: C) -> C:
    """The function with a check of its arguments; for a class, all public methods get the check."""
    if isinstance(call, type):
        for name, method in list(vars(call).items()):
            if inspect.isfunction(method) and not name.startswith("_"):
                setattr(call, name, checked(method))
        return call
    signature = inspect.signature(call)

    @wraps(call)
    def checks(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return call(*args, **kwargs)  # Python reports missing and unexpected arguments
        for name, value in given.items():
            expect(call.__name__, name, value, _declared(call)[name])
        return call(*args, **kwargs)

    return checks  # type: ignore[return-value]  # the same signature


def expect(call: str, name: str, value: Any, declared: Any) -> None:
    """Raises BadArguments unless an argument has its declared type."""
    if not fits(value, declared):
        shown = " ".join(reprlib.repr(value).split())
        raise BadArguments(f"{call}(): {name} must be {in_words(declared)}, got {shown}")


@cache
def _declared(call: Callable[..., Any]) -> Mapping[str, Any]:
    """Parameter → its type; a tuple or dict type for `*args` and `**kwargs`.

    Any for names that exist only for a type checker."""
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(call).parameters.items():
        declared = _named(parameter.annotation, inspect.unwrap(call).__globals__)
        if parameter.kind is parameter.VAR_POSITIONAL:
            declared = GenericAlias(tuple, (declared, ...))
        elif parameter.kind is parameter.VAR_KEYWORD:
            declared = GenericAlias(dict, (str, declared))
        found[name] = declared
    return found


def _named(annotation: Any, names: dict[str, Any]) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    try:
        return eval(annotation, names) if isinstance(annotation, str) else annotation
    except NameError:
        return Any


def fits(value: Any, declared: Any) -> bool:
    """Does a value have this type, and do the values that it contains?

    >>> fits(3, Seconds), fits(-1, Seconds), fits("a", str | Path), fits([3], Iterable[str])
    (True, False, True, False)

    Any and type variables accept every value.
    """
    origin, inner = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return fits(value, inner[0]) and all(only.holds(value) for only in declared.__metadata__)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if origin is Callable:
        return callable(value)
    if origin in SEVERAL:
        inside = value if isinstance(value, Collection) and not isinstance(value, str) else ()
        several = isinstance(value, (origin, list, tuple))
        return several and all(fits(each, inner[0]) for each in inside)
    if declared is Path:
        return isinstance(value, os.PathLike)
    if origin in (dict, Mapping):
        return isinstance(value, origin) and all(fits(each, inner[1]) for each in value.values())
    known = (isinstance(declared, type) and declared is not Any) or declared is None
    return not known or admits(declared or type(None), value)


def in_words(declared: Any) -> str:
    """A type in words, for error messages.

    >>> in_words(str | Path), in_words(Iterable[str])
    ('a text or a path', 'a list of names, such as ["a", "b"]')
    """
    origin, inner = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return " and ".join(only.description for only in declared.__metadata__)
    if origin in (Union, UnionType):
        *first, last = map(in_words, inner)
        return f"{', '.join(first)} or {last}"
    if origin is Callable:
        return "a function or a module"
    if origin in SEVERAL:
        names = IN_WORDS.get(GenericAlias(tuple, (inner[0], ...)))
        return names or f"a list of these: {in_words(inner[0])}"
    if origin in (dict, Mapping):
        return f"a dict of these: {in_words(inner[1])}" if inner[1] is not Any else "a dict"
    return IN_WORDS.get(declared) or OURS.get(declared.__name__) or f"a {declared.__name__}"
