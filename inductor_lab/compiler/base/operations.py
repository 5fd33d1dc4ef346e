"""Operations of records that other files implement: running, printing, compiling further.

`LoopProgram.run` needs the interpreter, and the interpreter needs `LoopProgram`.  So that records
import no behaviour, a record calls an operation by name.  `inductor_lab/__init__.py` sets the file
that defines each operation, and the file is imported when the operation is first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from inductor_lab.compiler.base.errors import needing_torch

_DEFINED_IN: dict[str, str] = {}


def define(modules: Mapping[str, str]) -> None:
    """Set the module that defines each operation, as a function of that name."""
    _DEFINED_IN.update(modules)


def perform(operation: str, *args: Any, **kwargs: Any) -> Any:
    """Call an operation; its first argument is the record."""
    with needing_torch():
        home = importlib.import_module(_DEFINED_IN[operation])
    return getattr(home, operation)(*args, **kwargs)


def find(operation: str) -> Any:
    """An optional operation; None if the package that defines it was deleted."""
    home = _DEFINED_IN[operation]
    try:
        return getattr(importlib.import_module(home), operation)
    except ModuleNotFoundError as error:
        if f"{home}.".startswith(f"{error.name}."):
            return None
        raise
