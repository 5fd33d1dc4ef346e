"""Untrusted processes that have nothing of this one: no module of its own, no value, no file.

    with Fresh(preload=("IPython",)) as fresh:
        with fresh.start("package.module:begin", argument, limits, classes, hidden) as process:
            process.root(3)

A server is started once, with an environment of its own.  It imports torch and what is to be
preloaded, runs no untrusted code, and forks for each process.  That one is confined before it calls
`begin(argument)`, which runs the untrusted code and returns the root object.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import inductor_lab
from inductor_lab.debug.untrusted.confine import CannotConfine, Limits, confinable, confine
from inductor_lab.debug.untrusted.keeper import keep
from inductor_lab.debug.untrusted.processes import ASK, listen
from inductor_lab.debug.untrusted.remote import Process, channels
from inductor_lab.debug.untrusted.serve import Ends, serve
from inductor_lab.debug.untrusted.wire import Codec
from inductor_lab.stock.caches import use_own_folder

REQUEST = 1 << 16
CLOSES = 10.0
"""Seconds for the server to end by itself."""
MOST_FILES = 4
"""Files that a process can be given."""
PASSED = ("PATH", "LANG", "LC_ALL", "CXX", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONPATH",
          "CUDA_VISIBLE_DEVICES", ASK)  # fmt: skip
"""Variables of the environment that the processes get."""
_START = "import sys; from inductor_lab.debug.untrusted.fresh import main; main(sys.argv[1:])"


class Fresh:
    """Starts untrusted processes.  Raises CannotConfine where they could not be confined.

    folder    where each process has a folder of its own
    required  if not, processes that cannot be confined are started all the same
    more      further variables of their environment
    """

    def __init__(
        self, preload: Sequence[str] = (), folder: Path | None = None, required: bool = True,
        more: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        if required and not confinable():
            what = "untrusted code cannot be confined on this machine"
            raise CannotConfine(what, todo="use Linux 5.13 or later, with Landlock")
        self.required = required
        self.scratch = Path(tempfile.mkdtemp(prefix="inductor_lab-", dir=folder))
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs.fileno()), *preload],
            pass_fds=[theirs.fileno()], cwd=self.scratch,
            env=self._environment() | dict(more or {}),
        )  # fmt: skip
        theirs.close()

    def _environment(self) -> dict[str, str]:
        passed = {name: os.environ[name] for name in PASSED if name in os.environ}
        own = str(Path(inductor_lab.__file__).parent.parent)
        paths = [own, *filter(None, passed.get("PYTHONPATH", "").split(os.pathsep))]
        # the names of its folders: each process replaces them by its own
        path = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
        return passed | path | folders(self.scratch)

    def start(
        self, begin: str, argument: Any, limits: Limits, classes: str, hidden: Iterable[Path],
        readable: Iterable[Path] | None = None, devices: Iterable[Path] = (),
        files: Sequence[int] = (),
    ) -> Process:  # fmt: skip
        """A process that calls `begin(argument)`, both named and given as JSON; `classes` names the
        table of classes that may come back; `hidden`, `readable` and `devices` are those of
        `confine`.  It has copies of the open `files`, whose numbers are `argument["files"]`."""
        scratch = Path(tempfile.mkdtemp(dir=self.scratch))
        (scratch / "argument.json").write_text(json.dumps(argument), encoding="utf-8")
        printed, traces = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        pipes, ends, life, status = channels(printed, traces)
        asked = {"begin": begin, "limits": asdict(limits), "classes": classes,
                 "hidden": [str(path) for path in hidden], "scratch": str(scratch),
                 "required": self.required, "devices": [str(path) for path in devices],
                 "readable": None if readable is None else [*map(str, readable)]}  # fmt: skip
        theirs = [ends.requests, ends.answers, ends.printed, ends.traces, life, status, *files]
        socket.send_fds(self.socket, [json.dumps(asked).encode()], theirs)
        for end in (ends.requests, ends.answers, life, status):
            os.close(end)
        return Process(pipes, limits, Codec(_named(classes)), printed, traces, scratch=scratch)

    def close(self) -> None:
        """End the server, and remove what the processes wrote."""
        self.socket.close()
        try:
            self.server.wait(CLOSES)
        except subprocess.TimeoutExpired:  # a busy machine
            self.server.kill()
            self.server.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def __enter__(self) -> Fresh:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def folders(scratch: Path) -> dict[str, str]:
    """Variables that name the folders which a process writes to."""
    names = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "INDUCTOR_LAB_CACHE_DIR", "TRITON_CACHE_DIR",
             "TORCHINDUCTOR_CACHE_DIR", "IPYTHONDIR")  # fmt: skip
    return {name: str(scratch) for name in names}


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def main(arguments: Sequence[str]) -> None:
    """The server: forks for each request, until the other side closes."""
    asking = socket.socket(fileno=int(arguments[0]))
    for name in arguments[1:]:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
    while True:
        text, fds, _, _ = socket.recv_fds(asking, REQUEST, 6 + MOST_FILES)
        if not text:
            return
        if os.fork() == 0:
            try:
                asking.close()
                _keep(json.loads(text), fds)
            finally:
                os._exit(1)
        for end in fds:
            os.close(end)


def _keep(asked: dict[str, Any], fds: Sequence[int]) -> NoReturn:
    requests, answers, printed, traces, life, status, *files = fds
    limits, scratch = Limits(**asked["limits"]), Path(asked["scratch"])
    listening = listen(scratch / "keeper")

    def run() -> NoReturn:
        os.chdir(scratch)
        os.environ |= folders(scratch)
        if listening is not None:
            os.environ[ASK] = str(scratch / "keeper")
        tempfile.tempdir = None
        use_own_folder()
        argument = json.loads((scratch / "argument.json").read_text(encoding="utf-8"))
        if files:
            argument["files"] = files
        begin, codec = _named(asked["begin"]), Codec(_named(asked["classes"]))
        readable = asked["readable"]
        if asked["required"] or confinable():
            confine(map(Path, asked["hidden"]), scratch,
                    None if readable is None else [*map(Path, readable)],
                    [*map(Path, asked["devices"])])  # fmt: skip
        ends = Ends(requests, answers, printed, traces, tuple(files))
        serve(lambda: begin(argument), ends, limits, codec)

    keep(run, limits, life, status, listening)
