"""Notebooks are what their sources say, and run: tutorials, stubs (no marks), solutions (all)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from inductor_lab import course
from inductor_lab.cli import main
from inductor_lab.course.build import build, notebooks, sources
from inductor_lab.course.language import LANGUAGES
from inductor_lab.course.scores import VARIABLE
from inductor_lab.course.source import Source, read_source
from inductor_lab.errors import UnreadableFile

FOLDER = Path(__file__).parents[2] / "notebooks"
SOURCES = sources(FOLDER)
MADE = ("tutorials", "labs", "instructor")


def test_generated_notebooks_are_in_step_with_their_sources() -> None:
    wanted = dict(made for source in SOURCES for made in notebooks(source))
    found = {path.relative_to(FOLDER).as_posix() for folder in MADE
             for path in (FOLDER / folder).rglob("*.ipynb")
             if ".ipynb_checkpoints" not in path.parts}  # fmt: skip
    assert found == set(wanted), "inductor-lab course build; delete what has no source any more"
    stale = [n for n, text in wanted.items() if (FOLDER / n).read_text(encoding="utf-8") != text]
    assert stale == [], "inductor-lab course build"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.kind} {source.stem}")
def test_languages_differ_in_text_alone(source: Source) -> None:
    english, chinese = (source.cells(language, solved=True) for language in LANGUAGES)
    assert [c for c in english if c[0] == "code"] == [c for c in chinese if c[0] == "code"]
    assert [kind for kind, _ in english] == [kind for kind, _ in chinese]
    for (kind, one), (_, other) in zip(english, chinese, strict=True):
        if kind == "markdown":
            assert re.search("[\u4e00-\u9fff]", other) and not re.search("[\u4e00-\u9fff]", one)
            assert one.count("```") == other.count("```") and one.count("## ") == other.count("## ")


@pytest.mark.parametrize(
    "source", [s for s in SOURCES if s.kind == "tutorial"], ids=lambda s: s.stem
)
def test_a_tutorial_asks_before_it_tells(source: Source) -> None:
    code = "\n".join(block.text for block in source.blocks if block.kind == "python")
    assert code.count("course.predict(") == code.count("guess = None") >= 2
    assert "assert" in code, "facts are checked where they are told"
    text = "\n".join(block.text for block in source.blocks if block.kind == "en")
    for part in ("## What the real one does", "## Summary", "\n1. ", "\n2. ", "\n3. "):
        assert part in text, part


@pytest.fixture(scope="module")
def shell():
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance()
    yield made
    InteractiveShell.clear_instance()


def run_all(shell: InteractiveShell, source: Source, *, solved: bool) -> None:
    """All code cells of the English notebook in one namespace of its own."""
    shell.reset()
    shell.run_cell("import torch\nimport inductor_lab as lab\nfrom inductor_lab import course")
    for kind, text in source.cells("en", solved=solved):
        if kind == "code":
            with capture_output() as captured:
                result = shell.run_cell(text, store_history=True)
            assert result.success, f"{text}\n{captured.stdout[-2000:]}"


@pytest.mark.parametrize(
    "source", [s for s in SOURCES if s.kind == "tutorial"], ids=lambda s: s.stem
)
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


def test_the_command_tells_and_builds(tmp_path: Path, monkeypatch, capsys) -> None:
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
def test_a_source_that_is_wrong_is_told_with_its_line(change, said: str, tmp_path: Path) -> None:
    path = tmp_path / "02_x.md"
    path.write_text(SOURCE.replace(*change), encoding="utf-8")
    with pytest.raises(UnreadableFile) as refused:
        read_source(path)
    assert said in str(refused.value)


def test_chinese_terms_have_the_english_beside_them_once() -> None:
    text = (FOLDER.parent / "docs" / "course.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([a-z -]+) \| ([\u4e00-\u9fff]+) \|$", text, re.MULTILINE)
    assert len(terms) >= 7
    for english, chinese in terms:
        tutorials = ["\n".join(b.text for b in s.blocks if b.kind == "zh")
                     for s in SOURCES if s.kind == "tutorial"]  # fmt: skip
        beside = re.compile(rf"{chinese}[^（]{{0,4}}（{english}）")
        assert any(beside.search(tutorial) for tutorial in tutorials), f"{chinese}（{english}）"
