"""The side that judges: functions and objects that live in the other process.

A call sends the arguments and returns what came back, parsed.  It raises `Raised` where the code
raised, and `Stopped` if the process gives no more answers.
"""

from __future__ import annotations

import os
import re
import select
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.keeper import PATIENCE, keep
from inductor_lab.debug.untrusted.serve import NOW, Ends, serve
from inductor_lab.debug.untrusted.wire import (
    HEAD,
    MOST_BYTES,
    MOST_JSON,
    Codec,
    Malformed,
    Opaque,
    dumps,
    loads,
)

Frame = tuple[str, int, str]
"""File, number and text of a line."""
_IN_TRACE = re.compile(r'File "([^"]+)", line (\d+) in [^\t\n]*\t?(.*)')
_BEGINS = re.compile(f"{NOW}|Fatal Python error")
GRACE = 3.0
"""Seconds for the keeper to say how the process ended."""
LAST_WORDS = 4000
"""Letters that are kept of what was printed."""


class Raised(Exception):
    """The untrusted code raised an exception.

    kind, mro   the name of its class, and of all its bases
    frames      its traceback, the outermost first
    name        of a NameError
    file        the file of the root object
    """

    file = ""

    def __init__(self, kind: str, text: str, frames: list[Frame], mro: list[str],
                 name: str = "") -> None:  # fmt: skip
        super().__init__(f"{kind}: {text}")
        self.kind, self.text, self.frames, self.mro, self.name = kind, text, frames, mro, name


class Stopped(Exception):
    """The other process gives no more answers.

    how     "hung", "crashed", "memory", or "malformed" for an answer that is none
    kind    of a crash: the signal, or the exit status
    frames  where it was, the innermost first, where that is known
    """

    def __init__(self, how: Literal["hung", "crashed", "memory", "malformed"], kind: str = "",
                 frames: list[Frame] | None = None) -> None:  # fmt: skip
        super().__init__(f"{how} {kind}".strip())
        self.how, self.kind, self.frames = how, kind, frames or []


@dataclass(frozen=True, eq=False)
class RemoteObject:
    """An object in the other process; its methods are called there."""

    process: Process
    number: int
    kind: str

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.process.request(self.number, name, args, kwargs)


@dataclass(frozen=True, eq=False)
class RemoteFunction(RemoteObject):
    """A function, a class, or another object in the other process that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.process.request(self.number, "", args, kwargs)

    def with_arguments(self, *args: Any) -> tuple[Any, list[Any]]:
        """What it returns, and what has become of its arguments."""
        value, after = self.process.request(self.number, "", args, {}, after=True)
        return value, list(after)


@dataclass(frozen=True)
class Pipes:
    """This side's ends: requests are written; answers and status are read; `life` is held open."""

    requests: int
    answers: int
    status: int
    life: int


@dataclass
class Process:
    """One untrusted process, from its first answer on: `root` is what it offers.

    file      the file that the root stands in
    keeper    the process id of the keeper, where it is a child of this process
    scratch   the folder that it writes to, where it has one of its own
    """

    pipes: Pipes
    limits: Limits
    codec: Codec
    printed: IO[bytes]
    traces: IO[bytes]
    keeper: int = 0
    scratch: Path = Path()
    root: Any = None
    file: str = ""
    _callbacks: list[Callable[..., Any]] = field(default_factory=list)
    _failed: BaseException | None = None
    _heard: bytearray = field(default_factory=bytearray)
    _asked: int = 0

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.limits.whole
        self._out = replace(self.codec, keep=self._kept, pickles=True)
        self._into = replace(self.codec, take=self._taken, pickles=False)

    def begin(self) -> Any:
        """Wait for the root.  Raises Raised and Stopped."""
        found = self._answer()
        if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[1], str):
            raise Stopped("malformed")
        self.root, self.file = found
        if self.limits.start:
            self.deadline = time.monotonic() + self.limits.seconds
        return self.root

    def request(self, target: int | str, method: str, args: Any, kwargs: Any, *,
                after: bool = False) -> Any:  # fmt: skip
        """Call something there: an object by its number, or `module:function`."""
        self._asked += 1
        self._failed = None
        message = (self._asked, target, method, list(args), dict(kwargs), after)
        self._write(dumps(message, self._out))
        return self._answer()

    def run(self, function: str, *args: Any) -> Any:
        """Call `module:function` there."""
        return self.request(function, "", args, {})

    def stop(self) -> None:
        """End the process while another thread waits for its answer, which raises Stopped."""
        nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nothing, self.pipes.life, inheritable=False)  # closes this end of the pipe
        os.close(nothing)

    def close(self) -> None:
        """End the process and all its descendants."""
        for end in (self.pipes.requests, self.pipes.life):
            os.close(end)
        self._status(PATIENCE)
        for end in (self.pipes.answers, self.pipes.status):
            os.close(end)
        if self.keeper:
            os.waitpid(self.keeper, 0)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def said(self) -> str:
        """The end of what the code printed."""
        return _text(self.printed)[-LAST_WORDS:]

    def _kept(self, value: Any) -> Opaque | None:
        if isinstance(value, RemoteObject):
            return Opaque(value.number, value.kind, True, sender=False)
        if callable(value) and not isinstance(value, type):
            self._callbacks.append(value)
            return Opaque(len(self._callbacks) - 1, "function", True)
        return None

    def _taken(self, opaque: Opaque) -> Any:
        if not opaque.sender:
            return self._callbacks[opaque.number]
        kind = RemoteFunction if opaque.calls else RemoteObject
        return kind(self, opaque.number, opaque.kind)

    def _answer(self) -> Any:
        while True:
            message = self._message()
            if not isinstance(message, tuple) or len(message) != 3:
                raise Stopped("malformed")
            number, how, value = message
            if how == "call":
                self._called_back(value)
            elif number != self._asked:
                raise Stopped("malformed")
            elif how == "returned" and self._failed is None:
                return value
            else:
                raise self._why(how, value)

    def _why(self, how: str, value: Any) -> BaseException:
        """What a request raises: what a function of this side raised, whatever the code made of
        that, or else what the code raised."""
        raised = _raised(value) if how == "raised" else None
        if isinstance(raised, Raised):
            raised.file = self.file
        if self._failed is None:
            return raised or Stopped("malformed")
        if isinstance(raised, Raised):
            self._failed.__cause__ = raised
        return self._failed

    def _called_back(self, value: Any) -> None:
        """Call the function that the code was given."""
        try:
            number, args, kwargs = value
            function = self._callbacks[number]
        except (TypeError, ValueError, IndexError):
            raise Stopped("malformed") from None
        answer = None
        if self._failed is None:
            try:
                answer = function(*args, **kwargs)
            except Exception as error:
                self._failed = error
        self._write(dumps((self._failed is None, answer), self._out))

    def _message(self) -> Any:
        head = self._bytes(HEAD.size)
        text, rest = HEAD.unpack(head)
        if text > MOST_JSON or rest > MOST_BYTES:
            raise Stopped("malformed")
        try:
            return loads(self._bytes(text), self._bytes(rest), self._into)
        except (Malformed, AttributeError):
            raise Stopped("malformed") from None

    def _bytes(self, count: int) -> bytes:
        while len(self._heard) < count:
            left = max(self.deadline - time.monotonic(), 0.0)
            ends = [self.pipes.answers, self.pipes.status]
            ready, _, _ = select.select(ends, [], [], left)
            if self.pipes.answers in ready:
                piece = os.read(self.pipes.answers, 1 << 20)
                self._heard += piece
                if piece:
                    continue
            if not ready:
                raise Stopped("hung", frames=self._trace())
            self._end()
        found = bytes(self._heard[:count])
        del self._heard[:count]
        return found

    def _write(self, message: bytes) -> None:
        while message:
            left = max(self.deadline - time.monotonic(), 0.0)
            ends = [self.pipes.status]
            ready, free, _ = select.select(ends, [self.pipes.requests], [], left)
            if not ready and not free:
                raise Stopped("hung", frames=self._trace())
            if ready:
                self._end()
            try:
                message = message[os.write(self.pipes.requests, message[: 1 << 16]) :]
            except BrokenPipeError:
                self._end()

    def _end(self) -> NoReturn:
        """Say how the process ended."""
        how, _, code = self._status(GRACE).partition(" ")
        if how in ("time", "processor"):
            raise Stopped("hung", frames=self._trace())
        if how == "memory":
            raise Stopped("memory", frames=self._trace())
        if how == "signal":
            raise Stopped("crashed", _signal(int(code)), self._trace())
        raise Stopped("crashed", f"exit status {code or '?'}", self._trace())

    def _status(self, seconds: float) -> str:
        ready, _, _ = select.select([self.pipes.status], [], [], seconds)
        return os.read(self.pipes.status, 100).decode() if ready else ""

    def _trace(self) -> list[Frame]:
        last = _BEGINS.split(_text(self.traces))[-1]
        return [(file, int(line), text) for file, line, text in _IN_TRACE.findall(last)]


def _text(file: IO[bytes]) -> str:
    """What another process wrote to a file that both have open at one place."""
    return os.pread(file.fileno(), 16 << 20, 0).decode(errors="replace")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _raised(report: Any) -> Exception:
    """A reported exception; its fields are checked, like everything that comes back."""
    if not isinstance(report, dict):
        return Stopped("malformed")
    frames = report.get("frames")
    frames = [f for f in frames if isinstance(f, tuple) and [*map(type, f)] == [str, int, str]] \
        if isinstance(frames, list) else []  # fmt: skip
    mro = report.get("mro")
    names = [str(name) for name in mro] if isinstance(mro, list) else []
    kind, text, name = (str(report.get(key, "")) for key in ("kind", "text", "name"))
    return Raised(kind, text, frames, names, name)


def copy_of_this_process(root: Any, limits: Limits, classes: Mapping[str, type]) -> Process:
    """A fork of this process that offers an object which is here: a function of a notebook, say.

    It has everything that is here, so nothing in it is secret; its answers are parsed all the same.
    """
    codec = Codec(classes)
    printed, traces = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    pipes, ends, life, status = channels(printed, traces)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        pid = os.fork()
    if pid == 0:
        try:
            for end in (pipes.requests, pipes.answers, pipes.status, pipes.life):
                os.close(end)
            keep(lambda: serve(lambda: root, ends, limits, codec), limits, life, status)
        finally:
            os._exit(1)
    for end in (ends.requests, ends.answers, life, status):
        os.close(end)
    return Process(pipes, limits, codec, printed, traces, pid)


def channels(printed: IO[bytes], traces: IO[bytes]) -> tuple[Pipes, Ends, int, int]:
    """Pipes: this side's ends, the untrusted side's, and the keeper's `life` and `status`."""
    (ask, requests), (answers, reply) = os.pipe(), os.pipe()
    life, alive = os.pipe()
    status, said = os.pipe()
    own = Pipes(requests, answers, status, alive)
    return own, Ends(ask, reply, printed.fileno(), traces.fileno()), life, said
