"""What records offer and other files do: running, printing, compiling further.

`LoopProgram.run` needs the interpreter, and the interpreter needs `LoopProgram`.  So that records
import no behaviour, a record calls an operation by name; `inductor_lab/__init__.py` says once which
file defines it, and that file is loaded when the operation is first needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

_DEFINED_IN: dict[str, str] = {}


def define(modules: Mapping[str, str]) -> None:
    """Say which module defines each operation: a function of that name."""
    _DEFINED_IN.update(modules)


def perform(operation: str, *args: Any, **kwargs: Any) -> Any:
    """Call an operation; the record that it is of is its first argument."""
    return getattr(importlib.import_module(_DEFINED_IN[operation]), operation)(*args, **kwargs)


def find(operation: str) -> Any:
    """An operation that a compile can do without; None if the package that defines it was deleted.
    """
    home = _DEFINED_IN[operation]
    try:
        return getattr(importlib.import_module(home), operation)
    except ModuleNotFoundError as error:
        if f"{home}.".startswith(f"{error.name}."):
            return None
        raise
