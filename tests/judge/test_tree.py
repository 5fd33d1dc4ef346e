"""The processes of a candidate are stopped while it is not called."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_lab.debug.judge.serve_candidate import CLASSES
from inductor_lab.debug.judge.tree import Tree
from inductor_lab.debug.untrusted.confine import Limits
from inductor_lab.debug.untrusted.remote import copy_of_this_process

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
COUNTED = 8


def with_thread(path: Path) -> Callable[[], int]:
    """Starts a thread that appends to a file; returns its size."""

    def counts() -> None:
        while True:
            with path.open("ab") as file:
                file.write(b"x")
            time.sleep(0.001)

    def root() -> int:
        threading.Thread(target=counts, daemon=True).start()
        return path.stat().st_size if path.exists() else 0

    return root


def with_child(path: Path) -> Callable[[], int]:
    """The same in a process in a new session."""
    start = with_thread(path)

    def root() -> int:
        if os.fork() == 0:
            os.setsid()
            start()
            time.sleep(60)
            os._exit(0)
        return 0

    return root


@pytest.mark.parametrize("made", [with_thread, with_child])
def test_what_a_call_leaves_is_stopped(made: Callable[[Path], Callable], tmp_path: Path) -> None:
    path = tmp_path / "count"
    with copy_of_this_process(made(path), Limits(60.0), CLASSES) as process:
        process.begin()
        process.root()
        tree = Tree(process.keeper)
        while not path.exists() or path.stat().st_size < COUNTED:
            time.sleep(0.01)
        tree.stop()
        stopped = path.stat().st_size
        time.sleep(0.3)
        assert path.stat().st_size == stopped
        tree.resume()
        while path.stat().st_size == stopped:
            time.sleep(0.01)
        assert tree.seconds() > 0
