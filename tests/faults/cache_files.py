"""Every file of both caches is truncated, has bits flipped, or is replaced."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.faults import jobs
from tests.faults.child import attempt, caches
from tests.faults.outcome import DEFECT, OK, Tried
from tests.faults.plan import Plan


def flipped(where: float) -> Callable[[Path], None]:
    """Flips a bit at this part of a file, 0 to 1."""

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        if data:
            data[min(int(where * len(data)), len(data) - 1)] ^= 0x10
        path.write_bytes(data)

    return flip


def cut(where: float) -> Callable[[Path], None]:
    """Leaves this part of a file, 0 to 1."""
    return lambda path: path.write_bytes(path.read_bytes()[: int(where * path.stat().st_size)])  # type: ignore[func-returns-value]


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nothing")


DAMAGE: dict[str, list[Callable[[Path], None]]] = {
    "a bit is flipped": [flipped(n / 16) for n in range(17)],
    "it is cut": [cut(n / 4) for n in range(4)],
    "it is longer": [lambda path: path.write_bytes(path.read_bytes() + b"\0" * 100)],
    "it is missing": [Path.unlink],
    "it is a folder": [folder],
    "it is a link to nothing": [dangling],
}


def tries(plan: Plan) -> Iterator[Tried]:
    whole = plan.place("whole")
    made, said = attempt(caches(whole), jobs.both)
    yield Tried("a cache is filled", made, said)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    cases = [(file, what, damage) for file in files for what, several in DAMAGE.items()
             for damage in several]  # fmt: skip
    for number, (file, what, damage) in enumerate(plan.some(cases, 6)):
        here = plan.folder / f"damaged{number}"
        shutil.copytree(whole, here)
        damage(here / file)
        found, said = attempt(caches(here), jobs.both)
        yield Tried(f"{kind_of(file)}: {what}", found if found == OK else DEFECT, f"{file}: {said}")
        shutil.rmtree(here)


def kind_of(file: Path) -> str:
    """`kernel.so`, or the folder of a file whose name is a hash."""
    own = "inductor_lab" in file.parts
    return f"ours, {file.name}" if own else "torch's"
