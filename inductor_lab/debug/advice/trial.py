"""Run a program once in a process of its own: its results, its compilations, their failed guards.

The program is a function in a text.  The text is executed as a new module, so an edited text can be
tried like the original one.
"""

from __future__ import annotations

import io
import linecache
import logging
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np
import torch

from inductor_lab.compiler.capture import events
from inductor_lab.compiler.capture.capture import Recompile
from inductor_lab.compiler.capture.span import outside_torch
from inductor_lab.compiler.torch_door import torch_logs
from inductor_lab.compiler.torch_door.torch_api import pytree
from inductor_lab.debug.isolate import Ended, Tell, Work
from inductor_lab.debug.recompiles.watch_recompiles import Recompiles, recompiles
from inductor_lab.debug.untrusted.confine import confinable, confine

_OURS = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EFFECTS = {
    "os.remove": "deletes {0}", "os.rename": "renames {0}", "os.mkdir": "makes the folder {0}",
    "os.rmdir": "deletes the folder {0}", "os.truncate": "truncates {0}", "os.link": "links {0}",
    "os.symlink": "links {0}", "os.chmod": "changes the mode of {0}",
    "os.system": "runs the command {0}", "subprocess.Popen": "starts the program {0}",
    "os.posix_spawn": "starts the program {0}", "os.exec": "starts the program {0}",
    "os.fork": "forks the process", "os.kill": "signals a process",
    "socket.connect": "opens a connection", "socket.bind": "opens a socket",
    "sqlite3.connect": "opens the database {0}", "builtins.input": "asks for input",
}  # fmt: skip
"""Python's audit event → what the program does that outlasts its process."""


@dataclass(frozen=True)
class Program:
    """A function of a text; `names` are global names that exist before the text is executed."""

    path: str
    text: str
    function: str
    args: tuple[Any, ...] = ()
    names: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """The call that TorchDynamo compiles: its position in the file, and the function's parameters.

    Lines count from 1, columns are bytes from 0, as in `ast`.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str = ""
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """One run.

    results     the leaves of the returned value; tensors are detached copies
    printed     what it printed
    compiles    the number of compilations; `recompiled` of them are not the first of their frame
    calls       how often each compiled function was called
    recompiles  failed guards
    sites       by compile id: the call that triggered it
    effects     what it did outside of its process (only if it was watched)
    """

    results: tuple[Any, ...]
    printed: str
    compiles: int
    recompiled: int
    calls: Mapping[str, int]
    eager_calls: int
    recompiles: tuple[Recompile, ...]
    sites: Mapping[str, Site]
    effects: tuple[str, ...] = ()


class Refused(BaseException):
    """The program is about to do something that cannot be repeated."""


class Reached(BaseException):
    """The text of a program has come to the call of `lab.advise` that tries it."""


_trying = False


def stop_if_trying() -> None:
    """Raise Reached if this process executes the text of a program."""
    if _trying:
        raise Reached


def compiled_run(program: Program) -> Work:
    """A run with TorchDynamo."""

    def work(tell: Tell) -> Outcome:
        torch.compiler.reset()
        where = _Sites()
        with torch_logs.traces_to(where), recompiles() as seen:
            results, printed = _call(program)
        calls = _calls_by_function(seen)
        made = [each for each in seen.compiled if not each.refused]
        return Outcome(
            results=results,
            printed=printed,
            compiles=len(made),
            recompiled=len(made) - len({each.compile_id.rpartition("/")[0] for each in made}),
            calls=calls,
            eager_calls=sum(seen.eager_calls.values()),
            recompiles=tuple(r for each in seen.compiled for r in each.reasons),
            sites=_with_parameters(where.sites, seen.codes),
        )

    return work


def eager_run(program: Program) -> Work:
    """A run without TorchDynamo that stops before it changes anything outside of its process.

    Python's audit events name what it is about to do.  Landlock also stops C++ code, such as that
    of `torch.save`, where the machine has it.
    """

    def work(tell: Tell) -> Outcome:
        torch.compiler.reset()
        if confinable():
            confine([], Path("/no scratch folder"))
        effects: list[str] = []
        results: tuple[Any, ...] = ()
        printed = ""
        with torch.compiler.set_stance("force_eager"), watched(effects):
            try:
                results, printed = _call(program)
            except BaseException:
                if not effects:
                    raise
        return Outcome(results, printed, 0, 0, {}, 0, (), {}, tuple(dict.fromkeys(effects)))

    return work


def outcome_of(ended: Ended) -> Outcome | None:
    """The outcome of a run that returned."""
    return ended.value if ended.how == "returned" else None


def _call(program: Program) -> tuple[tuple[Any, ...], str]:
    """Execute the text up to its call of `lab.advise`, then call the function.

    Each run has the same random numbers.
    """
    global _trying
    module = ModuleType("advised")
    module.__file__ = program.path
    vars(module).update(program.names)
    sys.modules[module.__name__] = module
    lines = program.text.splitlines(keepends=True)
    linecache.cache[program.path] = (len(program.text), None, lines, program.path)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    sys.dont_write_bytecode = True
    printed = io.StringIO()
    with redirect_stdout(printed):
        _trying = True
        with suppress(Reached):
            exec(compile(program.text, program.path, "exec"), vars(module))
        _trying = False
        result = vars(module)[program.function](*program.args)
    return portable_leaves(result), printed.getvalue()


def portable_leaves(result: Any) -> tuple[Any, ...]:
    """The leaves of a result, for another process."""
    return tuple(map(_portable, pytree.tree_leaves(result)))


def _portable(leaf: Any) -> Any:
    """A result that another process can read."""
    if isinstance(leaf, torch.Tensor):
        return (leaf.detach().clone(), leaf.requires_grad)
    if leaf is None or isinstance(leaf, bool | int | float | complex | str | bytes):
        return leaf
    return repr(type(leaf))


def same_results(first: Outcome, second: Outcome) -> bool:
    """Equal structure, dtypes and gradients; values up to rounding; the same printed text."""
    return first.printed == second.printed and same_leaves(first.results, second.results)


def same_leaves(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """The same for the leaves of two results."""
    return len(first) == len(second) and all(map(_same, first, second))


def _same(first: Any, second: Any) -> bool:
    if not isinstance(first, tuple) or not isinstance(second, tuple):
        if isinstance(first, float) and isinstance(second, float):
            return bool(np.isclose(first, second, rtol=1e-4, atol=1e-5, equal_nan=True))
        return type(first) is type(second) and bool(first == second)
    (one, one_grad), (two, two_grad) = first, second
    if (one.shape, one.dtype, one_grad) != (two.shape, two.dtype, two_grad):
        return False
    if one.is_floating_point() or one.is_complex():
        low = one.dtype in (torch.float16, torch.bfloat16)
        limits = {"rtol": 1e-2, "atol": 1e-2} if low else {"rtol": 1e-4, "atol": 1e-5}
        return torch.allclose(one, two, equal_nan=True, **limits)
    return torch.equal(one, two)


def _calls_by_function(seen: Recompiles) -> dict[str, int]:
    names = {each.compile_id: each.function for each in seen.compiled}
    counted = Counter(names.get(call.served[0], "") for call in seen.calls)
    return dict(counted)


# ---- where a compilation was triggered --------------------------------------------------------


class _Sites(logging.Handler):
    """Finds the user's call of each compilation on the stack of this process."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.sites: dict[str, Site] = {}

    def emit(self, record: logging.LogRecord) -> None:
        event = events.Event(getattr(record, "metadata", None) or {}, None)
        if event.compile_id and event.compile_id not in self.sites:
            site = _user_call(sys._getframe())
            if site is not None:
                self.sites[event.compile_id] = site


def _user_call(frame: FrameType | None) -> Site | None:
    while frame is not None:
        file = frame.f_code.co_filename
        ours = file.startswith(_OURS) or not outside_torch(file)
        if not ours and not file.startswith("<frozen") and os.sep + "logging" + os.sep not in file:
            if "contextlib" not in file:
                line, end, column, last = list(frame.f_code.co_positions())[frame.f_lasti // 2]
                if None in (line, end, column, last):
                    return None
                return Site(file, line or 0, column or 0, end or 0, last or 0)
        frame = frame.f_back
    return None


def _with_parameters(sites: Mapping[str, Site], codes: Mapping[str, CodeType]) -> dict[str, Site]:
    found = {}
    for compile_id, site in sites.items():
        code = codes.get(compile_id)
        if code is None:  # a refused version: as the others of its frame
            frame = compile_id.rpartition("/")[0]
            code = next((c for n, c in codes.items() if n.rpartition("/")[0] == frame), None)
        if code is not None:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            found[compile_id] = Site(site.file, site.line, site.column, site.end_line,
                                     site.end_column, code.co_name, names)  # fmt: skip
    return found


# ---- effects outside of the process -----------------------------------------------------------


@contextmanager
def watched(effects: list[str]) -> Iterator[None]:
    """Stop the program before it writes a file, starts a process or opens a connection."""
    active = True

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if not active:
            return
        what = ""
        if event == "open":
            path, mode, flags = args
            if _is_write(mode, flags) and str(path) != os.devnull:
                what = f"writes {path}"
        elif event == "os.mkdir" and _is_cache(str(args[0])):
            return
        elif event in _EFFECTS:
            what = _EFFECTS[event].format(*args, "", "")
        if what:
            effects.append(what)
            raise Refused(what)

    sys.addaudithook(hook)
    try:
        yield
    finally:
        active = False


def _is_cache(folder: str) -> bool:
    """Is this a folder that exists, or the one in which torch keeps compiled code?"""
    return os.path.isdir(folder) or os.path.basename(folder).startswith("torchinductor_")


def _is_write(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    nameless = getattr(os, "O_TMPFILE", 0)  # such a file is gone when it is closed
    if not isinstance(flags, int) or (nameless and flags & nameless == nameless):
        return False
    return bool(flags & _WRITES)

