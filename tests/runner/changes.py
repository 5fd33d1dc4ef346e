"""How near a change is to a part of the tests, by the imports of our files.

Nothing is imported: the sources are read.  An import counts wherever it is in a file.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.runner.parts import ROOT, Part

SOURCES = ("inductor_lab", "widgets", "tests", "benchmarks", "deploy")
FAR = 99
"""The distance to a file that no import leads to."""


def git(*arguments: str) -> list[str]:
    """The lines that git prints; none without git or outside a repository."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files(since: str) -> list[str]:
    """Paths that differ from the commit `since`, and files that git does not know yet."""
    return [
        *git("diff", "--name-only", since),
        *git("ls-files", "--others", "--exclude-standard"),
    ]


def distance(part: Part, changed: list[str]) -> int:
    """0: a file of the part itself has changed; otherwise the shortest chain of imports to one."""
    if any(part.holds(name) or part.reads(name) for name in changed):
        return 0
    wanted, seen = set(changed), {name for name in imported_files() if part.holds(name)}
    level = seen
    for steps in range(1, FAR):
        level = {used for name in level for used in imported_files().get(name, ())} - seen
        if level & wanted:
            return steps
        if not level:
            break
        seen |= level
    return FAR


@cache
def imported_files() -> dict[str, set[str]]:
    """Each of our Python files with those that it imports."""
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    by_module = {module_name(path): path.relative_to(ROOT).as_posix() for path in paths}
    return {
        path.relative_to(ROOT).as_posix(): {
            by_module[name] for name in imports(path) if name in by_module
        }
        for path in paths
    }


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "widgets":  # the package inductor_lab.widgets once it is installed
        parts = ("inductor_lab", *parts)
    return ".".join(parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
