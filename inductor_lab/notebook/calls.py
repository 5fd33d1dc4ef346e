"""The calls of a cell; the first call of each function goes through `lab.inspect`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from inductor_lab.api.backend import inspect
from inductor_lab.api.compilation import Compilation
from inductor_lab.compiler.base.display import Shown, explorers_bundle
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.compiler.base.options import Options
from inductor_lab.compiler.torch_door.torch_api import remember_sizes
from inductor_lab.notebook.failure import shorten, torch_failed
from inductor_lab.notebook.quiet import suppress_warnings
from inductor_lab.notebook.so_far import SoFar


@dataclass(frozen=True, repr=False)
class Explorers(Shown):
    """Several compilations, each in its own tab."""

    compilations: tuple[Compilation, ...]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.compilations))

    def __str__(self) -> str:
        return "\n".join(map(str, self.compilations))

    def _repr_mimebundle_(self, **more: Any) -> dict[str, Any] | None:
        return explorers_bundle(self)


class Inspected:
    """Makes a function's first call with `lab.inspect`, and later calls with the compiled function.

    `failed` has the results of the compiler up to an error in it or in TorchDynamo.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.failed: SoFar | None = None
        self._known: dict[Hashable, Compilation] = {}

    @property
    def found(self) -> tuple[Compilation, ...]:
        """The compilations in call order.

        Functions without tensor operators are omitted, unless there are no others.
        """
        every = tuple(self._known.values())
        return tuple(c for c in every if c.graphs) or every

    def __call__(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        key = _identity(fn)
        known = self._known.get(key)
        if known is not None:
            assert known.compiled is not None, "the function has just run"
            return known.compiled(*args, **kwargs)
        so_far = SoFar()
        try:
            with suppress_warnings():
                made = inspect(fn, *args, options=self.options, observer=so_far, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            ours = any(isinstance(cause, LabError) for cause in _causes(error))
            if so_far.failed or ours or torch_failed(error):
                self.failed = so_far.give_up(error)
                shorten(error)
            raise
        assert made.call is not None, "the function has just run"
        remember_sizes(made.call.sizes)
        self._known[key] = made
        return made.result


def _identity(fn: Any) -> Hashable:
    """A key that is equal for two accesses of one method of one object."""
    return id(getattr(fn, "__self__", fn)), id(getattr(fn, "__func__", fn))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
