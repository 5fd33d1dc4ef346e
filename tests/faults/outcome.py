"""The outcome of one attempt: it worked, raised a clear error, or is a defect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inductor_lab.compiler.base.errors import CompilerDefect, LabError

OK, CLEAR, DEFECT, SKIPPED = "ok", "clear error", "defect", "skipped"


@dataclass(frozen=True)
class Tried:
    """One attempt.  `what` is the kind of fault, many attempts have the same; `detail` is what was
    said, and for a defect how to try it again."""

    what: str
    outcome: str
    detail: str = ""


def judged(call: Callable[..., object], *arguments: Any) -> tuple[str, str]:
    """(outcome, detail) of a call: an error of ours is clear, any other exception a defect."""
    try:
        return OK, str(call(*arguments) or "")
    except BaseException as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return (CLEAR if is_clear(error) else DEFECT), said


def is_clear(error: BaseException) -> bool:
    """Is it our error with advice for the user, possibly wrapped by TorchDynamo?"""
    inner = getattr(error, "inner_exception", error)
    return isinstance(inner, LabError) and not isinstance(inner, CompilerDefect)
