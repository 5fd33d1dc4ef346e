"""Garbage collection during a compilation or the import of the compiler."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from weakref import finalize

from inductor_lab.compiler.torch_door.torch_api import around_compilations

SET_ASIDE_BY_PYTHON = 1000
"""Python 3.12 freezes fewer objects at startup; a user who freezes modules freezes many more."""


@contextmanager
def no_collection() -> Iterator[None]:
    """Disable cyclic garbage collection: it would traverse growing graphs many times and find no
    garbage.

    Objects created in the block are then moved to the oldest generation.  Otherwise the next
    collection would traverse all of them at once, which takes half a second for a model.
    """
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            if gc.get_freeze_count() < SET_ASIDE_BY_PYTHON:  # the user has frozen nothing
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def no_collection_in_captures() -> None:
    """Disable it also while TorchDynamo compiles, until the next reset of torch."""
    around_compilations(_begin, _end)


_compilation = ExitStack()


def _begin(compilation: object) -> None:
    """A reset in another thread loses `_end`; then the finalizer of `compilation` ends the
    block."""
    _compilation.enter_context(no_collection())
    finalize(compilation, _compilation.close)


def _end(_: object) -> None:
    _compilation.close()
