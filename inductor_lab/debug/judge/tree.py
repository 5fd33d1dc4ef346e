"""The processes of a candidate.  They are stopped while it is not called.

So a thread or a process that an earlier call has left cannot work on the next inputs before the
clock starts, and cannot slow down the reference.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field

from inductor_lab.debug.untrusted.processes import Seen, descendants

RESTING = "TtZX"
"""States of proc(5) in which a process does nothing."""
LOOKS = 200
"""So often it is tried to stop a tree in which processes start others."""


@dataclass
class Tree:
    """The processes below a process.

    keepers  whether the children of `top` are keepers, which are not stopped
    """

    top: int
    keepers: bool = False
    _stopped: list[int] = field(default_factory=list)

    def seen(self) -> list[Seen]:
        """All processes; none where there is no /proc."""
        return [one for one in descendants(self.top) if not self._is_keeper(one)]

    def seconds(self) -> float:
        """The processor time of all processes, also of those that have ended."""
        return sum(one.waited + (0.0 if self._is_keeper(one) else one.seconds)
                   for one in descendants(self.top))  # fmt: skip

    def stop(self) -> None:
        """Stop all processes; two looks in a row must find nothing that runs."""
        quiet = 0
        for _ in range(LOOKS):
            seen = self.seen()
            running = [one.pid for one in seen if one.state not in RESTING]
            quiet = 0 if running else quiet + 1
            if quiet == 2:
                self._stopped = [one.pid for one in seen]
                return
            _signal(running, signal.SIGSTOP)

    def resume(self) -> None:
        """Let the stopped processes go on."""
        _signal(self._stopped, signal.SIGCONT)

    def _is_keeper(self, one: Seen) -> bool:
        return self.keepers and one.parent == self.top


def _signal(pids: Iterable[int], which: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, which)
        except ProcessLookupError:
            continue
