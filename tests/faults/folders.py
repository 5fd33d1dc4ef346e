"""Cache folders that belong to another user, are writable by others, full, read-only or missing."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import pickle
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inductor_lab.compiler.accelerate.warm_graphs import NAME_LENGTH
from inductor_lab.compiler.runtime.cache.kernel_cache import CHECKSUM, checksum
from tests.faults import jobs
from tests.faults.child import Setting, attempt, caches
from tests.faults.outcome import CLEAR, DEFECT, OK, SKIPPED, Tried
from tests.faults.plan import Plan

SOMEBODY = 12345
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def tries(plan: Plan) -> Iterator[Tried]:
    yield from odd_names(plan)
    yield from not_to_be_trusted(plan)
    yield from not_there(plan)
    yield from full(plan)


def works(what: str, setting: Setting, refusal: bool = False) -> Tried:
    """Both jobs work, or (`refusal`) raise a clear error, or torch itself cannot work."""
    found, said = attempt(setting, jobs.both)
    if found == DEFECT and attempt(setting, jobs.without_us)[0] != OK:
        return Tried(what, CLEAR, f"torch fails with every backend: {said}")
    return Tried(what, found if found == OK or refusal else DEFECT, said)


NAMES = ("with spaces", "quote's \"and\" more", "ünïcødé 编译器", "$HOME `id` $(id)", "-O0",
         "a%sb{}", "semi;colon&and", "new\nline", "*?[a]", "back\\slash", "#hash")  # fmt: skip


def odd_names(plan: Plan) -> Iterator[Tried]:
    for number, name in enumerate(NAMES if not plan.short else NAMES[1:4]):
        inside = plan.place(f"odd{number}") / name
        yield works("a cache whose path has odd characters", caches(inside))


def not_to_be_trusted(plan: Plan) -> Iterator[Tried]:
    """Nothing is loaded from folders that others can write to: planted code does not run."""
    filled = plan.place("filled")
    yield Tried("a cache is filled", *attempt(caches(filled), jobs.both))
    for number, (what, spoil) in enumerate(SPOILED.items()):
        if spoil is foreign and not IS_ROOT:
            yield Tried(what, SKIPPED, "only root can give a folder away")
            continue
        for cache in ("inductor_lab", "torch") if number < plan.times(len(SPOILED), 3) else ():
            folder = plan.folder / f"spoiled {number} {cache}"
            shutil.copytree(filled, folder)
            marker = plan.folder / f"planted {number} {cache}"
            planted(folder, cache, marker)
            spoil(folder / cache)
            found = works(what, caches(folder), refusal=True)
            ran = marker.exists()
            if spoil is as_it_was:  # a control: this entry is trusted, so it runs
                detail = f"what was planted can run ({cache}; {found.outcome}: {found.detail})"
                yield Tried(what, OK if ran else DEFECT, detail)
            else:
                yield replace(found, outcome=DEFECT, detail="it ran") if ran else found


def planted(folder: Path, cache: str, marker: Path) -> None:
    """Replace every cache entry by one that creates a file `marker` when it is loaded."""
    if cache == "torch":
        data = pickle.dumps(Planted(str(marker)))
        name = base64.b32encode(hashlib.sha256(data).digest()).decode().lower()[:NAME_LENGTH]
        for path in [path for path in (folder / cache).rglob("*") if path.is_file()]:
            path.unlink()
            path.with_name(name).write_bytes(data)
        return
    for source in (folder / cache).rglob("kernel.cpp"):
        code = source.read_text() + "\n#include <cstdlib>\n" + (
            f"__attribute__((constructor)) void planted() {{ system(\"touch '{marker}'\"); }}\n"
        )
        source.write_text(code)
        command = ["g++", "-std=c++17", "-shared", "-fPIC", "-fopenmp", "-march=native"]
        subprocess.run([*command, str(source), "-o", str(source.with_name("kernel.so"))],
                       check=True, capture_output=True)  # fmt: skip
        (source.parent / CHECKSUM).write_text(checksum(source.parent))


@dataclass
class Planted:
    marker: str

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.marker}'",)


def as_it_was(place: Path) -> None:
    pass


def foreign(place: Path) -> None:
    os.chown(place, SOMEBODY, SOMEBODY)


def open_to_group(place: Path) -> None:
    place.chmod(0o770)


def open_to_all(place: Path) -> None:
    place.chmod(0o777)


def linked(place: Path) -> None:
    elsewhere = place.with_name("elsewhere")
    place.rename(elsewhere)
    elsewhere.chmod(0o777)
    place.symlink_to(elsewhere)


def linked_to_nothing(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to(place.with_name("nothing"))


def a_file(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.write_text("no folder")


def in_an_open_folder(place: Path) -> None:
    place.parent.chmod(0o777)


SPOILED: dict[str, Callable[[Path], None]] = {
    "the folder is the user's own": as_it_was,
    "the folder belongs to somebody else": foreign,
    "the group may write to the folder": open_to_group,
    "everybody may write to the folder": open_to_all,
    "everybody may write to the folder around it": in_an_open_folder,
    "the folder is a link to another, open to all": linked,
    "the folder is a link to nothing": linked_to_nothing,
    "the folder is a file": a_file,
}


def not_there(plan: Plan) -> Iterator[Tried]:
    """No home folder, a home folder that is missing or read-only, no temporary folder."""
    nothing: dict[str, str | None] = {
        "INDUCTOR_LAB_CACHE_DIR": None, "TORCHINDUCTOR_CACHE_DIR": None, "XDG_CACHE_HOME": None,
    }  # fmt: skip
    home, folder = plan.place("home"), plan.place("work")
    kinds = {
        "HOME does not exist": Setting({**nothing, "HOME": str(home / "nothing")}),
        "HOME is not set": Setting({**nothing, "HOME": None}),
        "HOME is a file": Setting({**nothing, "HOME": str(_written(folder / "file"))}),
        "TMPDIR does not exist": caches(folder, TMPDIR=str(folder / "none")),
    }
    if IS_ROOT:
        closed = plan.place("closed")
        closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
        kinds["HOME may only be read"] = Setting({**nothing, "HOME": str(closed)}, user=SOMEBODY)
    for what, setting in list(kinds.items())[: plan.times(len(kinds), 1)]:
        yield works(what, setting, refusal=True)


def _written(path: Path) -> Path:
    path.write_text("")
    return path


MOUNTS = {
    "a full disk": "size=64k",
    "no inodes left": "size=64m,nr_inodes=8",
    "a disk that fills up": "size=300k",
    "a disk that may only be read": "size=1m,ro",
}


def full(plan: Plan) -> Iterator[Tried]:
    for number, (what, options) in enumerate(MOUNTS.items()):
        if plan.short and number:
            return
        with _mounted(plan.place(f"mount{number}"), options) as place:
            if place is None:
                yield Tried(what, SKIPPED, "mounting needs root")
                continue
            here = {name: str(place) for name in ("INDUCTOR_LAB_CACHE_DIR", "TMPDIR")}
            setting = Setting({**here, "TORCHINDUCTOR_CACHE_DIR": str(place / "torch")})
            yield works(what, setting, refusal=True)


@contextlib.contextmanager
def _mounted(place: Path, options: str) -> Iterator[Path | None]:
    """A file system in memory; None if mounting is not permitted."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, check=False) if IS_ROOT else None
    if done is None or done.returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)
