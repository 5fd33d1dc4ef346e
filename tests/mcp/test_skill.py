"""`inductor-lab skill`: every command of the SKILL.md runs and answers with a document."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from inductor_lab.cli import main
from inductor_lab.debug.mcp.skill import skill_text
from tests.saved.schemas import valid

COMMANDS = re.findall(r"^\$ inductor-lab (.*)$", skill_text(), re.MULTILINE)
SLOW = ("bench", "blame", "try-kernel", "judge", "what-if", "recompiles", "diff")


def written(folder: Path) -> None:
    """The skill in a folder, and the file of its examples."""
    assert main(["skill", str(folder / "skills" / "inductor-lab")]) == 0
    assert (folder / "skills" / "inductor-lab" / "SKILL.md").read_text() == skill_text()
    programs = re.findall(r"```python\n(.*?)^```$", skill_text(), re.MULTILINE | re.DOTALL)
    for name, program in zip(("model.py", "candidate.py"), programs, strict=True):
        (folder / name).write_text(program)


def run(commands: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands:
        words = shlex.split(command)
        assert main(words) == 0, command
        printed = capsys.readouterr().out
        found = json.loads(printed)
        if words[0] == "schema":
            continue
        assert valid(found)["kind"] != "error"
        if "--max-bytes" in words:
            limit = words[words.index("--max-bytes") + 1]
            assert len(printed.encode()) <= int(limit) + 1, command
        if "kernel.cpp" not in words and found["kind"] == "kernel":
            Path("kernel.cpp").write_text("\n".join(line["text"] for line in found["code"]))


@pytest.fixture
def folder(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    written(tmp_path)
    capsys.readouterr()
    return tmp_path


def test_commands_that_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(COMMANDS) >= 15
    run([each for each in COMMANDS if each.split()[0] not in SLOW], capsys)


def test_commands_that_run_the_function(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["explain model.py:attend --save attend.lab.json --json"], capsys)
    run(["explain attend.lab.json --select g0.forward.kernel:1 --json"], capsys)
    run([each for each in COMMANDS if each.split()[0] in SLOW], capsys)


def test_the_head_of_the_skill_is_that_of_a_skill() -> None:
    _, head, text = skill_text().split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.strip().splitlines())
    assert fields["name"] == "inductor-lab" and 20 < len(fields["description"]) < 1024
    assert text.strip().startswith("# inductor-lab")


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert main(["skill", str(tmp_path / "file")]) == 2
    assert "CannotWrite" in capsys.readouterr().err
