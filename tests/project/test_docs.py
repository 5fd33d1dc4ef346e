"""What the docs name is there: files, make's targets, commands with their options, functions with
their arguments.  (docs/extending.md is run: tests/end_to_end/test_extending.py.)"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import inductor_lab as lab
from inductor_lab import course
from inductor_lab.api.compilation import Compilation
from inductor_lab.cli import main
from inductor_lab.stock.stock_compilation import StockCompilation
from tests.project.test_sizes import lines_of_code

ROOT = Path(__file__).parents[2]
COMPILER = ROOT / "inductor_lab" / "compiler"
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def links(page: Path) -> list[str]:
    found = LINK.findall(TEXTS[page])
    return [link for link in found if "://" not in link and not link.startswith("mailto:")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_targets(page: Path) -> None:
    assert [link for link in links(page) if not (page.parent / link).exists()] == []


def prose(page: Path) -> Iterator[str]:
    """The lines of a page outside of code, tables, headings, pictures and generated parts."""
    fenced = False
    for line in re.sub(r"<!-- begin.*?<!-- end", "", TEXTS[page], flags=re.DOTALL).splitlines():
        fenced ^= line.lstrip().startswith("```")
        if not fenced and not line.startswith(("    ", "|", "#", "!", "<", "```")):
            yield line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_of_prose_have_at_most_100_columns(page: Path) -> None:
    """A link may be longer: Markdown cannot break it."""
    long = [line for line in prose(page) if len(line) > 100]
    assert [line for line in long if not LINK.search(line)] == []


TARGET = re.compile(r"(?:^    |`|&& )make ([a-z]+)|^make ([a-z]+) +#", re.MULTILINE)
MODULE = re.compile(r"python3? -m ((?:tests|benchmarks|deploy)[\w.]*)")
COMMAND = re.compile(r"(?:^(?:    )?|`|&& |bin/|\d )inductor-lab ([a-z-]+)([^\n`#&]*)", re.M)


def test_make_targets_and_modules_in_the_docs_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {a or b for text in TEXTS.values() for a, b in TARGET.findall(text)}
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None and len(named) > 9 and named - set(phony[1].split()) == set()
    modules = {module for text in TEXTS.values() for module in MODULE.findall(text)}
    assert len(modules) > 5
    assert [m for m in modules if not runs_as_a_module(ROOT / m.replace(".", "/"))] == []


def runs_as_a_module(path: Path) -> bool:
    """`python -m a.b` runs a/b.py or a/b/__main__.py."""
    return path.with_suffix(".py").exists() or (path / "__main__.py").exists()


def test_commands_and_options_in_the_docs_exist(
    capsys: pytest.CaptureFixture[str]
) -> None:
    said = {found for text in TEXTS.values() for found in COMMAND.findall(text)}
    assert len({name for name, _ in said}) > 8
    for name, rest in sorted(said):
        sub = rest.split()[:1] if name == "course" else []
        with pytest.raises(SystemExit) as ended:
            main([name, *sub, "--help"])
        assert ended.value.code == 0, (name, rest)
        known = capsys.readouterr().out
        assert [option for option in re.findall(r"--\w+", rest) if option not in known] == []


CODE = re.compile(r"^```python\n(.*?)^```$|^((?:    .*\n)+)", re.MULTILINE | re.DOTALL)


def calls(text: str) -> Iterator[ast.Call]:
    """All calls in the code of a page; a line that is no Python by itself is left out."""
    for block in CODE.finditer(text):
        for line in (block[1] or block[2]).splitlines():
            try:
                tree = ast.parse(re.sub(r"\s{3,}.*|  #.*", "", line.strip().removesuffix(":")))
            except SyntaxError:
                continue
            yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called(path: str) -> list[Any]:
    """What `lab.bench.sweep` or `c.plot` is; of two kinds of compilation that which has it."""
    root, *rest = path.split(".")
    known = {"lab": [lab], "course": [course], "c": [Compilation, StockCompilation]}
    values: list[Any] = known.get(root, [])
    for name in rest:
        values = [getattr(value, name) for value in values if hasattr(value, name)]
        assert values, f"there is no {path}"
    return values


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_functions_and_arguments_in_a_page_exist(page: Path) -> None:
    for call in calls(TEXTS[page]):
        path = ast.unparse(call.func)
        if not re.fullmatch(r"(lab|course|c)(\.\w+){1,2}", path) or path.startswith("c.graphs"):
            continue
        given = {keyword.arg for keyword in call.keywords if keyword.arg}
        taken = [inspect.signature(function).parameters for function in called(path)]
        assert any(
            given <= set(known) or any(p.kind is p.VAR_KEYWORD for p in known.values())
            for known in taken
        ), ast.unparse(call)  # fmt: skip


def test_enough_calls_in_the_docs_are_found() -> None:
    seen = {ast.unparse(call.func) for text in TEXTS.values() for call in calls(text)}
    assert {"lab.bench.sweep", "c.what_if", "course.check", "lab.minify", "c.report"} <= seen


ROW = re.compile(r"^\| \[[^]]+\]\(\.\./([^)]*)\) \| (\d+) \|", re.MULTILINE)


def test_the_reading_order_says_about_how_long_each_file_is() -> None:
    rows = ROW.findall((ROOT / "docs" / "reading.md").read_text(encoding="utf-8"))
    actual = {name: lines_of_code(ROOT / name) for name, _ in rows}
    assert len(actual) == len(rows) > 40
    wrong = {name: (said, actual[name]) for name, said in rows
             if abs(int(said) - actual[name]) > max(15, actual[name] / 5)}  # fmt: skip
    assert wrong == {}


def test_the_glossary_has_each_term_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (.+) \|$", text, re.MULTILINE)
    terms = [term for term, *_ in rows if term not in ("term", "---")]
    assert len(terms) == len(set(terms)) > 50
    assert all(LINK.search(where) for term, _, where in rows if term not in ("term", "---"))


COUNT = re.compile(r"\b(five|six|seven|eight|nine|ten) (phases|stations) ?", re.IGNORECASE)


def test_the_architecture_fits_on_a_few_screens() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200, "details belong on a page of their own"


def test_the_phases_are_counted_in_one_way() -> None:
    """As the picture in docs/architecture.md has them, wherever they are counted."""
    picture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^   [│▼] (\w+)/ ", picture, re.MULTILINE)
    assert len(drawn) == 7 and all((COMPILER / name).is_dir() for name in drawn)
    folders = [ROOT / name for name in ("docs", "inductor_lab", "widgets", "notebooks/source")]
    texts = [*(ROOT / "javascript").glob("*.js")]
    texts += [p for f in folders for p in f.rglob("*") if p.suffix in (".md", ".py", ".js")]
    said = {found[1].lower() for path in [*texts, ROOT / "README.md"]
            for found in COUNT.finditer(path.read_text(encoding="utf-8"))}  # fmt: skip
    assert said == {"seven"}
