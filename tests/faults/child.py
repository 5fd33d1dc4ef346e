"""Run a job in a separate process with settings of that process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.outcome import DEFECT, Tried, judged
from tests.processes import Clock, Lost, messages, server

LIMIT = 120.0
"""Seconds after which a job counts as hanging."""


@dataclass(frozen=True)
class Setting:
    """Settings of a process: environment variables (None: unset), resource limits by name
    (`"RLIMIT_NOFILE"`), its user, its folder."""

    environment: Mapping[str, str | None] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    user: int | None = None
    folder: Path | None = None

    def apply(self) -> None:
        """Apply the settings in the new process."""
        for name, value in self.environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        if self.folder is not None:
            os.chdir(self.folder)
        if self.limits:
            import resource

            for name, limit in self.limits.items():
                kind = getattr(resource, name)
                resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
        if self.user is not None:
            os.setgroups([])
            os.setgid(self.user)
            os.setuid(self.user)


def caches(folder: Path, **more: str | None) -> Setting:
    """Both caches, and the temporary folder, below `folder`."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    places = {
        "INDUCTOR_LAB_CACHE_DIR": str(folder),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch"),
        "TMPDIR": str(folder / "tmp"),
    }
    return Setting({**places, **more})


def attempt(setting: Setting, job: Callable[..., Any], *arguments: Any) -> tuple[str, str]:
    """(outcome, detail) of a job in a separate process."""
    said = messages(server_context(), _perform, (setting, job, arguments), LIMIT, Clock())
    for message in said:
        if isinstance(message, Lost):
            return DEFECT, f"{message.how}: {message.why}"
        return message
    return DEFECT, "it said nothing"


def batch(
    setting: Setting, job: Callable[..., Iterator[Tried]], *arguments: Any
) -> Iterator[Tried]:
    """The attempts that a job yields in a separate process, sent one by one."""
    work = (setting, job, arguments)
    for message in messages(server_context(), _yield_all, work, LIMIT, Clock()):
        if isinstance(message, Lost):
            message = Tried("the process itself", DEFECT, f"{message.how}: {message.why}")
        yield message


def _yield_all(send: Any, setting: Setting, job: Callable[..., Any], arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    setting.apply()
    for each in job(*arguments):
        send(each)


def _perform(send: Any, setting: Setting, job: Callable[..., Any], arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    setting.apply()
    send(judged(job, *arguments))


def server_context() -> Any:
    """The multiprocessing context that forks warm processes."""
    return server("tests.faults.warm")
