"""The side of the untrusted code: it is called, and its values are sent.

Nothing here decides anything, and nothing here knows what is right.  Code that finds its way into
this module can send other values, as it can by returning them.
"""

from __future__ import annotations

import faulthandler
import linecache
import os
import sys
import threading
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NoReturn

from inductor_lab.compiler.base.errors import CompilerDefect
from inductor_lab.compiler.base.thread_state import ThreadState
from inductor_lab.debug.untrusted.confine import DIE_WITH_PARENT, Limits, control, limit
from inductor_lab.debug.untrusted.wire import HEAD, Codec, Malformed, Opaque, dumps, loads

STACK = 256 << 20
"""Bytes of stack: TorchDynamo recurses deeply."""
FRAMES = 40
"""So many frames of a traceback are sent: half of them the outermost, where the user's code is when
a library that it calls is deep in its own."""
TEXT = 4000
"""So many letters of what an exception says are sent."""


@dataclass(frozen=True)
class Ends:
    """File descriptors of one untrusted process: it reads requests, and writes answers, what is
    printed, and traces of crashes; `files` stay open too."""

    requests: int
    answers: int
    printed: int
    traces: int
    files: tuple[int, ...] = ()


def serve(root: Callable[[], Any], ends: Ends, limits: Limits, codec: Codec) -> NoReturn:
    """Make the root object, send it, and answer requests until the other side closes.

    For a process of its own, in which no other thread runs; the limits begin here.
    """
    control(DIE_WITH_PARENT, 9)
    _close_all_but(ends)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for output in (1, 2):
        os.dup2(ends.printed, output)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, errors="replace")
    limit(limits)
    faulthandler.enable(ends.traces, all_threads=False)
    state = ThreadState.now()
    threading.stack_size(STACK)
    server = _Server(ends, codec)
    # in a new thread OpenMP makes a pool of threads anew: those of before the fork are not here
    thread = threading.Thread(target=lambda: state.run(lambda: server.all(root)))
    thread.start()
    while thread.is_alive():
        thread.join(limits.seconds / 8)
        write_place(thread.ident or 0, ends.traces)
    sys.stdout.flush()
    os._exit(0)


def _close_all_but(ends: Ends) -> None:
    kept = sorted({0, 1, 2, ends.requests, ends.answers, ends.printed, ends.traces,
                   *ends.files})  # fmt: skip
    for low, high in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(low + 1, high)


NOW = "== now"
"""Begins a traceback of a thread that runs."""


def write_place(thread: int, file: int) -> None:
    """Write where a thread is, the innermost frame first."""
    frame, places = sys._current_frames().get(thread), list[tuple[str, int]]()
    while frame is not None:
        # an instruction without a position in the source has no line
        places.append((frame.f_code.co_filename, frame.f_lineno or frame.f_code.co_firstlineno))
        frame = frame.f_back
    lines = [f'File "{file_name}", line {line} in it\t{linecache.getline(file_name, line).strip()}'
             for file_name, line in _both_ends(places)]  # fmt: skip
    os.write(file, ("\n".join([NOW, *lines]) + "\n").encode(errors="replace"))


def _both_ends(places: list[tuple[str, int]]) -> list[tuple[str, int]]:
    half = FRAMES // 2
    return places if len(places) <= FRAMES else places[:half] + places[-half:]


def file_of(solution: Any) -> str:
    """The file or cell that a function, a class or a kernel (`@triton.jit`) stands in; "" for
    what is none of them."""
    functions = vars(solution).values() if isinstance(solution, type) else [
        getattr(solution, "fn", solution)
    ]  # fmt: skip
    found = [f.__code__.co_filename for f in functions if isinstance(f, types.FunctionType)]
    return found[0] if found else ""


class CallFailed(BaseException):
    """A function of the other side has failed; the other side knows why."""


class _Server:
    def __init__(self, ends: Ends, codec: Codec) -> None:
        self.ends = ends
        self.objects: list[Any] = []
        self.out = replace(codec, keep=self._kept, pickles=False)
        self.into = replace(codec, take=self._taken, pickles=True)

    def _kept(self, value: Any) -> Opaque:
        if isinstance(value, _Callback):
            return Opaque(value.number, "function", True, sender=False)
        self.objects.append(value)
        return Opaque(len(self.objects) - 1, type(value).__name__, callable(value))

    def _taken(self, opaque: Opaque) -> Any:
        if opaque.sender:
            return _Callback(self, opaque.number)
        return self.objects[opaque.number]

    def all(self, root: Callable[[], Any]) -> None:
        """Send the root, then answer."""
        self._answer(0, lambda: self._root(root()))
        while (request := self._read()) is not None:
            number, target, method, args, kwargs, after = request
            self._answer(number, lambda: self._called(target, method, args, kwargs, after))  # noqa: B023

    def _root(self, made: Any) -> tuple[Any, str]:
        # a class is called like a function
        return made, file_of(made)

    def _called(
        self, target: int | str, method: str, args: Any, kwargs: Any, after: bool
    ) -> Any:
        if isinstance(target, str):
            module, _, name = target.partition(":")
            function = getattr(import_module(module), name)
        else:
            function = self.objects[target]
        if method:
            function = getattr(function, method)
        value = function(*args, **kwargs)
        return (value, args) if after else value

    def _answer(self, number: int, work: Callable[[], Any]) -> None:
        try:
            answer = dumps((number, "returned", work()), self.out)
        except BaseException as error:
            answer = dumps((number, "raised", _report(error)), self.out)
        self._write(answer)

    def call_back(self, number: int, args: Any, kwargs: Any) -> Any:
        """Ask the other side to call its own function."""
        self._write(dumps((-1, "call", (number, list(args), dict(kwargs))), self.out))
        answer = self._read()
        if answer is None or not answer[0]:
            raise CallFailed
        return answer[1]

    def _write(self, message: bytes) -> None:
        while message:
            message = message[os.write(self.ends.answers, message) :]

    def _read(self) -> Any:
        head = self._bytes(HEAD.size)
        if len(head) < HEAD.size:
            return None
        text, rest = HEAD.unpack(head)
        return loads(self._bytes(text), self._bytes(rest), self.into)

    def _bytes(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            piece = os.read(self.ends.requests, min(count - len(found), 1 << 20))
            if not piece:
                break
            found += piece
        return bytes(found)


class _Callback:
    """A function of the other side."""

    def __init__(self, server: _Server, number: int) -> None:
        self.server, self.number = server, number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.server.call_back(self.number, args, kwargs)


def _report(error: BaseException) -> Mapping[str, Any]:
    """An exception as plain values: its own, or the one of the user's code that it wraps."""
    if isinstance(error, CompilerDefect) and error.__cause__ is not None:
        error = error.__cause__  # in a phase of the user's
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    frames = [(*place, linecache.getline(*place).strip()) for place in _both_ends(places)]
    kind = "too large" if isinstance(error, Malformed) else type(error).__name__
    try:
        text = str(error)[:TEXT]
    except Exception:
        text = ""
    name = error.name if isinstance(error, NameError) else None
    mro = [each.__name__ for each in type(error).__mro__]
    return {"kind": kind, "text": text, "frames": frames, "mro": mro,
            "name": name if type(name) is str else ""}  # fmt: skip
