"""Files and functions stay small enough to be read."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE_LINES, FUNCTION_LINES = 500, 60

# Longer than that, with the reason.  Paths from the root; functions as "path:name".
LONGER: dict[str, str] = {}


def sources() -> list[Path]:
    folders = ("inductor_lab", "widgets", "benchmarks", "deploy", "tests")
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


def lines_of_code(path: Path) -> int:
    """Lines that hold code: no blank lines, no comments, no docstrings."""
    text = path.read_text(encoding="utf-8")
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*layout, tokenize.ENDMARKER):
            held.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            held -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(held)


def test_comments_and_docstrings_are_not_code(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('"""Doc\nstring."""\n\n# why\nx = (\n    1,  # one\n)\ny = """a\nb"""\n')
    assert lines_of_code(path) == 5
