"""A failed guard, as `torch_guards.py` finds it."""

from __future__ import annotations

from typing import NamedTuple


class FailedGuard(NamedTuple):
    """A guard that is false for the call that TorchDynamo compiles now.

    failed  the compile id of the version that it belongs to
    kind    torch's class of the guard (`TENSOR_MATCH`)
    source  the guarded object, such as `L['x']`; "" if there is none
    text    the condition or torch's message, and a comment with the line that created it
    value   the guarded object in this call, as short text
    stack   `(file, line, function, code)` of the frames that created it, outermost first; () if
            torch does not know them
    """

    failed: str
    kind: str
    source: str
    text: str
    value: str
    stack: tuple[tuple[str, int, str, str], ...]
