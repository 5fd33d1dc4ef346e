"""Eight programs under several torches: `python -m tests.debug.diff_versions [RELEASE ...]`.

    python -m tests.debug.diff_versions --envs ~/envs 2.13.0@3.11 2.14.1@3.11

In the environment of each release (`tests/versions.py` makes them), the programs of `inductor-lab
demo` are compiled by our compiler and by stock and saved.  Then `lab.diff` compares the documents
of each release with those of the release before it, in this process.  The table of the first
stages that differ becomes a part of `docs/versions.md`.  The exit code is 1 if a program was not
saved, or a comparison fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch

import inductor_lab as lab
from inductor_lab.bench.demo.programs import PROGRAMS
from inductor_lab.debug.diff.run_diff import Change
from tests.versions import FOLDER, PAGE, RELEASES, ROOT, Refused, environment, split

COMPILERS = ("inductor_lab", "stock")
BEGIN, END = "<!-- begin: python -m tests.debug.diff_versions -->", "<!-- end of differences -->"
NEWEST = tuple({split(release)[0]: release for release in reversed(RELEASES)}.values())[::-1]
"""One environment for each version of torch."""


def save_programs(folder: Path, names: Sequence[str]) -> None:
    """Compile the programs here, and save what is not saved yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        if names and program.name not in names:
            continue
        function, arguments = program.make()
        for compiler in COMPILERS:
            path = document(folder, program.name, compiler)
            if not path.exists():
                torch.compiler.reset()
                lab.inspect(function, *arguments, compiler=compiler).save(path)
                print(path, flush=True)


def document(folder: Path, program: str, compiler: str) -> Path:
    return folder / f"{program}.{compiler}.lab.json"


def saved(envs: Path, release: str, names: Sequence[str]) -> Path:
    """The folder with the documents of a release; raises Refused."""
    version, python = split(release)
    folder = envs / "documents" / release
    here = environment(envs / f"{version}-py{python}", version, python)
    command = [str(here), "-m", "tests.debug.diff_versions", "--save", str(folder), *names]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        print(f"{release}: a program was not saved", file=sys.stderr)
    return folder


def first_stage(old: Path, new: Path) -> tuple[str, str]:
    """The first stage that differs, and the whole text; the stage is `fails: ...` for an error."""
    try:
        found = lab.diff(old, new)
    except Exception as error:
        return f"fails: {type(error).__name__}", str(error)
    stages = list(dict.fromkeys(", ".join(_stages(change)) for change in found.changes))
    alone = [f"only in one: {name}" for name in (*found.only_old, *found.only_new)]
    return ", ".join(stages + alone) or "equal", str(found)


def _stages(change: Change) -> tuple[str, ...]:
    """The first stage, and the next one after guards: a version may guard library code too."""
    return (change.stage, *(change.consequences[:1] if change.stage == "guards" else ()))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.debug.diff_versions",
                                     description=__doc__)  # fmt: skip
    parser.add_argument("given", nargs="*", metavar="RELEASE", help=f"default: {NEWEST}")
    parser.add_argument("--envs", type=Path, default=FOLDER, help="the folder of environments")
    parser.add_argument("--save", type=Path, metavar="FOLDER",
                        help="only save the given programs, compiled by this process")
    options = parser.parse_args(arguments)
    if options.save:
        save_programs(options.save, options.given)
        return 0
    folders = {}
    for release in options.given or NEWEST:
        try:
            folders[release] = saved(options.envs.absolute(), release, ())
        except Refused as problem:
            print(f"{release}: {problem}", file=sys.stderr)
    text, fails = table(folders)
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    print(text)
    return int(fails)


def table(folders: dict[str, Path]) -> tuple[str, bool]:
    """A line for each program and compiler, and whether a comparison fails."""
    pairs = list(pairwise(folders))
    lines = ["| program | compiler | " + " | ".join(
        f"torch {split(old)[0]} and {split(new)[0]}" for old, new in pairs) + " |",
        "|---|---|" + "---|" * len(pairs)]  # fmt: skip
    fails = False
    for program in PROGRAMS:
        for compiler in COMPILERS:
            cells = []
            for old, new in pairs:
                paths = [document(folders[each], program.name, compiler) for each in (old, new)]
                cell, text = first_stage(*paths)
                paths[1].with_suffix(".diff").write_text(text, encoding="utf-8")
                fails |= cell.startswith("fails")
                cells.append(cell)
            lines.append(f"| {program.name} | {compiler} | {' | '.join(cells)} |")
    return "\n".join(lines), fails


if __name__ == "__main__":
    sys.exit(main())
