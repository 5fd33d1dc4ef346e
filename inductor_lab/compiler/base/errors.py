"""Errors that a user can do something about.

Each says what happened, where in the user's own code, and what to do.  `where` is a line such as
`"y = torch.erfinv(x)        cell 3, line 2"`, or "" when no line of theirs is involved.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

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
        """Raise it for the first unknown name in the list that an option is given."""
        for name in given:
            if name not in known:
                what, todo = unknown_name("name", name, known)
                raise cls(option, name, todo=todo, what=f"option {option}: {what}")


def unknown_name(
    kind: str, name: object, known: Collection[str], path: str = ""
) -> tuple[str, str]:
    """What happened, with the closest valid name; and all valid names.

    >>> unknown_name("option", "fuson", ["cache", "fusion"])
    ("unknown option 'fuson'; did you mean 'fusion'?", 'Valid options: cache, fusion')
    """
    close = difflib.get_close_matches(str(name), known, 1, 0.7)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    listed = [*known] if len(known) <= 50 else [*known][:50] + ["..."]
    shown = f"{path}{name}" if path else name
    return f"unknown {kind} {shown!r}{meant}", f"Valid {kind}s: {', '.join(listed)}"


class NothingToChange(UserWarning):
    """An option was given that makes no difference where the tensors are."""


class RunsUncompiled(UserWarning):
    """A graph runs as eager mode does: its kernels could not be compiled and errors are suppressed,
    or it has no correct functional form (`capture/eager_fallback.py`)."""


class MissingLowering(LabError):
    """Under `strict`, an op has no lowering of ours."""

    def __init__(self, op: str, where: str = "") -> None:
        todo = 'add one with @lab.lowers, or leave options={"strict": False} to call ATen'
        super().__init__(f"no lowering for {op}", where, todo)


class Refused(LabError):
    """A phase of the user's (`lab.override(schedule=...)`) gave a result that is not legal."""


class NoCompiler(LabError):
    """No C++ compiler was found on this machine."""


class MissingPackage(LabError, ImportError):
    """A library that the compiler itself does not need, and what was asked for does."""

    def __init__(self, package: str, extra: str = "notebook") -> None:
        super().__init__(f"{package} is missing", todo=f"pip install 'inductor-lab[{extra}]'")


class CompileFailed(LabError):
    """The C++ or Triton compiler refused generated code."""


class NotRunnable(LabError):
    """This value was loaded from a file, or compiled for another machine, and has no live code."""


class NotPicklable(LabError, TypeError):
    """Compiled code is of this process: it cannot be copied, nor sent to another one."""


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


class DividedByZero(LabError, RuntimeError):
    """A kernel divided integers by zero."""


class IntegerTooLarge(LabError, OverflowError):
    """An integer that is computed from the user's own, and goes into a kernel, has over 64 bits."""

    def __init__(self, value: int) -> None:
        what = f"an integer of {value.bit_length()} bits is more than a kernel's 63 and a sign"
        super().__init__(what, todo="compute it as a float")


class IndexOutOfRange(LabError, IndexError, RuntimeError):
    """A kernel met an index, loaded from a tensor, that is outside of what it indexes.

    Eager raises IndexError or RuntimeError for it, each operator its own.
    """


class RankFailed(LabError, RuntimeError):
    """A collective could not end, because another rank of the process group has failed."""


class OutOfBounds(LabError, RuntimeError):
    """Under `check_bounds`, a kernel read or wrote outside of a buffer."""

    def __init__(self, kernel: str, buffer: str, index: int, length: int, where: str = "") -> None:
        super().__init__(
            f"{kernel} reaches element {index} of {buffer}, which has {length}",
            where,
            "this is a defect of inductor_lab, please report it",
        )


class BrokenPromise(LabError, RuntimeError):
    """An operator returned another kind of tensor than its fake implementation had promised, or
    none."""

    def __init__(self, op: str, promised: str, returned: str, where: str = "") -> None:
        super().__init__(
            f"{op} returned {returned}, where its fake implementation had promised {promised}",
            where,
            "correct what is registered with register_fake (impl_abstract, Meta)",
        )


class LeftToATen(Exception):
    """What a lowering raises where ATen does it, or refuses it, better; `c.coverage` tells why."""

    def __init__(self, reason: str = "no lowering") -> None:
        self.reason = reason


class CompilerDefect(LabError):
    """A phase raised something that is nobody's fault but ours, unless a function of the user's
    (`lab.override`) raised it, which is then told with its line; the cause is its `__cause__`."""

    def __init__(self, phase: str, error: BaseException, op: str = "", where: str = "") -> None:
        self.phase, self.op = phase, op
        said = " ".join(str(error).split())
        super().__init__(
            f"the compiler failed in {phase}{f', at {op}' if op else ''}: "
            f"{type(error).__name__}: {said}",
            *where_and_todo(error, where),
        )


class Stumbled(Exception):
    """What a phase was working on when it failed: names of FX nodes.  `_phase` makes it a
    CompilerDefect, which knows the operators and the lines of these nodes."""

    def __init__(self, nodes: tuple[str, ...]) -> None:
        self.nodes = nodes


@contextmanager
def working_on(nodes: Iterable[str]) -> Iterator[None]:
    """An exception inside is told with these nodes; errors of ours speak for themselves."""
    try:
        yield
    except (LabError, Stumbled):
        raise
    except Exception as error:
        raise Stumbled(tuple(nodes)) from error
