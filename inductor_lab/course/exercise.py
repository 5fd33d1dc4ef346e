"""An exercise: random cases, a judge, and a case that a solution gets wrong, made small.

    @exercise("1.1", "A stack machine", "栈式虚拟机", points=2)
    class StackMachine(Exercise):
        def cases(self, draw): ...            random cases, small ones first
        def judge(self, solution, case): ...  None, or a sentence that says what is wrong
                                              `solution` is in another process: it is called
                                              there, and its outputs are judged here
        def smaller(self, case): ...          cases to try in its place
        def picture(self, solution, case): .. what went wrong, drawn, if a picture helps

MiniTorch: tests as the contract of a module.  QuickCheck (Claessen and Hughes 2000): properties on
random values, and shrinking.
"""

from __future__ import annotations

import copy
import importlib
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar

from inductor_lab.compiler.base.errors import BadArguments, CompilerDefect
from inductor_lab.course.language import say
from inductor_lab.course.lines import line_in, line_of
from inductor_lab.course.order import hint
from inductor_lab.course.pictures import Picture
from inductor_lab.debug.untrusted.remote import Raised, RemoteObject, Stopped

PRACTICE = 0
"""The seed of cases in a student's own notebook.  Graded cases have a secret one."""
SHRINKS = 400
"""So many smaller cases are tried."""


@dataclass(frozen=True)
class Wrong:
    """A case that a solution gets wrong, the smallest that was found, and how."""

    case: Any
    reason: str


class Exercise:
    """A task and the check of its solutions.  Subclasses define the first three methods.

    name     "1.2": lab and number
    title    in both languages
    points   for a solution that is right in all cases
    limit    seconds for all cases together
    """

    name: ClassVar[str] = ""
    title: ClassVar[tuple[str, str]] = ("", "")
    points: ClassVar[int] = 1
    limit: ClassVar[float] = 30.0

    def cases(self, draw: random.Random) -> Iterator[Any]:
        """Cases, small ones first."""
        raise NotImplementedError

    def judge(self, solution: Any, case: Any) -> str | None:
        """A sentence that says what is wrong in this case; None if nothing is."""
        raise NotImplementedError

    def smaller(self, case: Any) -> Iterable[Any]:
        """Simpler cases to try when this one fails."""
        return ()

    def described(self, case: Any) -> str:
        """The text of the case for the student."""
        return str(case)

    def scored(self) -> str:
        """What a solution that is right in all cases achieved: bytes, kernels; "" for nothing."""
        return ""

    def picture(self, solution: Any, case: Any) -> Picture | None:
        """A picture of the failure in this case; None if the message is enough."""
        return None

    def drawn(self, solution: Any, case: Any) -> Picture | None:
        """`picture`, or None if the solution does not return what it shows."""
        try:
            return self.picture(solution, case)
        except Exception:
            return None

    def first_wrong(self, solution: Any, seed: int | str = PRACTICE) -> Wrong | None:
        """Try all cases; the first that fails, made small by `smaller`.

        Raises NotImplementedError for a stub, and Stopped where the solution's process is over.
        """
        for case in self.cases(random.Random(seed)):
            reason = self._tried(solution, case)
            if reason is not None:
                return self._shrunk(solution, Wrong(case, reason))
        return None

    def _tried(self, solution: Any, case: Any) -> str | None:
        """The judge's answer; an exception of the solution also counts as a failure.

        A stub raises NotImplementedError, which is not caught.
        """
        try:
            return self.judge(solution, case)
        except NotImplementedError:
            raise
        except (Exception, SystemExit) as error:
            return explained(error, solution)

    def _shrunk(self, solution: Any, wrong: Wrong) -> Wrong:
        tries = 0
        found = True
        while found and tries < SHRINKS:
            found = False
            for case in self.smaller(wrong.case):
                tries += 1
                reason = self._tried(solution, case)
                if reason is not None:
                    wrong, found = Wrong(case, reason), True
                    break
        return wrong


def explained(error: BaseException, solution: Any) -> str:
    """A sentence for what a judge raised.  Raises NotImplementedError for a stub, Stopped for a
    process that is over."""
    chain = list(_chain(error))
    for stopped in chain:
        if isinstance(stopped, Stopped):
            raise stopped from None
    raised = next((one for one in chain if isinstance(one, Raised)), None)
    if raised is not None and "NotImplementedError" in raised.mro:
        raise NotImplementedError from None
    where, said, name = "", f"{type(error).__name__}: {error}", ""
    if raised is not None:
        where, name = line_in(raised.frames, raised.file), raised.name
        said = said if raised.kind == "CallFailed" else str(raised)
    elif not isinstance(solution, RemoteObject):  # it runs in this process
        own = (error.__cause__ if isinstance(error, CompilerDefect) else None) or error
        where, said = line_of(own.__traceback__, solution), f"{type(own).__name__}: {own}"
        name = str(own.name or "") if isinstance(own, NameError) else ""
    if where:
        sentence = say("it raised {e}{w}", e=said, w=where)
        return f"{sentence}\n{hint(name)}" if name else sentence
    sentence = say("the check cannot use your answer: {e}", e=said)
    if callable(solution):
        return sentence
    itself = say("pass the function or class itself, and do not call it")
    return f"{sentence}\n{itself}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those that it wraps."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


_KNOWN = ("builtins", "collections", "inductor_lab", "numpy", "sympy", "torch")
"""Packages whose classes compare values as everybody expects."""

EXERCISES: dict[str, Exercise] = {}
"""All exercises, by name; filled by `labs/`."""


def exercises() -> dict[str, Exercise]:
    """All exercises, by name."""
    importlib.import_module("inductor_lab.course.labs")
    return EXERCISES


def in_order() -> list[str]:
    """Their names in the order of the course: 9.5 before 10.1."""
    return sorted(exercises(), key=lambda name: [int(part) for part in name.split(".")])


def exercise(
    name: str, en: str, zh: str, *, points: int = 1, limit: float = 30.0
) -> Callable[[type[Exercise]], type[Exercise]]:
    """Register an exercise under its name.  Raises BadArguments if the name is taken."""

    def register(made: type[Exercise]) -> type[Exercise]:
        if name in EXERCISES:
            raise BadArguments(f"two exercises are called {name}", todo="choose another lab number")
        made.name, made.title, made.points, made.limit = name, (en, zh), points, limit
        EXERCISES[name] = made()
        return made

    return register


def run_there(solution: Any, function: str, *args: Any) -> Any:
    """Call `module:function` in the process of a solution: what it returns is what that process
    says, and needs a judge like any output."""
    if isinstance(solution, RemoteObject):
        return solution.process.run(function, *args)
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)(*args)


def given(*values: Any) -> tuple[Any, ...]:
    """Copies of a case's values: a solution may modify them without changing the judge's values."""
    return copy.deepcopy(values)


def expected(what: type | tuple[type, ...], found: Any) -> str | None:
    """A sentence if a value does not have the expected type.

    True is not a number.  A container may have another type, such as a defaultdict, but it must not
    contain instances of the student's own classes, which could define `__eq__`.
    """
    kinds = what if isinstance(what, tuple) else (what,)
    fits = isinstance(found, kinds) and (bool in kinds or not isinstance(found, bool))
    if fits and not _equals_as_it_likes(found):
        return None
    names = say(" or ").join("None" if kind is NoneType else kind.__name__ for kind in kinds)
    if found is None:
        return say("it should return {names}, it returned None (no `return`?)", names=names)
    return say(
        "it should return {names}, it returned a value of type {got}",
        names=names, got=found.kind if isinstance(found, RemoteObject) else type(found).__name__,
    )


def _equals_as_it_likes(found: Any) -> bool:
    if isinstance(found, RemoteObject):
        return True
    decides = next(kind for kind in type(found).__mro__ if "__eq__" in vars(kind))
    if decides.__module__.partition(".")[0] not in _KNOWN:
        return True
    inside: Iterable[Any] = found.values() if isinstance(found, dict) else found
    return isinstance(found, list | tuple | set | frozenset | dict) and any(
        map(_equals_as_it_likes, inside)
    )
