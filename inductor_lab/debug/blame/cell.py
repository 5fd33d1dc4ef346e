"""The calls of a cell under `%%compile --blame`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inductor_lab.compiler.base.options import Options
from inductor_lab.debug.blame.blame_result import Blame
from inductor_lab.debug.blame.find_blame import blame


class Blamed:
    """Blames a function's first call, and makes every call uncompiled: wrong code may end the
    process."""

    def __init__(self, options: Options, compiler: str = "inductor_lab") -> None:
        self.options, self.compiler = options, compiler
        self.found: list[Blame] = []
        self._known: set[int] = set()

    def __call__(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if id(fn) not in self._known:
            self._known.add(id(fn))
            found = blame(fn, *args, options=self.options, compiler=self.compiler, **kwargs)
            self.found.append(found)
        return fn(*args, **kwargs)
