"""Prose and names use the terms of docs/glossary.md, not the words that its last table lists."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
FOLDERS = ("inductor_lab", "widgets", "benchmarks", "deploy", "tests", "javascript")
COMMENT = re.compile(r"(?://|^\s*/?\*)(.*)")
"""A comment of C++ or JavaScript."""


def unused_words() -> list[str]:
    """The right column of the table below "Words that are not used"."""
    table = GLOSSARY.read_text(encoding="utf-8").partition("## Words that are not used")[2]
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|$", table, re.MULTILINE)[1:]
    return [word for row in rows for word in row.split(", ")]


UNUSED = re.compile(rf"\b(?:{'|'.join(unused_words())})\b", re.IGNORECASE)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a Markdown file, the comments of C++ or JavaScript, or the comments and
    docstrings of Python."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".h", ".js"):
        for number, line in enumerate(text.splitlines(), 1):
            for comment in COMMENT.findall(line):
                yield number, re.sub(r"`[^`]*`|https?://\S+", "", comment)
        return
    if path.suffix == ".md":
        yield from enumerate(re.sub(r"`[^`\n]*`", "", text).splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield from enumerate(docstring.splitlines(), node.lineno)


def names(path: Path) -> Iterator[tuple[int, str]]:
    """The functions, classes and parameters that a Python file defines, as words."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    yield node.lineno, name.replace("_", " ")


# File → a public name in it that has a word of the glossary and cannot change.
PUBLIC = {"inductor_lab/debug/blame/blame_result.py": "births"}


def unused_in(path: Path) -> list[str]:
    """Each place where a file uses a word that the glossary rejects."""
    lines = [*prose(path), *names(path)]
    if path == GLOSSARY:
        lines = [(number, line) for number, line in lines if not line.endswith(" |")]
    name = path.relative_to(ROOT).as_posix()
    return [f"{name}:{number}: {found[0]}"
            for number, line in lines for found in UNUSED.finditer(line)
            if found[0] != PUBLIC.get(name)]  # fmt: skip


def pages() -> list[Path]:
    return sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def sources(folder: Path) -> list[Path]:
    found = [path for suffix in ("py", "h", "js") for path in folder.rglob(f"*.{suffix}")]
    skipped = {"node_modules", "built"}
    return sorted(path for path in found if skipped.isdisjoint(path.parts))


@pytest.mark.parametrize("folder", ("docs", *FOLDERS))
def test_prose_and_names_use_the_terms_of_the_glossary(folder: str) -> None:
    found = pages() if folder == "docs" else sources(ROOT / folder)
    assert len(found) > 1
    assert [use for path in found for use in unused_in(path)] == []


def test_an_unused_word_is_found_in_comments_docstrings_and_names(tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    source = '"""As it is told."""\n\ndef station():  # they take turns\n    return "told"\n'
    path.write_text(source)
    found = [UNUSED.findall(line) for _, line in [*prose(path), *names(path)]]
    assert found == [["take turns"], ["told"], ["station"]]
