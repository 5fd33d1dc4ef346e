"""The compiler stays small enough to be read: files, functions, and the whole."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES, FUNCTION_LINES, COMPILER_LINES = 500, 60, 12_000

# Longer than that, with the reason.  Paths from the root; functions as "path:name".
LONGER: dict[str, str] = {}


def sources() -> list[Path]:
    folders = ("inductor_lab", "widgets", "benchmarks", "tests")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def length(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def too_long() -> dict[str, int]:
    found = {}
    for path in sources():
        if length(path) > FILE_LINES:
            found[name_of(path)] = length(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    found[f"{name_of(path)}:{node.name}"] = lines
    return found


def test_files_and_functions_are_short() -> None:
    found = too_long()
    assert {name: lines for name, lines in found.items() if name not in LONGER} == {}
    assert set(LONGER) <= set(found), "an exception that is no longer needed"
    assert all(LONGER.values()), "an exception needs its reason"


def test_the_whole_compiler_is_small(capsys: pytest.CaptureFixture[str]) -> None:
    paths = sorted((ROOT / "inductor_lab").rglob("*.py"))
    by_folder: dict[str, int] = {}
    for path in paths:
        inside = path.relative_to(ROOT / "inductor_lab").parts
        folder = inside[0] if len(inside) > 1 else "."
        by_folder[folder] = by_folder.get(folder, 0) + length(path)
    total = sum(by_folder.values())
    with capsys.disabled():
        print(f"\ninductor_lab: {total} lines in {len(paths)} files: {by_folder}")
    assert total <= COMPILER_LINES
