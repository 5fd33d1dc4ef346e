"""Functions that draw the results of tools, by the full name of the result's type.

Each is imported when such a result is drawn: drawing a compilation imports no tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def drawn_by(value: Any, table: Mapping[str, str]) -> Callable[[Any], str] | None:
    """The function for the type of a value in `{"debug.profile.Profile": "profile.profile_html"}`;
    None if the table has no such type."""
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("inductor_lab.")
    if name not in table:
        return None
    module, _, function = table[name].rpartition(".")
    found: Callable[[Any], str] = getattr(import_module(f"{__package__}.{module}"), function)
    return found
