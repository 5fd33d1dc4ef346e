"""Errors that a person can do something about.

Each says what happened, where in the person's own code, and what to do.  `where` is a line such as
`"y = torch.erfinv(x)        cell 3, line 2"`, or "" when no line of theirs is involved.
"""

from __future__ import annotations


class LabError(Exception):
    """Base of every error that inductor_lab raises on purpose."""

    def __init__(self, what: str, where: str = "", todo: str = "") -> None:
        self.what, self.where, self.todo = what, where, todo
        super().__init__("\n".join([what, *(f"  {line}" for line in (where, todo) if line)]))


class BadOption(LabError):
    """An option has a name or a value that does not exist."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"option {name}={value!r} is not possible", todo=f"expected: {expected}")


class MissingLowering(LabError):
    """Under `strict`, an op has no lowering of ours."""

    def __init__(self, op: str, where: str = "") -> None:
        super().__init__(
            f"no lowering for {op}",
            where,
            'add one with @lowers, or leave options={"strict": False} to call ATen',
        )


class NoCompiler(LabError):
    """No C++ compiler was found on this machine."""


class CompileFailed(LabError):
    """The C++ or Triton compiler refused generated code."""


class NotRunnable(LabError):
    """This value was loaded from a file, or compiled for another machine, and has no live code."""


class CacheRefused(LabError):
    """The cache directory cannot be trusted or written."""


class UnreadableFile(LabError):
    """A saved compilation is not ours, is damaged, or is of a newer version."""


class CannotWrite(LabError):
    """A report or a file cannot be written where it was asked for."""


class UnknownTarget(LabError):
    """A compilation target that nobody here knows, or whose toolchain is missing."""


class UnknownName(LabError):
    """A buffer, kernel or pass that was asked for by name is not there."""


class BadArguments(LabError):
    """A command or a magic was given something that it cannot use."""


class IndexOutOfRange(LabError, IndexError):
    """A kernel met an index, loaded from a tensor, that is outside of what it indexes."""
