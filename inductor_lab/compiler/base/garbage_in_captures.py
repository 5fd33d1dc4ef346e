"""Garbage collection while TorchDynamo compiles."""

from __future__ import annotations

from contextlib import ExitStack
from weakref import finalize

from inductor_lab.compiler.base.garbage import no_collection
from inductor_lab.compiler.torch_door.torch_api import around_compilations


def no_collection_in_captures() -> None:
    """Disable cyclic collection while TorchDynamo compiles, until the next reset of torch."""
    around_compilations(_begin, _end)


_compilation = ExitStack()


def _begin(compilation: object) -> None:
    """A reset in another thread loses `_end`; then the finalizer of `compilation` ends the
    block."""
    _compilation.enter_context(no_collection())
    finalize(compilation, _compilation.close)


def _end(_: object) -> None:
    _compilation.close()
