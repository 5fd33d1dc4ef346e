"""One command, from the side of the server: a thread waits for its process.

    job = Job(fresh, folder, limits, request)
    job.run()     in a thread: the document, or the document of an error
    job.doing     what it does now
    job.stop()    from another thread: end the process
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductor_lab.compiler.base.display import bytes_text
from inductor_lab.compiler.base.errors import LabError
from inductor_lab.debug.mcp.documents import Malformed, error_document, read
from inductor_lab.debug.mcp.folder import Folder
from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.fresh import Fresh
from inductor_lab.debug.untrusted.remote import Frame, Process, Raised, Stopped

BEGIN = "inductor_lab.debug.mcp.worker:begin"
CLASSES = "inductor_lab.debug.mcp.worker:CLASSES"
MOST_TEXT = 200
"""Characters of a progress message."""


@dataclass(frozen=True)
class Request:
    """A command of `inductor-lab` to run.

    text     becomes a file, whose path is the last argument
    outputs  options that take the path of a file or folder to write, with its name
    """

    arguments: tuple[str, ...]
    text: str | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)


class Job:
    """Runs a request in a new confined process."""

    def __init__(
        self, fresh: Callable[[], Fresh], folder: Folder, limits: Limits, request: Request
    ) -> None:
        self.fresh, self.folder, self.limits, self.request = fresh, folder, limits, request
        self.doing = "starting a process"
        self._ended = False
        self._process: Process | None = None
        self._lock = threading.Lock()

    def run(self) -> dict[str, Any]:
        """The document that the command prints, or the document of an error."""
        try:
            argument = {"folder": str(self.folder.root)}
            process = self.fresh().start(
                BEGIN, argument, self.limits, CLASSES, (), self.folder.readable()
            )
        except LabError as error:  # this machine cannot confine a process
            return error_document(type(error).__name__, str(error))
        with process:
            try:
                return self._document(process)
            except Raised as raised:
                kind = "BadArguments" if raised.kind == "SystemExit" else raised.kind
                words = process.said.strip().rpartition("\n")[2]  # of the parser of arguments
                return error_document(kind, words if raised.kind == "SystemExit" else str(raised))
            except Stopped as stopped:
                return self._how_it_stopped(stopped)
            except LabError as error:
                return error_document(type(error).__name__, str(error))

    def _document(self, process: Process) -> dict[str, Any]:
        with self._lock:
            if self._ended:
                raise Stopped("crashed")
            self._process = process
        try:
            process.begin()
            request = self.request
            answer = process.root(
                [*request.arguments], request.text, dict(request.outputs), self._tell
            )
        finally:
            with self._lock:  # from here on this thread closes the process
                self._process = None
        if not isinstance(answer, str):
            raise Malformed("the process sent no document")
        return read(answer)

    def stop(self) -> None:
        """End the process; `run` returns soon."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                self._process.stop()

    def _tell(self, text: Any) -> None:
        self.doing = str(text)[:MOST_TEXT]

    def _how_it_stopped(self, stopped: Stopped) -> dict[str, Any]:
        """An error that says why there is no answer, and where the user's code was."""
        if self._ended:
            return error_document("Cancelled", "the request was cancelled")
        kind, what, todo = {
            "hung": ("TimeLimit", f"it still ran after {self.limits.seconds:.0f} s",
                     "a larger limit: inductor-lab mcp --limit SECONDS"),
            "memory": ("MemoryLimit", f"it used more than {bytes_text(self.limits.memory)}",
                       "a larger limit: inductor-lab mcp --memory GB"),
            "crashed": ("Crashed", f"its process ended: {stopped.kind}", ""),
            "malformed": ("Malformed", "its process sent bytes that are not a document", ""),
        }[stopped.how]  # fmt: skip
        lines = [what, *self._place(stopped.frames), *([todo] if todo else [])]
        return error_document(kind, "\n  ".join(lines))

    def _place(self, frames: list[Frame]) -> list[str]:
        """The innermost line of the user's files."""
        for file, line, text in frames:
            if (self.folder.root / file).is_relative_to(self.folder.root):
                return [f"{text}        {Path(file).name}, line {line}"]
        return []
