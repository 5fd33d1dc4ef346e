"""docs/json.md: the commands of its example print what it shows, and it lists every kind."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from inductor_lab import cli
from inductor_lab.saved.documents.kinds import KINDS
from tests.saved.schemas import generated

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
TEXT = PAGE.read_text(encoding="utf-8")
MARK = "<!-- generated: pytest --update-golden tests/saved/test_json_page.py -->\n"
IN_ALL = ("schema", "id", "kind", "summary")
COMMAND, ANSWER = r"^```console\n\$ inductor-lab (.*?)\n```$", r"^```json\n(.*?)^```$"
EXAMPLE = re.compile(f"{COMMAND}.*?{ANSWER}", re.M | re.S)


def contains(whole: Any, part: Any) -> bool:
    """Has a document the fields and elements of this excerpt?"""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and contains(whole[name], value) for name, value in part.items()
        )
    if isinstance(part, list):
        return all(any(contains(each, wanted) for each in whole) for wanted in part)
    return bool(whole == part)


def test_the_example(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    program = re.search(r"^This is `model.py`:\n\n```python\n(.*?)^```$", TEXT, re.M | re.S)
    assert program is not None
    (tmp_path / "model.py").write_text(program[1])
    examples = EXAMPLE.findall(TEXT)
    assert len(examples) == 3
    for command, excerpt in examples:
        assert cli.main(shlex.split(command)) == 0, command
        printed = capsys.readouterr().out
        assert contains(json.loads(printed), json.loads(excerpt)), printed
        limit = re.search(r"--max-bytes (\d+)", command)
        assert limit is None or len(printed.encode()) <= int(limit[1]) + 1


def test_an_excerpt_that_is_not_there_is_noticed() -> None:
    assert contains({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]})
    assert not contains({"a": [{"b": 1}]}, {"a": [{"b": 2}]})
    assert not contains({"a": 1}, {"b": 1})


def tables() -> str:
    """The kinds, and the fields of a kernel and of a decision."""
    lines = ["", "## The kinds of documents", "", "| kind | what it is | fields |", "|---|---|---|"]
    for kind in KINDS:
        made = generated(kind)
        names = [name for name in made["properties"] if name not in IN_ALL]
        fields = ", ".join(f"`{name}`" for name in names)
        lines.append(f"| `{kind}` | {_cell(made['description'])} | {fields} |")
    lines += ["", "Every document also has `schema`, `id`, `kind` and `summary`, except `facts`,"
              " which are the entries",
              "of a snapshot file."]  # fmt: skip
    for kind in ("kernel", "operation", "decision"):
        lines += ["", f"### {kind}", "", "| field | meaning |", "|---|---|"]
        for name, field in generated(kind)["properties"].items():
            lines.append(f"| `{name}` | {_cell(field['description'])} |")
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return " ".join(text.split())


def test_the_tables_are_those_of_the_schemas(request: pytest.FixtureRequest) -> None:
    before, _, _ = TEXT.partition(MARK)
    whole = f"{before}{MARK}{tables()}"
    if request.config.getoption("--update-golden"):
        PAGE.write_text(whole, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == whole, "run pytest --update-golden"
