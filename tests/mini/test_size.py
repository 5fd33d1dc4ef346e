"""The small compiler stays small, needs nothing of the rest, and says what the rest does."""

from __future__ import annotations

import re

import pytest

from tests.project.test_layering import PACKAGE, imports
from tests.project.test_sizes import lines_of_code

MINI = PACKAGE / "mini"
FILES = sorted(MINI.rglob("*.py"))
LAST = "\n# What the full compiler does differently\n#\n"


def test_it_has_at_most_1000_lines_of_code_in_ten_files() -> None:
    assert sorted(MINI.rglob("*.*")) == FILES or len([*MINI.rglob("*.h")]) == 0
    assert len(FILES) <= 10
    assert sum(map(lines_of_code, FILES)) <= 1000


def test_it_imports_nothing_else_of_the_package() -> None:
    ours = {name for path in FILES for name in imports(path) if name.startswith("inductor_lab")}
    assert {name for name in ours if not name.startswith("inductor_lab.mini")} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_ends_with_links_to_the_full_compiler(path: object) -> None:
    text = path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    _, found, section = text.partition(LAST)
    assert found
    assert all(line.startswith("#") for line in section.splitlines())
    links = re.findall(r"\b(?:compiler|api|docs|inductor_lab)/[\w/]*(?:\.\w+)?", section)
    assert links
    roots = (PACKAGE, PACKAGE.parent)
    assert [link for link in links if not any((root / link).exists() for root in roots)] == []
    for line in section.splitlines():  # `compiler/ir/expr.py, index.py`: the others are neighbors
        named = re.match(r"# - ([\w/]+/)\w+\.py((?:, [\w/]+\.py)*)", line)
        for name in re.findall(r"[\w/]+\.py", named[2]) if named else ():
            folder = PACKAGE / named[1]
            assert (folder / name).exists() or (PACKAGE / name).exists(), (line, name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_starts_with_what_goes_in_and_out(path: object) -> None:
    text = path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    if path.name != "__init__.py":  # type: ignore[attr-defined]
        assert re.search(r'^""".*\n\nIn:  .*\nOut: ', text, re.MULTILINE)
        assert "->" in text.split('"""')[1] or "│" in text.split('"""')[1]
