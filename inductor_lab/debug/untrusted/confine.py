"""Limits of a process, and the files that it cannot reach.  Called in the process itself.

Limits hold everywhere: address space, processor time, size of files.  `confine` is Landlock, which
every Linux since 5.13 offers to every user: the process and its descendants read no hidden file,
write into one folder, open no connection, and neither look into other processes nor signal them.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from inductor_lab.compiler.base.errors import LabError

CREATE, ADD, RESTRICT = 444, 445, 446
"""System calls of Landlock; the numbers are the same on all machines."""
EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
TRUNCATE, IOCTL = 1 << 14, 1 << 15
OF_FILES = EXECUTE | WRITE | READ | TRUNCATE | IOCTL
NO_NEW_PRIVILEGES, DIE_WITH_PARENT, ADOPT_ORPHANS = 38, 1, 36
"""Of prctl(2)."""
_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full")


def gpu_devices() -> list[Path]:
    """The device files of NVIDIA GPUs, and of no other device."""
    return sorted([*Path("/dev").glob("nvidia*"), *Path("/dev/nvidia-caps").glob("*")])


@dataclass(frozen=True)
class Limits:
    """What a process may use.

    seconds  of the clock, for everything that it is asked
    start    seconds before that, to make the root object
    memory   bytes beyond what it begins with; its descendants together may have as much
    file     bytes of a file that it writes
    """

    seconds: float = 30.0
    start: float = 0.0
    memory: int = 4 << 30
    file: int = 256 << 20

    @property
    def whole(self) -> float:
        """Seconds from the beginning of the process to its end."""
        return self.start + self.seconds


def limit(limits: Limits) -> None:
    """Set the limits of this process, which no descendant can lift."""
    try:
        import resource
    except ImportError:  # Windows
        return
    seconds = int(limits.whole * 4) + 10  # of all its threads
    begins = _address_space()
    wanted = [
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits.file),
        (resource.RLIMIT_CORE, 0),
    ]
    if begins:
        wanted.append((resource.RLIMIT_AS, begins + limits.memory))
    for which, most in wanted:
        _, hard = resource.getrlimit(which)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))


def _address_space() -> int:
    """Bytes of this process's address space; 0 where it is unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def control(what: int, value: int) -> bool:
    """prctl(2) on this process; False where there is none."""
    call = getattr(ctypes.CDLL(None), "prctl", None) if os.name == "posix" else None
    return call is not None and call(what, ctypes.c_ulong(value), 0, 0, 0) == 0


class CannotConfine(LabError):
    """This machine cannot confine a process."""


def confinable() -> int:
    """The version of Landlock here; 0 where there is none."""
    if os.name != "posix" or not hasattr(ctypes.CDLL(None), "syscall"):
        return 0
    found = ctypes.CDLL(None).syscall(CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(int(found), 0)


def confine(
    hidden: Iterable[Path], scratch: Path, readable: Iterable[Path] | None = None,
    devices: Sequence[Path] = (),
) -> None:  # fmt: skip
    """From now on this process reads nothing below `hidden`, and writes only below `scratch`.

    If `readable` is given, it reads only what is below these files and folders.  It still lists
    folders everywhere, and imports and runs what it can read.  Other processes are hidden too.
    `devices` are the device files of GPUs that it can use.  Raises CannotConfine where there is no
    Landlock.
    """
    version = confinable()
    if not version:
        what = "untrusted code cannot be confined on this machine"
        raise CannotConfine(what, todo="use Linux 5.13 or later, with Landlock")
    rights = _BY_ABI.get(version, (1 << 16) - 1)
    network = 3 if version >= 4 else 0
    scoped = 3 if version >= 6 else 0
    rules = _create(rights, network, scoped, version)
    _allow(rules, Path("/"), LIST)
    if readable is None:
        others = {pid for pid in os.listdir("/proc") if pid.isdigit()} - {str(os.getpid())}
        unseen = {Path(os.path.realpath(each)) for each in hidden}
        readable = _all_but(unseen | {Path("/proc", pid) for pid in others}, Path("/"))
    for path in readable:
        _allow(rules, path, rights & (EXECUTE | READ))
    for device in (*map(Path, DEVICES), *devices):
        _allow(rules, device, rights & (READ | WRITE | IOCTL))
    if devices:  # CUDA does not start where it cannot write the names of its threads
        _allow(rules, Path("/proc", str(os.getpid()), "task"), rights & (READ | WRITE | TRUNCATE))
    _allow(rules, scratch, rights)
    control(NO_NEW_PRIVILEGES, 1)
    _system_call(RESTRICT, rules, ctypes.c_uint32(0))
    os.close(rules)


def _all_but(hidden: set[Path], folder: Path) -> Iterator[Path]:
    """Files and folders that together are all of a folder but what is hidden."""
    with os.scandir(folder) as entries:
        for entry in entries:
            path = folder / entry.name
            if path in hidden:
                continue
            if any(path in each.parents for each in hidden) and not entry.is_symlink():
                yield from _all_but(hidden, path)
            elif not entry.is_symlink():
                yield path


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64),
                ("scoped", ctypes.c_uint64))  # fmt: skip


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _create(rights: int, network: int, scoped: int, version: int) -> int:
    size = 8 if version < 4 else 16 if version < 6 else 24
    made = _Rules(rights, network, scoped)
    return _system_call(CREATE, ctypes.byref(made), ctypes.c_size_t(size), ctypes.c_uint32(0))


def _allow(rules: int, path: Path, rights: int) -> None:
    """Allow it for a file, or for everything below a folder; nothing where there is no file."""
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= OF_FILES
        if rights:
            beneath = _Beneath(rights, opened)
            _system_call(ADD, rules, 1, ctypes.byref(beneath), ctypes.c_uint32(0))
    finally:
        os.close(opened)


def _system_call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    found = int(libc.syscall(ctypes.c_long(number), *arguments))
    if found < 0:
        error = ctypes.get_errno()
        raise CannotConfine(f"Landlock refuses: {os.strerror(error)}")
    return found
