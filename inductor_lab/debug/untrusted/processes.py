"""The processes of this machine: their parents, their memory and their processor time.

A confined process cannot read what /proc says about others.  Its keeper can: it answers on a socket
about its own descendants, and the environment of the confined process names the socket.

    confined process ── connects ──> keeper     reads /proc, sends one line for each descendant
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ASK = "INDUCTOR_LAB_KEEPER"
"""Variable of the environment: the path of the keeper's socket."""
PATIENCE = 5.0
"""Seconds for the keeper to answer."""


@dataclass(frozen=True)
class Seen:
    """One process.

    state    a letter of proc(5): `R` runs, `S` sleeps, `T` is stopped
    nbytes   memory that it has for itself alone, about
    seconds  processor time of all its threads, also of those that have ended
    waited   processor time of children that have ended
    """

    pid: int
    parent: int
    state: str
    nbytes: int
    seconds: float
    waited: float


def descendants(pid: int) -> list[Seen]:
    """Children of a process, their children, and so on; none where they are not known."""
    if path := os.environ.get(ASK):
        asked = {each.pid: each for each in _asked(path)}
        return [asked[one] for one in _below(pid, ((n, each.parent) for n, each in asked.items()))]
    found = (_look(one) for one in _below(pid, _parents()))
    return [each for each in found if each is not None]


def _below(pid: int, parents: Iterable[tuple[int, int]]) -> list[int]:
    children: dict[int, list[int]] = {}
    for child, parent in parents:
        children.setdefault(parent, []).append(child)
    found = list(children.get(pid, ()))
    for one in found:
        found += children.get(one, ())
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Every process with its parent."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in filter(str.isdigit, names):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                yield int(name), int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):  # it has ended
            continue


def _look(pid: int) -> Seen | None:
    """What /proc says about a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared, *_ = map(int, file.read().split())
        parent, state = int(fields[1]), fields[0].decode()
        nbytes = (resident - shared) * os.sysconf("SC_PAGE_SIZE")
        waited = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
        return Seen(pid, parent, state, nbytes, _seconds(pid), waited)
    except (OSError, IndexError, ValueError):
        return None


def _seconds(pid: int) -> float:
    """The processor time of a process, by its clock (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def listen(path: Path) -> socket.socket | None:
    """The keeper's socket at a path; None if there cannot be one."""
    if not Path("/proc/self/stat").exists():
        return None
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(path))
        made.listen()
        made.settimeout(PATIENCE)
    except OSError:
        made.close()
        return None
    return made


def answer(listening: socket.socket) -> None:
    """Answer one question: the descendants of this process."""
    lines = [f"{one.pid} {one.parent} {one.state} {one.nbytes} {one.seconds} {one.waited}"
             for one in descendants(os.getpid())]  # fmt: skip
    try:
        asking, _ = listening.accept()
        with asking:
            asking.settimeout(PATIENCE)
            asking.sendall("\n".join(lines).encode())
    except OSError:
        return


def _asked(path: str) -> list[Seen]:
    """What the keeper answers; nothing if it gives no answer."""
    text = bytearray()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(PATIENCE)
            asking.connect(path)
            while piece := asking.recv(1 << 16):
                text += piece
    except OSError:
        return []
    found = []
    for line in text.decode().splitlines():
        pid, parent, state, nbytes, seconds, waited = line.split()
        found.append(Seen(int(pid), int(parent), state, int(nbytes), float(seconds), float(waited)))
    return found
