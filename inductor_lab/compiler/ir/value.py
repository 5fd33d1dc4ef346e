"""The base class of frozen values."""

from __future__ import annotations

from typing import Any


class Value:
    """A frozen dataclass that is pickled by its constructor arguments.

    Derived fields are computed again when it is loaded: a hash, for example, differs between
    processes.
    """

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple([getattr(self, name) for name in self.__match_args__])
