"""Errors that a user can do something about.

Each says what happened, where in the user's own code, and what to do.  `where` is a line such as
`"y = torch.erfinv(x)        cell 3, line 2"`, or "" if no line of the user is involved.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from inductor_lab.compiler.base.error_origin import where_and_todo


class LabError(Exception):
    """Base of every error that inductor_lab raises on purpose."""

    def __init__(self, what: str, where: str = "", todo: str = "") -> None:
        self.what, self.where, self.todo = what, where, todo
        super().__init__("\n".join([what, *(f"  {line}" for line in (where, todo) if line)]))


class BadOption(LabError):
    """An option has an unknown name or an invalid value."""

    def __init__(
        self, name: str, value: object, expected: str = "", todo: str = "", what: str = ""
    ) -> None:
        super().__init__(what or f"invalid value for option {name}: {value!r}",
                         todo=todo or f"expected: {expected}")

    @classmethod
    def refuse_unknown(cls, option: str, given: Iterable[object], known: Collection[str]) -> None:
        """Raise it for the first unknown name in the list that is the value of an option."""
        for name in given:
            if name not in known:
                what, todo = unknown_name("name", name, known)
                raise cls(option, name, todo=todo, what=f"option {option}: {what}")


def unknown_name(
    kind: str, name: object, known: Collection[str], path: str = ""
) -> tuple[str, str]:
    """The message with the closest valid name, and the list of all valid names.

    >>> unknown_name("option", "fuson", ["cache", "fusion"])
    ("unknown option 'fuson'; did you mean 'fusion'?", 'Valid options: cache, fusion')
    """
    close = difflib.get_close_matches(str(name), known, 1, 0.7)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    listed = [*known] if len(known) <= 50 else [*known][:50] + ["..."]
    shown = f"{path}{name}" if path else name
    return f"unknown {kind} {shown!r}{meant}", f"Valid {kind}s: {', '.join(listed)}"


class NothingToChange(UserWarning):
    """An option has no effect for tensors on this device."""


class RunsUncompiled(UserWarning):
    """A graph runs in eager mode: its kernels could not be compiled and errors are suppressed, or
    it has no correct functional form (`capture/eager_rules.py`)."""


class MissingLowering(LabError):
    """Under `strict`, an op has no lowering."""

    def __init__(self, op: str, where: str = "") -> None:
        todo = 'add one with @lab.lowers, or leave options={"strict": False} to call ATen'
        super().__init__(f"no lowering for {op}", where, todo)


class Refused(LabError):
    """A user's phase (`lab.override(schedule=...)`) returned an illegal result."""


class NoCompiler(LabError):
    """No C++ compiler was found on this machine."""


class MissingPackage(LabError, ImportError):
    """A package is missing that the compiler does not need, but the requested feature does.

    extra  the extra of inductor_lab that installs it; None if no extra does
    """

    def __init__(self, package: str, extra: str | None = "notebook") -> None:
        todo = f"pip install 'inductor-lab[{extra}]'" if extra else f"pip install {package}"
        super().__init__(f"{package} is missing", todo=todo)


class NeedsTorch(LabError, ImportError):
    """torch is not installed, and something other than viewing saved files was requested."""

    def __init__(self) -> None:
        super().__init__(
            "this needs torch, which is not installed: without it, saved files can be viewed, but"
            " nothing can be compiled, run or measured",
            todo="pip install torch numpy",
        )


@contextmanager
def needing_torch() -> Iterator[None]:
    """Convert the error of an import of torch inside the block to NeedsTorch; also of NumPy, which
    is installed with it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing == "torch" or (missing == "numpy" and find_spec("torch") is None):
            raise NeedsTorch from None
        raise


class CompileFailed(LabError):
    """The C++ or Triton compiler rejected generated code."""


class NotRunnable(LabError):
    """This value was loaded from a file, or compiled for another machine, so it has no live
    code."""


class NotReported(LabError):
    """A log lacks what a view needs; the message names the setting with which to record again."""


class NotReplayed(LabError):
    """A part of a compiled call is not replayed as a CUDA graph, although that was required."""


class NotPicklable(LabError, TypeError):
    """Compiled code belongs to this process: it cannot be copied or sent to another one."""


class CacheRefused(LabError):
    """The cache directory cannot be trusted or written."""


class UnreadableFile(LabError):
    """A file is not a saved compilation, is damaged, or has a newer version."""


class CannotWrite(LabError):
    """A report or a file cannot be written to the given path."""


class UnknownTarget(LabError):
    """A compilation target is unknown, or its toolchain is missing."""


class UnknownName(LabError):
    """There is no buffer, kernel or pass with the given name."""


class BadArguments(LabError):
    """A command or a magic got invalid arguments."""


class DividedByZero(LabError, RuntimeError):
    """A kernel divided integers by zero."""


class IntegerTooLarge(LabError, OverflowError):
    """An integer that is computed from the user's integers, and is passed to a kernel, exceeds 64
    bits."""

    def __init__(self, value: int) -> None:
        what = f"an integer of {value.bit_length()} bits does not fit in a kernel's int64"
        super().__init__(what, todo="compute it as a float")


class IndexOutOfRange(LabError, IndexError, RuntimeError):
    """A kernel loaded an index that is out of range.

    Eager mode raises IndexError or RuntimeError for it, depending on the operator.
    """


class RankFailed(LabError, RuntimeError):
    """A collective could not complete, because another rank of the process group has failed."""


class OutOfBounds(LabError, RuntimeError):
    """Under `check_bounds`, a kernel read or wrote outside a buffer."""

    def __init__(self, kernel: str, buffer: str, index: int, length: int, where: str = "") -> None:
        super().__init__(
            f"{kernel} reaches element {index} of {buffer}, which has {length}",
            where,
            "this is a bug of inductor_lab, please report it",
        )


class BrokenPromise(LabError, RuntimeError):
    """An operator returned a tensor with other properties than its fake implementation, or no
    tensor."""

    def __init__(self, op: str, promised: str, returned: str, where: str = "") -> None:
        super().__init__(
            f"{op} returned {returned}, but its fake implementation returned {promised}",
            where,
            "correct the function registered with register_fake (impl_abstract, Meta)",
        )


class LeftToATen(Exception):
    """Raised by a lowering that leaves the operator to ATen; `c.coverage` shows the reason."""

    def __init__(self, reason: Any = "no lowering") -> None:
        self.reason = reason


class CompilerDefect(LabError):
    """A phase failed because of a bug of the compiler, or of a user's function (`lab.override`),
    whose line is then in the message; the original exception is its `__cause__`."""

    def __init__(self, phase: str, error: BaseException, op: str = "", where: str = "") -> None:
        self.phase, self.op = phase, op
        said = " ".join(str(error).split())
        super().__init__(
            f"the compiler failed in {phase}{f', at {op}' if op else ''}: "
            f"{type(error).__name__}: {said}",
            *where_and_todo(error, where),
        )


class Stumbled(Exception):
    """The FX nodes that a phase worked on when it failed.  `_phase` converts it to a CompilerDefect
    with the operators and the lines of these nodes."""

    def __init__(self, nodes: tuple[str, ...]) -> None:
        self.nodes = nodes


@contextmanager
def working_on(nodes: Iterable[str]) -> Iterator[None]:
    """Add these nodes to an exception that is raised inside; errors of ours already name their
    line."""
    try:
        yield
    except (LabError, Stumbled):
        raise
    except Exception as error:
        raise Stumbled(tuple(nodes)) from error
