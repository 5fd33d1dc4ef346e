"""The core is what a minimal compile loads; docs/reading.md lists it."""

from __future__ import annotations

import subprocess
import sys

from tests.project.core import PAGE, REFUSED, ROOT, listed, page


def test_a_minimal_compile_loads_only_the_core() -> None:
    """A new process refuses every import that the core does not need."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.project.core"],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    loaded = run.stdout.split()
    assert "inductor_lab/compiler/pipeline.py" in loaded
    wanted = "run `python -m tests.project.core --write`"
    assert sorted(loaded) == sorted(listed()), wanted


def test_the_page_lists_existing_files() -> None:
    names = listed()
    assert len(names) > 100 and len(set(names)) == len(names)
    refused = tuple(name.replace(".", "/") for name in REFUSED)
    assert [name for name in names if name.startswith(refused)] == []
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_each_row_says_what_the_file_does() -> None:
    """Names, order and sentences are those that the command writes; lines may be some more."""
    written = page(listed()).splitlines()
    for line, old in zip(written, PAGE.read_text(encoding="utf-8").splitlines(), strict=True):
        if line.startswith("| ["):
            assert line.split(" | ")[0] == old.split(" | ")[0]
            assert len(line.split(" | ")[2]) > 10, line
