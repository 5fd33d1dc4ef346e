"""Faults that `python -m tests.mutations` puts into the compiler, one at a time."""

from __future__ import annotations

import ast
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests import mutations
from tests.runner.parts import ROOT


@pytest.mark.parametrize("before, after", [
    ("a < b", "a <= b"), ("a == b", "a != b"), ("a is None", "a is not None"), ("a + b", "a - b"),
    ("a // b", "a * b"), ("a and b", "a or b"), ("not a", "a"), ("True", "False"), ("7", "8"),
    ("torch.float32", "torch.float64"), ("min(a, b)", "max(a, b)"),
])  # fmt: skip
def test_each_kind(before: str, after: str) -> None:
    found = mutations.changed(ast.parse(before, mode="eval").body)
    assert found is not None and ast.unparse(found[0]) == after
    assert found[1] == f"{before} → {after}"


@pytest.mark.parametrize("before", ["a < b < c", "'text'", "1.5", "a @ b", "torch.sin", "f(a)"])
def test_other_code_is_not_mutated(before: str) -> None:
    assert mutations.changed(ast.parse(before, mode="eval").body) is None


def test_folders_exist() -> None:
    folders = [*mutations.SOURCES.values(), *mutations.TESTS]
    assert [name for name in folders if not (ROOT / name).is_dir()] == []


@pytest.mark.parametrize("tests", mutations.SOURCES)
def test_the_code_of_one_function_differs(tests: str) -> None:
    for mutation in islice(mutations.mutations(tests), 3):
        code = mutations.mutated_code(mutation)
        assert code.co_name == mutation.function.rpartition(".")[2]
        assert mutation.line >= code.co_firstlineno


TESTS = """
import os
def test_right(): pass
def test_wrong(): assert False
def test_crashing(): os.abort()
"""
IN_FORKS = """
import sys, pytest
from tests.mutations import in_a_fork

class Each:
    def pytest_runtestloop(self, session):
        found = [in_a_fork(None, [item], 60) for item in session.items]
        print(*(f"{name.rpartition('::')[2]} {said}" for name, said in found), sep="\\n")
        return True

pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]], plugins=[Each()])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_failure_a_crash_and_none(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-c", IN_FORKS, str(file)], cwd=ROOT, capture_output=True, text=True
    )
    said = [line.strip() for line in done.stdout.splitlines()[:3]]
    assert said == ["all", "test_wrong fails", "test_crashing crashes"], done.stdout + done.stderr


def test_the_table_counts_failing_tests() -> None:
    found = [
        {"tests": "tests/ir", "by": by, "mutation": by}
        for by in ("test", "test", "check", "", "not applied")
    ]
    text = mutations.table(found).splitlines()
    assert text[1].split() == ["tests/ir", "4", "2", "1", "1"]
    assert text[2].split() == ["together", "4", "2", "1", "1"]
