"""What frozen values have in common."""

from __future__ import annotations

from typing import Any


class Value:
    """A frozen dataclass.  It is written to disk as what it was made from; what follows from that,
    such as a hash, which is another in each process, is worked out anew."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple([getattr(self, name) for name in self.__match_args__])
