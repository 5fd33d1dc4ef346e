"""Python's search for garbage, while a function is compiled or the compiler is imported."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from weakref import finalize

from inductor_lab.compiler.torch_door.torch_api import around_compilations

SET_ASIDE_BY_PYTHON = 1000
"""Python 3.12 sets fewer objects aside as it starts; a user who sets modules aside, many more."""


@contextmanager
def no_collection() -> Iterator[None]:
    """Python's search for cycles waits: it would go through growing graphs many times, and
    find nothing to free.

    What was made meanwhile is old afterwards: else the next search, a few milliseconds later, would
    go through all of it at once, which takes half a second for a model.
    """
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            if gc.get_freeze_count() < SET_ASIDE_BY_PYTHON:  # nothing that a user has set aside
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def no_collection_in_captures() -> None:
    """TorchDynamo compiles without a search too, until the next reset of torch's."""
    around_compilations(_begin, _end)


_compilation = ExitStack()


def _begin(compilation: object) -> None:
    """A reset in another thread forgets `_end`; `compilation` dies with the compilation."""
    _compilation.enter_context(no_collection())
    finalize(compilation, _compilation.close)


def _end(_: object) -> None:
    _compilation.close()
