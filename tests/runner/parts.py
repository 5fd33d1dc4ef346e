"""The named parts of `make check`: which tests are in which part, and what `make test` leaves out.

`left_out.toml` is the only table that decides what `make test` runs.  A test that it does not
name is in `make test`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = Path(__file__).with_name("left_out.toml")


@dataclass(frozen=True)
class Part:
    """Tests that run together.

    `paths`: their files and folders.  `also`: files and folders that these tests read without an
    import.  `minutes`: how long the tests take that `make test` leaves out, on two cores.
    `by_file`: one process runs all tests of a file, in order, because each test continues where the
    one before it ended, or because the file's fixture is expensive.  `twice`: files with a failed
    test run once more, alone, because JupyterLab can lose a key or a connection on a busy machine.
    """

    name: str
    paths: tuple[str, ...]
    also: tuple[str, ...] = ()
    minutes: float = 1.0
    by_file: bool = False
    twice: bool = False

    def holds(self, file: str) -> bool:
        return is_under(file, self.paths)

    def reads(self, file: str) -> bool:
        return is_under(file, self.also)


def is_under(file: str, paths: Iterable[str]) -> bool:
    return any(file == path or file.startswith(f"{path}/") for path in paths)


def folders(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/{name}" for name in names)


PARTS = (
    Part("phases", folders("capture", "autograd", "rewrite", "ir", "lower", "schedule")),
    Part("codegen", folders("codegen"), minutes=7),
    Part("runtime", folders("runtime", "accelerate")),
    Part("programs", folders("end_to_end", "models", "programs"), minutes=7),
    Part("semantics", folders("semantics"), minutes=6),
    Part("operators", folders("opinfo")),
    Part("random", folders("fuzz"), minutes=4),
    Part("faults", folders("faults"), minutes=2),
    Part("debug", folders("debug", "contracts", "judge"), minutes=8),
    Part("measure", folders("bench", "stock"), also=("benchmarks",), minutes=5),
    Part("distributed", folders("distributed")),
    Part("gpu", folders("gpu"), minutes=2),
    Part("course", folders("course"), also=("notebooks/labs", "notebooks/tutorials"), minutes=5),
    Part("mini", folders("mini"), also=("docs/mini.md",), minutes=3),
    Part("mcp", folders("mcp"), also=("docs/mcp.md", "docs/glossary.md"), minutes=6),
    Part("notebooks", folders("notebooks"), also=("notebooks",), minutes=3),
    Part("views", folders("widgets"), also=("widgets",), minutes=2),
    Part("browser", folders("browser"), also=("javascript", "widgets"), minutes=12, by_file=True,
         twice=True),
    Part(
        "package",
        folders("project", "wheel", "javascript"),
        also=("pyproject.toml", "MANIFEST.in", "Makefile", "conda", "docs", "deploy", "javascript"),
        minutes=3,
    ),
    Part(
        "surface",
        (*folders("saved"), *(f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py"))),
    ),
)


def named(names: Iterable[str]) -> list[Part]:
    """The parts with these names, in the order of the table; all of them for no name."""
    wanted = set(names)
    unknown = wanted - {part.name for part in PARTS}
    if unknown:
        known = ", ".join(part.name for part in PARTS)
        raise SystemExit(f"no part is named {', '.join(sorted(unknown))}; the parts are {known}")
    return [part for part in PARTS if not wanted or part.name in wanted]


@dataclass(frozen=True)
class LeftOut:
    """What `make test` leaves to `make check`.

    `whole`: folders, files and test functions.  `one_in`: of the cases of a parametrized test,
    the first of every so many is in `make test`.
    """

    whole: frozenset[str]
    one_in: dict[str, int]

    def split(self, names: Iterable[str]) -> tuple[set[str], set[str]]:
        """Node ids that `make test` runs, and those that it leaves out."""
        quick, rest = set(), set()
        seen: dict[str, int] = {}
        for name in names:
            function = name.partition("[")[0]
            place = seen[function] = seen.get(function, -1) + 1
            out = self.is_whole(function) or place % self.one_in.get(function, 1) != 0
            (rest if out else quick).add(name)
        return quick, rest

    def is_whole(self, function: str) -> bool:
        file, _, _ = function.partition("::")
        return not self.whole.isdisjoint([function, file, *map(str, Path(file).parents)])


def left_out() -> LeftOut:
    table = tomllib.loads(LEFT_OUT.read_text(encoding="utf-8"))
    return LeftOut(frozenset(table["whole"]), table["one_in"])
