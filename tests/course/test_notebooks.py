"""Notebooks match their sources and run: tutorials, stubs (no points), solutions (all points)."""

from __future__ import annotations

import ast
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from inductor_lab import course
from inductor_lab.cli import main
from inductor_lab.compiler.base.errors import UnreadableFile
from inductor_lab.course.build import build, notebook_text, notebooks, sources
from inductor_lab.course.language import LANGUAGES
from inductor_lab.course.one_language import WIDTH, columns, in_one_language
from inductor_lab.course.scores import VARIABLE
from inductor_lab.course.source import Source, read_source
from inductor_lab.course.times import CellTime, run
from tests.widgets.reading import without_words

FOLDER = Path(__file__).parents[2] / "notebooks"
SOURCES = sources(FOLDER)
TUTORIALS = [source for source in SOURCES if source.kind == "tutorial"]
THREADS = torch.get_num_threads()
MADE = ("guides", "tutorials", "labs", "instructor")
CODE = ("python", "stub", "solution")
CHINESE = re.compile("[\u2e80-\uffef]")


def test_generated_notebooks_match_their_sources() -> None:
    wanted = dict(made for source in SOURCES for made in notebooks(source))
    found = {path.relative_to(FOLDER).as_posix() for folder in MADE
             for path in (FOLDER / folder).rglob("*.ipynb")
             if ".ipynb_checkpoints" not in path.parts}  # fmt: skip
    assert found == set(wanted), "inductor-lab course build; delete notebooks without a source"
    stale = [n for n, text in wanted.items() if (FOLDER / n).read_text(encoding="utf-8") != text]
    assert stale == [], "inductor-lab course build"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.kind} {source.stem}")
def test_languages_differ_only_in_text(source: Source) -> None:
    english, chinese = (source.cells(language, solved=True) for language in LANGUAGES)
    assert [c for c in english if c[0] == "code"] == [c for c in chinese if c[0] == "code"]
    assert [kind for kind, _ in english] == [kind for kind, _ in chinese]
    for (kind, one), (_, other) in zip(english, chinese, strict=True):
        if kind == "markdown":
            assert re.search("[\u4e00-\u9fff]", other) and not re.search("[\u4e00-\u9fff]", one)
            assert one.count("```") == other.count("```") and one.count("## ") == other.count("## ")


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.kind} {source.stem}")
def test_no_line_of_code_scrolls(source: Source) -> None:
    """88 letters fit if JupyterLab is 900 px wide; a Chinese character is wider."""
    written = [block.text for block in source.blocks if block.kind in CODE]
    made = [cell for language in LANGUAGES for solved in (False, True)
            for cell in code_of(notebook_text(source, language, solved=solved))]  # fmt: skip
    lines = [line for text in (*written, *made) for line in text.splitlines()]
    assert [line for line in lines if columns(line) > WIDTH] == []


WORDS = re.compile(r"[A-Za-z]{2,},? [a-z]{2,},? [a-z]{2,}")


def english_only(code: str) -> list[str]:
    """Sentences that a cell prints or draws in English without a Chinese version."""
    shown = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)
             and ast.unparse(node.func).startswith(("print", "course."))]  # fmt: skip
    said = [node for call in shown for node in ast.walk(call)]
    pairs = [node for node in said if isinstance(node, ast.Tuple)
             and any(CHINESE.search(ast.unparse(part)) for part in node.elts)]  # fmt: skip
    paired = {id(part) for pair in pairs for part in ast.walk(pair)}
    texts = [node.value for node in said
             if isinstance(node, ast.Constant) and id(node) not in paired]  # fmt: skip
    return [text for text in texts if isinstance(text, str) and WORDS.search(text)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.kind} {source.stem}")
def test_each_sentence_of_a_cell_is_in_both_languages(source: Source) -> None:
    cells = [block for block in source.blocks if block.kind in CODE]
    code = [re.sub(r"^%.*$", "", block.text, flags=re.MULTILINE) for block in cells]
    assert [text for cell in code for text in english_only(cell)] == []


def test_a_sentence_in_one_language_is_found() -> None:
    assert english_only('print(f"{n} kernels are left over")') == [" kernels are left over"]
    assert english_only('course.show(("all of them agree", "全部一致"), "cpu tensor")') == []


@pytest.fixture(scope="module")
def shell():
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance()
    yield made
    InteractiveShell.clear_instance()


def run_all(shell: InteractiveShell, source: Source, *, solved: bool) -> None:
    """Run all code cells of the English notebook in a new namespace."""
    shell.reset()
    torch.set_num_threads(THREADS)
    for text in code_of(notebook_text(source, "en", solved=solved)):
        with capture_output() as captured:
            result = shell.run_cell(text, store_history=True)
        assert result.success, f"{text}\n{captured.stdout[-2000:]}"
        assert untold(captured.outputs) == [], text


def code_of(notebook: str) -> list[str]:
    """The code cells of a notebook's file."""
    cells = json.loads(notebook)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.kind} {source.stem}")
@pytest.mark.parametrize("solved", [False, True])
def test_a_notebook_has_one_language(source: Source, solved: bool) -> None:
    english, chinese = (
        code_of(notebook_text(source, language, solved=solved)) for language in LANGUAGES
    )
    assert [cell for cell in english if CHINESE.search(cell)] == []
    assert [cell for cell in chinese if in_one_language(cell, "zh") != cell] == []
    for one, other in zip(english[1:], chinese[1:], strict=True):
        assert ast.dump(_without_texts(one)) == ast.dump(_without_texts(other))


def _without_texts(code: str) -> ast.Module:
    """The tree of a cell, with each text replaced by an empty one."""
    tree = ast.parse(re.sub("^%.*$", "", code, flags=re.MULTILINE))
    for node in ast.walk(tree):
        for name, child in ast.iter_fields(node):
            if _is_text(child):
                setattr(node, name, ast.Constant(""))
            elif isinstance(child, list):
                setattr(node, name, [ast.Constant("") if _is_text(e) else e for e in child])
    return tree


def _is_text(node: object) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_a_pair_of_texts_becomes_one() -> None:
    code = 'course.predict(\n    ("how many", "多少"), guess, 2\n)\nx = ("a", "b")'
    assert in_one_language(code, "en") == 'course.predict("how many", guess, 2)\nx = ("a", "b")'
    assert in_one_language(code, "zh") == 'course.predict("多少", guess, 2)\nx = ("a", "b")'
    long = 'show(\n    (\n        f"{n} of "\n        f"{m}",\n        f"{m} 中的 {n}",\n    )\n)'
    assert in_one_language(long, "en") == 'show(\n    f"{n} of "\n    f"{m}"\n)'
    assert in_one_language(long, "zh") == 'show(f"{m} 中的 {n}")'


def untold(outputs: list[Any]) -> list[str]:
    """Pictures in a cell's outputs without a text for screen readers."""
    bundles = [output.data for output in outputs]
    bare = [kind for data in bundles for kind in data
            if kind.startswith("image/") and "text/html" not in data]  # fmt: skip
    return bare + [head for data in bundles for head in without_words(data.get("text/html", ""))]


@pytest.mark.parametrize("source", TUTORIALS, ids=lambda s: s.stem)
def test_a_tutorial_runs(shell, source: Source, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "course.json"))
    run_all(shell, source, solved=True)


@pytest.mark.parametrize("source", [s for s in SOURCES if s.kind == "lab"], ids=lambda s: s.stem)
def test_solutions_get_all_points_and_stubs_none(shell, source, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "course.json"))
    run_all(shell, source, solved=False)
    score = course.board(source.number)
    assert score.points == 0 and all(tries for *_, tries in score.rows), score
    run_all(shell, source, solved=True)
    score = course.board(source.number)
    assert 4 <= len(score.rows) <= 8 and score.points == score.possible, score


def test_the_command_checks_and_builds(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "course.json"))
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "02_x.md").write_text(SOURCE, encoding="utf-8")
    assert main(["course", "build", "--folder", str(tmp_path)]) == 0
    assert "4 notebooks written" in capsys.readouterr().out
    assert build(tmp_path) == []
    student = (tmp_path / "labs" / "zh" / "02_x.ipynb").read_text(encoding="utf-8")
    teacher = (tmp_path / "instructor" / "en" / "02_x.ipynb").read_text(encoding="utf-8")
    assert "怎么做" in student and "How" not in student and "= 42" not in student
    assert "How" in teacher and "= 42" in teacher
    assert main(["course", "status"]) == 0 and "0 of " in capsys.readouterr().out
    assert main(["course", "build", "--folder", str(tmp_path / "none")]) == 2
    with pytest.raises(SystemExit):
        main(["course", "--help"])
    assert "nbgrader" in capsys.readouterr().out


def test_instructors_get_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "instructor.tar.gz"
    assert main(["course", "instructor", "--folder", str(FOLDER), "-o", str(archive)]) == 0
    with tarfile.open(archive) as held:
        held.extractall(tmp_path, filter="data")
    own = tmp_path / "notebooks"
    assert {path.name for path in own.iterdir()} == {"source", "instructor"}
    assert len(sources(own)) == len(SOURCES) and (own / "instructor" / "en").is_dir()
    assert len(list((own / "source" / "duels").glob("*.toml"))) == 6
    assert main(["course", "nbgrader", "--folder", str(own), str(tmp_path / "fall")]) == 0
    assert (tmp_path / "fall" / "source" / "01_capture" / "01_capture.ipynb").exists()


def test_the_times_of_cells_are_printed(tmp_path: Path, capfd) -> None:
    (tmp_path / "source").mkdir()
    path = tmp_path / "source" / "02_x.md"
    busy = "guess = None\n\nstart = time.process_time()\nwhile time.process_time() < start + 0.3: 0"
    cells = ("import time", busy, "time.sleep(0.3)")
    text = SOURCE.replace("lab", "tutorial").partition("```python stub")[0]
    blocks = [f"```python\n{cell}\n```\n" for cell in cells]
    path.write_text("".join([text, *blocks]), encoding="utf-8")
    _, _, second, third = tuple(run(read_source(path)))
    assert (second.number, second.line) == (3, "start = time.process_time()")
    assert second.wall >= 0.3 and second.seconds > 0.2 and third.wall >= 0.3
    assert third.seconds < 0.2, "a cell that waits is not a cell that works"
    assert main(["course", "times", "02", "--folder", str(tmp_path)]) == 0
    printed = capfd.readouterr().out
    assert "02_x, 4 cells" in printed and "4 cells, 0 over 20 s" in printed
    path.write_text(text + "```python\n1 / 0\n```\n", encoding="utf-8")
    assert main(["course", "times", "--folder", str(tmp_path)]) == 2
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_cell_is_charged_for_its_own_work() -> None:
    assert "over 20 s" not in str(CellTime(1, "busy machine", 60.0, 5.0))
    assert "over 20 s" in str(CellTime(1, "slow cell", 31.0, 30.0))


SOURCE = """---
kind: lab
number: 2
name: x
en: X
zh: 某题
---
:::en
How?
:::
:::zh
怎么做？
:::
```python stub
answer = None
```
```python solution
answer = 42
```
"""


@pytest.mark.parametrize("change, said", [
    (("---\nkind", "kind"), "line 1"), (("zh: 某题\n", ""), "lacks zh"),
    (("怎么做？\n:::", "怎么做？"), "does not end"),
    ((":::zh\n怎么做？\n:::\n", ""), "no zh block"),
    (("```python stub\nanswer = None\n```\n", ""), "no stub block"),
    (("How?\n:::", "How?\n:::\nand"), "line 11"),
])  # fmt: skip
def test_an_error_in_a_source_has_its_line(change, said: str, tmp_path: Path) -> None:
    path = tmp_path / "02_x.md"
    path.write_text(SOURCE.replace(*change), encoding="utf-8")
    with pytest.raises(UnreadableFile) as refused:
        read_source(path)
    assert said in str(refused.value)


def test_bold_chinese_is_bold() -> None:
    """Markdown takes `**` between a full-width bracket and a character for two asterisks."""
    lines = [(source.stem, line) for source in SOURCES for block in source.blocks
             if block.kind == "zh" for line in block.text.splitlines()]  # fmt: skip
    for stem, line in lines:
        pieces = line.split("**")  # every other one is bold
        for bold, after in zip(pieces[1::2], pieces[2::2], strict=False):
            apart = bold[-1] not in "）。：，" or not re.match("[\u4e00-\u9fff]", after)
            assert apart, f"{stem}: {bold}"


def test_chinese_paragraphs_are_one_line() -> None:
    """The end of a line is drawn as a space, which Chinese does not have between sentences."""
    split = re.compile(r"[\u3001\u3002\u4e00-\u9fff\uff00-\uffef][*_`]*\n(?![-#|>\d\s]|$)")
    found = [(source.stem, hit[0]) for source in SOURCES for block in source.blocks
             if block.kind == "zh" for hit in split.finditer(block.text)]  # fmt: skip
    assert found == []


def test_chinese_terms_have_the_english_term_once() -> None:
    text = (FOLDER.parent / "docs" / "course.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([a-z -]+) \| ([\u4e00-\u9fff]+) \|$", text, re.MULTILINE)
    assert len(terms) >= 7
    for english, chinese in terms:
        tutorials = ["\n".join(b.text for b in s.blocks if b.kind == "zh")
                     for s in TUTORIALS]  # fmt: skip
        both = re.compile(rf"{chinese}[^（]{{0,4}}（{english}）")
        assert any(both.search(tutorial) for tutorial in tutorials), f"{chinese}（{english}）"
