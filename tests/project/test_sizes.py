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
COMPILER_LINES = 22_150
"""Of code, without blank lines, comments and docstrings. The aim was 10,000; an interpreter for
every stage, a verifier, two printers of one tree, 300 lowered operators, scans, scatters, combos of
kernels (an optimizer's step), sizes that only the data tell, packed weights, and what random
programs found take the rest; checks of what comes from outside (numbers, storage, caches that
others may write to, tables that a user changes), and what eager does, took 1,500; blocks, tiles,
lanes and parts of C++ kernels as trees, made by passes of a file each, 600; kernels under torch's
profiler, and profiles asked for in a cell, 60; a check of every read and write of a kernel, 150;
the user's names of inputs, and the line that calls a module of torch's, 30; the ways into the
debugging tools, and host programs as files, 90; the text, the verifier and the interpreter of loop
trees 600; masks of attention, prepared launches, parts of rows and blocks for GPUs 450; a schedule
and a partitioner of the user's, verified, 120; CUDA graphs, and kernels of GPUs that are compiled
in threads, 250; matrices padded for a GPU's library, 80; a torch that lacks some of its private
names 125; collectives that overlap work, and what ranks of a process group tell one another, the
last 240; arguments of FX nodes asked by what they are, 30; integers beyond
64 bits, and decimals, 40; checks of what is computed in part, 80; kernels of ours in
Triton's folder, 30. 1,320 lines that only ask a
compilation again, show its machine code, write it to a file, say what a machine has,
or begin from a cell or the command line were counted here before; they are no part of what
compiles, and no phase may import them (test_layering.py)."""
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
