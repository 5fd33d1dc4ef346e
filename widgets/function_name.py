"""The names of functions that TorchDynamo makes after a graph break, in words."""

from __future__ import annotations

import re

from inductor_lab.notebook.language import say

RESUMED = re.compile(r"torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)")
AFTER = "{function} after line {line}"


def function_name(name: str) -> str:
    """The code after a graph break: `torch_dynamo_resume_in_f_at_5` → `f after line 5`."""
    resumed = RESUMED.fullmatch(name)
    return say(AFTER, **resumed.groupdict()) if resumed else name
