"""Garbage collection during a compilation or the import of the compiler."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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
