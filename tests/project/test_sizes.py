"""The compiler stays small enough to be read: files, functions, and the whole."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES, FUNCTION_LINES = 500, 60
COMPILER_LINES = 26_449
"""Of code, without blank lines, comments and docstrings; 2,700 of them are imports, 3,000 the heads
of functions.  The core that docs/reading.md leads through has 8,000.  The rest: operators beyond
the common ones, Triton, the passes that make C++ fast, an interpreter and a verifier for every
stage, accelerators, what a user may change at run time, numbers from Python, caches that others
may write to, process groups, CUDA graphs, rows that programs of a GPU share, numbers that must
fit, Triton kernels that other processes compile, blocks that are measured, captures that no search
for garbage slows, attention with functions of the user's in its midst (1,140, of which a CPU's
210), sums that share a kernel with the rows that they sum up (270), short rows and products of
tiny matrices in vector lanes (230), dtypes and numbers that are refused as in eager mode (80),
complex products as loops (50), images of a training step laid out, norms of channels and of groups
read once on a GPU (130), peaks that combos may not raise (30), sums of short rows in steps and the
ends of rows in registers (190), writes of training (20), decompositions that are copied (120),
roundings of 16 bits as in eager mode (60), loops cut where masks change, windows under conditions
and rows of pairs (140), attention with a mask on a GPU (95), places in storages (30), dropout that
drops nothing (20), exact means of equal numbers (12), products of 16 bits
widened (20), definitions that are looked up once (7), ranks that are about to end (5), libraries of
a GPU that begin meanwhile (65), machine code that another process made (25), graphs that are edited
(4), pieces of pieces (3), loops that GCC unrolls for ever (2).  It grows only for a capability,
which takes a number here.

What only asks a compilation again, shows it, saves it or begins from a cell or the command line is
no part of what compiles, and no phase may import it (test_layering.py)."""
NOT_THE_COMPILER = {
    *("bench", "course", "debug", "demo", "distributed", "notebook", "saved", "stock"),  # folders
    *("cli", "doctor", "user_file"),  # files at the top: the command `inductor-lab`
}

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


def test_the_whole_compiler_is_small(capsys: pytest.CaptureFixture[str]) -> None:
    by_folder: Counter[str] = Counter()
    total = 0
    for path in (ROOT / "inductor_lab").rglob("*.py"):
        inside = path.relative_to(ROOT / "inductor_lab").parts
        folder = inside[0] if len(inside) > 1 else "."
        by_folder[path.stem if path.stem in NOT_THE_COMPILER else folder] += lines_of_code(path)
        total += length(path)
    code = sum(lines for folder, lines in by_folder.items() if folder not in NOT_THE_COMPILER)
    with capsys.disabled():
        print(f"\ninductor_lab: {code} lines of code ({total} with text): {dict(by_folder)}")
    assert code <= COMPILER_LINES


def test_comments_and_docstrings_are_not_code(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('"""Doc\nstring."""\n\n# why\nx = (\n    1,  # one\n)\ny = """a\nb"""\n')
    assert lines_of_code(path) == 5
